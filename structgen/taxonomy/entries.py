"""What a taxonomy knows about one of its labels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One label of a taxonomy.

    Example: `Entry("Animals > Cats", "A1", "House cats", ("Animals", "Cats"), "Animals")`
    """

    label: str
    """Its full path where the taxonomy has a hierarchy."""
    code: str | None = None
    description: str = ""
    path: tuple[str, ...] = ()
    """The label level by level, from the root on."""
    parent: str | None = None
    """The path of the level above, which need not be a label itself; None for a root."""
