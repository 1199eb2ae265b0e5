"""A type together with its values, both drawn at random and unaware of structgen's nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

Values: TypeAlias = Callable[[Random], Any]
Make: TypeAlias = Callable[[Random, int], Any]
"""(source of chance, levels of nesting left) -> a value that Pydantic accepts, as plain data."""


@dataclass(frozen=True)
class Shape:
    """A type that a field can have."""

    type: Any
    make: Make
    """Values whose JSON, as Pydantic writes it, follows the canonical choices."""
    hashable: bool = False
    key: bool = False
    """Whether it may be the key of a dict."""
    choices: tuple[Any, ...] = ()
    """All values, where they are few."""
    spelled_once: bool = False
    """Whether equal values are equal texts, as in a set."""
    numeric: bool = False
    """Whether it holds numbers, which another numeric option of a union might take for its own."""


def plain(type_: Any, values: Values, *, key: bool = False) -> Shape:
    """A hashable scalar."""
    return Shape(type_, lambda rng, _: values(rng), hashable=True, key=key, spelled_once=True)


def choice(type_: Any, values: tuple[Any, ...], *, key: bool = False) -> Shape:
    """One of a few hashable values."""
    return Shape(type_, lambda rng, _: rng.choice(values), True, key, values)


def one_of(values: Sequence[Any]) -> Values:
    return lambda rng: rng.choice(values)


def fitting(values: Values, fits: Callable[[Any], bool]) -> Values:
    """Values that have a property, which many of them must have."""

    def draw(rng: Random) -> Any:
        while True:
            value = values(rng)
            if fits(value):
                return value

    return draw
