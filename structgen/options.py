"""How a schema is compiled: choices a user makes, and the limits that keep it bounded."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from structgen.errors import OptionError

Layout = Literal["spaced", "compact", "flexible"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on size and work; reaching one is a `LimitError`, never a hang."""

    max_states: int = 2_000_000
    """Automaton states of one compiled schema, labels not counted."""
    max_label_bytes: int = 64 * 2**20
    """Text of all labels of one schema."""
    max_depth: int = 64
    """Nesting of a generated value, unless the schema itself demands more (Pydantic's JSON
    parser stops at 200)."""
    max_whitespace: int = 32
    """Consecutive blanks and newlines in the layout `flexible`."""
    cache_bytes: int = 64 * 2**20
    """Masks kept by one compiled schema; beyond it they are dropped and computed again."""
    max_threads: int = 4096
    """Alternatives of an ambiguous schema that are followed at once."""


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

    def __post_init__(self) -> None:
        if self.layout not in get_args(Layout):
            raise OptionError(f"layout={self.layout!r} is unknown; use one of {get_args(Layout)}")
        for limit in fields(self.limits):
            value: object = getattr(self.limits, limit.name)
            if not isinstance(value, int) or value < 1:
                raise OptionError(f"limit {limit.name}={value!r} must be a whole number above 0")
