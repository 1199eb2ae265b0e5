"""How a schema is compiled: choices a user makes, and the limits that keep it bounded."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from structgen.errors import OptionError

Layout = Literal["spaced", "compact", "flexible"]

DEEPEST = 180
"""Nesting that Pydantic's JSON parser accepts with a margin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on size and work; reaching one is a `LimitError`, never a hang."""

    max_states: int = 2_000_000
    """Automaton states of one compiled schema, labels not counted."""
    max_label_bytes: int = 64 * 2**20
    """Text of all labels of one schema."""
    max_depth: int = 64
    """Nesting of a generated value, unless the schema itself demands more; at most 180, since
    Pydantic's JSON parser stops at 200."""
    max_whitespace: int = 32
    """Consecutive blanks and newlines in the layout `flexible`."""
    cache_bytes: int = 64 * 2**20
    """Masks kept by one compiled schema; beyond it they are dropped and computed again."""
    max_seconds: int = 10
    """Processor time to read a schema, and again to build its automaton; as a rule the other limits
    end it much sooner."""
    max_threads: int = 4096
    """Alternatives of an ambiguous schema that are followed at once."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: object = getattr(self, limit.name)
            most = DEEPEST if limit.name == "max_depth" else 2**40
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise OptionError(
                    f"Limits.{limit.name}={value!r} must be a whole number from 1 to {most}"
                )


@dataclass(frozen=True, slots=True)
class Options:
    """Choices that change which texts a schema allows.

    Example: `Options(layout="compact", require_all=True)`
    """

    layout: Layout = "spaced"
    """`spaced` is what `json.dumps` writes, `compact` has no blanks, `flexible` lets the model
    choose its whitespace within a bound."""
    require_all: bool = False
    """Emit every property, also those with a default."""
    limits: Limits = field(default_factory=Limits)
    banned_strings: tuple[str, ...] = ()
    """Sorted texts that no free text, string, label or free key contains."""

    def __post_init__(self) -> None:
        if self.layout not in get_args(Layout):
            raise OptionError(f"layout={self.layout!r} is unknown; use one of {get_args(Layout)}")
        if not isinstance(self.require_all, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"require_all={self.require_all!r} must be True or False")
        if not isinstance(self.limits, Limits):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"limits={self.limits!r} must be a structgen.Limits")
