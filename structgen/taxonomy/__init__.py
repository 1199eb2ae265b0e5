"""Taxonomies: sets of 2 to 100,000 labels with codes, descriptions and a hierarchy.

    Taxonomy([...]) -> rows -> faults, all at once -> a type, a choice, a tree

They stand above the engine and import neither torch nor transformers.
"""

from typing import TYPE_CHECKING, Any

from structgen.taxonomy.entries import Entry
from structgen.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from structgen.taxonomy.verification import Verification as Verification

__all__ = ["Entry", "Taxonomy", "Verification"]


def __getattr__(name: str) -> Any:
    if name == "Verification":  # it needs the compiler, which the rest does without
        from structgen.taxonomy.verification import Verification

        return Verification
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
