"""Whether a node admits a JSON value: the meaning of nodes, as a validator."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, assert_never

from structgen.schema.jsonschema.definitions import Definitions
from structgen.schema.jsonschema.kinds import label_value
from structgen.schema.jsonschema.languages import fits
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Choice,
    Contains,
    Embedded,
    Extra,
    Fixed,
    Integer,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Parts,
    Raw,
    Ref,
    Selection,
    String,
    Union,
    Verbatim,
    json_text,
)


def admits(definitions: Definitions | Mapping[str, Node], node: Node, value: object) -> bool:
    """Whether `value`, as `json.loads` gives it, is one of the values of `node`.

    A number counts by its value, however it was written; the order of properties does not count.

    Example: `admits({}, Integer(0, 9), 7.0)` is True.
    """
    match node:
        case Labels():
            text = label_text(value)
            at = bisect_left(node.texts, text)
            return at < len(node.texts) and node.texts[at] == text
        case String():
            return isinstance(value, str) and fits_string(node, value)
        case Integer() | Number() | Fixed():
            return _is_number(value) and fits_number(node, value)
        case Array():
            return isinstance(value, list) and _fits_array(definitions, node, value)
        case Object():
            return isinstance(value, dict) and _fits_object(definitions, node, value)
        case Union():
            return any(admits(definitions, option, value) for option in node.options)
        case Ref():
            return admits(definitions, _target(definitions, node), value)
        case Embedded():
            return isinstance(value, str) and _fits_embedded(definitions, node, value)
        case AnyJson():
            return True
        case Never():
            return False
        case Choice() | Selection() | Verbatim() | Raw() | Parts():
            raise AssertionError("no JSON Schema has such parts")
        case _:
            assert_never(node)


def _target(definitions: Definitions | Mapping[str, Node], node: Ref) -> Node:
    if isinstance(definitions, Definitions):
        return definitions.resolve(node)
    return definitions[node.name]


def label_text(value: object) -> bytes:
    """How a label writes a value: `1.0` is `1`; parts of no label are the empty text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == [] and isinstance(value, list):
        return b"[]"
    if isinstance(value, list | dict):
        return b"" if value else b"{}"
    if _is_huge(value):
        return b""
    try:
        return json_text(value)
    except (UnicodeEncodeError, ValueError):  # a lone surrogate, NaN or infinity: no JSON
        return b""


def _is_huge(value: object) -> bool:
    """Whether Python would refuse to write a number."""
    return isinstance(value, int) and value.bit_length() > 13_000


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def fits_string(node: String, text: str) -> bool:
    """Whether a string has the length and the form that a node asks for."""
    if len(text) < node.min_length or text in node.excluded:
        return False
    if node.max_length is not None and len(text) > node.max_length:
        return False
    return all(fits(pattern, text) for pattern in node.patterns)


def fits_number(node: Integer | Number | Fixed, value: Any) -> bool:
    """Whether a number lies within the bounds and on the grid of a node."""
    if isinstance(node, Integer):
        if isinstance(value, float) and not value.is_integer():
            return False
        low, high = node.minimum, node.maximum
        return (low is None or value >= low) and (high is None or value <= high)
    if isinstance(node, Fixed):
        if isinstance(value, float) and not math.isfinite(value):
            return False
        scaled = exact(value) * 10**node.places
        whole = scaled.denominator == 1 and scaled.numerator % node.step == 0
        outside = all(scaled.numerator % gap for gap in node.gaps)
        return whole and outside and node.low <= scaled <= node.high
    if node.gaps and (not math.isfinite(value) or any(exact(value) % g == 0 for g in node.gaps)):
        return False
    low, high = node.minimum, node.maximum
    if low is not None and not (value > low if node.exclusive_minimum else value >= low):
        return False
    return high is None or (value < high if node.exclusive_maximum else value <= high)


def exact(value: float) -> Fraction:
    """The decimal number that a float is written as: `exact(0.1)` is 1/10."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _fits_array(
    definitions: Definitions | Mapping[str, Node], node: Array, items: list[Any]
) -> bool:
    if len(items) < node.min_items or (node.max_items is not None and len(items) > node.max_items):
        return False
    first = len(node.prefix)
    if not all(admits(definitions, n, v) for n, v in zip(node.prefix, items, strict=False)):
        return False
    if not all(admits(definitions, node.item, item) for item in items[first:]):
        return False
    if node.unique and not _are_unique(items):
        return False
    return all(_fits_contains(definitions, part, items) for part in node.contains)


def _fits_contains(
    definitions: Definitions | Mapping[str, Node], part: Contains, items: list[Any]
) -> bool:
    found = [admits(definitions, part.item, item) for item in items]
    count = sum(found)
    if part.maximum is None:
        return count >= part.minimum
    rest = (item for item, is_kind in zip(items, found, strict=True) if not is_kind)
    return part.minimum <= count <= part.maximum and all(
        admits(definitions, part.rest, item) for item in rest
    )


def _are_unique(items: Sequence[Any]) -> bool:
    return len({comparable(item) for item in items}) == len(items)


def comparable(value: Any) -> Any:
    """A value with JSON's equality that can be put into a set."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return ("list", tuple(comparable(item) for item in value))
        case dict():
            return ("dict", frozenset((key, comparable(part)) for key, part in value.items()))
        case _:
            return value


def _fits_object(
    definitions: Definitions | Mapping[str, Node], node: Object, members: dict[str, Any]
) -> bool:
    if len(members) < node.min_properties:
        return False
    if node.max_properties is not None and len(members) > node.max_properties:
        return False
    declared = {part.name: part for part in node.properties}
    if any(part.required and part.name not in members for part in node.properties):
        return False
    for key, value in members.items():
        part = declared.get(key)
        if part is not None:
            if not admits(definitions, part.node, value):
                return False
        elif key in node.reserved or not any(
            admits(definitions, extra.value, value) for extra in extras_for(node, key)
        ):
            return False
    return True


def extras_for(node: Object, key: str) -> Iterator[Extra]:
    """The kinds of undeclared properties that a key can belong to."""
    for extra in node.extras:
        if fits_key(extra.key, key):
            yield extra


def fits_key(key: Node, text: str) -> bool:
    """Whether a property's name fits the key of an `Extra`."""
    if isinstance(key, String):
        return fits_string(key, text)
    return admits({}, key, text)


def _fits_embedded(
    definitions: Definitions | Mapping[str, Node], node: Embedded, text: str
) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return admits(definitions, node.node, value)


def admits_label(definitions: Definitions, node: Node, text: bytes) -> bool:
    """Whether a node admits the value that a label stands for."""
    return admits(definitions, node, label_value(text))
