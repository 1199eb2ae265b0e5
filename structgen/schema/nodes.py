"""The schema's intermediate representation: what a JSON value may be, and nothing else.

Nodes are made by the smart constructors at the end of this file, so a `Union` is always flat and
without doubles, labels are sorted and unique, and impossible parts are `Never` with the reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from structgen.schema.grid import FRACTION_DIGITS, number_grid

Dialect: TypeAlias = Literal["rust", "ecma"]
"""Whose regular expressions: the default engine of Pydantic, or JSON Schema's."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A finite set of scalars, each as its canonical JSON text.

    Example: `Literal["a", 1]` is `Labels((b'"a"', b"1"))`
    """

    texts: tuple[bytes, ...]
    """Sorted by bytes, unique, not empty."""
    declared: tuple[bytes, ...] = field(default=(), compare=False, repr=False)
    """The same in the author's order, for people and prompts."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The strings in which a regular expression is found, or all others.

    Example: `Pattern("^a")` is every string that begins with an a.
    """

    source: str
    dialect: Dialect = "rust"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class String:
    """A JSON string whose length in code points lies between two bounds."""

    min_length: int = 0
    max_length: int | None = None
    patterns: tuple[Pattern, ...] = ()
    """All of them hold for the decoded text."""
    excluded: tuple[str, ...] = ()
    """Sorted texts that it must not be."""
    name: str = field(default="", compare=False, repr=False)
    """What people call such strings, e.g. `date-time`."""


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number without fraction or exponent, between two bounds (both inclusive)."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number whose nearest double lies between two bounds."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number `n / 10**places` with `low <= n <= high` and n a multiple of `step`.

    It is written without an exponent. Example: multiples of 0.05 are `Fixed(places=2, step=5)`.
    """

    low: int
    high: int
    places: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True)
class Contains:
    """How many items of an array must, and may, be of some kind."""

    item: Node
    rest: Node
    """Every item that is not of that kind; only asked for where there is a maximum."""
    minimum: int = 1
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """A JSON array."""

    item: Node
    """Every item behind `prefix`; Never where none may follow."""
    min_items: int = 0
    max_items: int | None = None
    prefix: tuple[Node, ...] = ()
    """The first items, as far as there are any."""
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    """No two items are equal."""


@dataclass(frozen=True, slots=True)
class Extra:
    """One kind of undeclared properties: what keys and what values they have."""

    key: Node
    """String or labels that are strings."""
    value: Node


@dataclass(frozen=True, slots=True)
class Property:
    """One declared property of an `Object`."""

    name: str
    node: Node
    required: bool = True
    description: str = field(default="", compare=False, repr=False)
    """What the author says about it; it goes into the prompt and not into the automaton."""


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object with declared properties, emitted in this order."""

    properties: tuple[Property, ...] = ()
    extras: tuple[Extra, ...] = ()
    """Kinds of undeclared properties, which follow the declared ones; none closes the object.
    Where a key fits several, any of their values will do."""
    reserved: tuple[str, ...] = ()
    """Sorted names by which validation finds declared properties: no extra key may be one."""
    min_properties: int = 0
    max_properties: int | None = None
    description: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Union:
    """Any of several nodes."""

    options: tuple[Node, ...]
    """At least two, flat, unequal."""


@dataclass(frozen=True, slots=True)
class AnyJson:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A definition of the schema, by name: how recursion is written."""

    name: str


@dataclass(frozen=True, slots=True)
class Never:
    """No value at all."""

    reason: str
    path: str = "$"


@dataclass(frozen=True, slots=True)
class Embedded:
    """A JSON string whose text is itself the JSON of a node, in compact form."""

    node: Node


Node: TypeAlias = (
    Labels
    | String
    | Integer
    | Number
    | Fixed
    | Array
    | Object
    | Union
    | AnyJson
    | Embedded
    | Ref
    | Never
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A root node and the definitions it refers to."""

    root: Node
    definitions: Mapping[str, Node]
    title: str = "schema"
    """How error messages call it."""


def json_text(value: object) -> bytes:
    """Canonical JSON of a scalar: `json_text("é")` is `b'"é"'` in UTF-8.

    Raises:
        UnicodeEncodeError: the value holds a lone surrogate, which no UTF-8 text can.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")


def labels(texts: Iterable[bytes]) -> Labels | Never:
    """Labels from JSON texts in any order, doubles allowed."""
    declared = tuple(dict.fromkeys(texts))
    if not declared:
        return Never("the set of choices is empty")
    return Labels(tuple(sorted(declared)), declared)


def integer(minimum: int | None, maximum: int | None) -> Integer | Never:
    """An integer between inclusive bounds; contradictory bounds are `Never`."""
    if minimum is not None and maximum is not None and minimum > maximum:
        return Never(f"no integer is at least {minimum} and at most {maximum}")
    return Integer(minimum, maximum)


def number(
    minimum: float | None, maximum: float | None, above: bool = False, below: bool = False
) -> Number | Never:
    """A number between bounds (exclusive where `above` or `below` says so)."""
    if minimum is not None and math.isinf(minimum):
        minimum = None if minimum < 0 else minimum
    if maximum is not None and math.isinf(maximum):
        maximum = None if maximum > 0 else maximum
    low = -math.inf if minimum is None else minimum
    high = math.inf if maximum is None else maximum
    empty = low > high or (low == high and (above or below))
    if empty or math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf:
        signs = ">" if above else ">=", "<" if below else "<="
        return Never(f"no number is {signs[0]} {minimum} and {signs[1]} {maximum}")
    first, last = number_grid(minimum, maximum, above, below)
    if first > last:
        return Never(
            f"no number with at most {FRACTION_DIGITS} digits after the point lies between "
            f"{minimum} and {maximum}"
        )
    return Number(minimum, maximum, above and minimum is not None, below and maximum is not None)


def string(min_length: int, max_length: int | None) -> String | Never:
    """A string between inclusive lengths; contradictory bounds are `Never`."""
    if max_length is not None and min_length > max_length:
        return Never(f"min_length {min_length} is more than max_length {max_length}")
    return String(min_length, max_length)


def fixed(low: int, high: int, places: int, step: int = 1) -> Fixed | Never:
    """Multiples of `step` on the grid of 10**-places; bounds without any are `Never`."""
    first, last = -(-low // step) * step, high // step * step
    if first > last:
        return Never(f"no multiple of {step}/10^{places} lies between {low} and {high} steps")
    return Fixed(first, last, places, step)


def map_of(key: Node, value: Node) -> Object | Labels:
    """An object with free keys; one whose values are impossible is the label `{}`."""
    return Labels((b"{}",)) if isinstance(value, Never) else Object(extras=(Extra(key, value),))


def array(
    item: Node,
    min_items: int,
    max_items: int | None,
    prefix: Iterable[Node] = (),
    contains: Iterable[Contains] = (),
    unique: bool = False,
) -> Array | Labels | Never:
    """An array; one that can only be empty is the label `[]`."""
    first = tuple(prefix)
    impossible = next((i for i, node in enumerate(first) if isinstance(node, Never)), None)
    if impossible is not None:
        never, first = first[impossible], first[:impossible]
        item = never
    if isinstance(item, Never):
        max_items = len(first) if max_items is None else min(max_items, len(first))
    if max_items is not None and min_items > max_items:
        if isinstance(item, Never) and min_items > len(first):
            return item
        return Never(f"min_items {min_items} is more than max_items {max_items}")
    kept = tuple(part for part in contains if part.minimum or part.maximum is not None)
    needed = max((part.minimum for part in kept), default=0)
    if max_items is not None and needed > max_items:
        return Never(f"it must contain {needed} items but has at most {max_items}")
    if max_items == 0:
        return Labels((b"[]",))
    if max_items is not None:
        first = first[:max_items]
        if len(first) == max_items:
            item = Never("no more items")
    return Array(item, max(min_items, needed), max_items, first, kept, unique)


def union(options: Iterable[Node]) -> Node:
    """Any of `options`: nested unions are flattened, labels merged, impossible options dropped."""
    flat: dict[Node, None] = {}
    texts: list[bytes] = []
    impossible: Never | None = None
    for option in _flatten(options):
        match option:
            case Never():
                impossible = impossible or option
            case Labels():
                texts.extend(option.declared or option.texts)
            case _:
                flat[option] = None
    if texts:
        flat[labels(texts)] = None
    if not flat:
        return impossible or Never("a union without options")
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def _flatten(options: Iterable[Node]) -> Iterable[Node]:
    for option in options:
        if isinstance(option, Union):
            yield from option.options
        else:
            yield option
