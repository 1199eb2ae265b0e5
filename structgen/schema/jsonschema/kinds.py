"""The six types of JSON values, as bits, and which of them a node has."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from functools import reduce
from typing import Any, assert_never

from structgen.schema.jsonschema.definitions import Definitions
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Choice,
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
)

NULL, BOOLEAN, STRING, NUMBER, ARRAY, OBJECT = (1 << i for i in range(6))
EVERY = 63

ANY_OBJECT = Object(extras=(Extra(String(), AnyJson()),))
ANY_ARRAY = Array(AnyJson())
PARTS: tuple[Node, ...] = (
    Labels((b"false", b"null", b"true")),
    String(),
    Number(),
    ANY_ARRAY,
    ANY_OBJECT,
)
"""Any JSON value, type by type."""

# Labels are sorted by bytes, so the labels of one type lie side by side.
_RANGES = (
    (STRING, b'"', b"#"),
    (NUMBER, b"-", b":"),
    (ARRAY, b"[", b"\\"),
    (BOOLEAN, b"f", b"g"),
    (NULL, b"n", b"o"),
    (BOOLEAN, b"t", b"u"),
    (OBJECT, b"{", b"|"),
)


def kinds(definitions: Definitions, node: Node) -> int:
    """The types of the values of a node, as a set of bits."""
    match node:
        case Labels():
            return _label_kinds(node)
        case String() | Embedded():
            return STRING
        case Integer() | Number() | Fixed():
            return NUMBER
        case Array():
            return ARRAY
        case Object():
            return OBJECT
        case AnyJson():
            return EVERY
        case Never():
            return 0
        case Ref():
            return kinds(definitions, definitions.resolve(node))
        case Union():
            return reduce(lambda bits, part: bits | kinds(definitions, part), node.options, 0)
        case Choice() | Selection() | Verbatim() | Raw() | Parts():
            raise AssertionError("no JSON Schema has such parts")
        case _:
            assert_never(node)


def _label_kinds(node: Labels) -> int:
    bits = 0
    for kind, low, high in _RANGES:
        first = bisect_left(node.texts, low)
        if first < len(node.texts) and node.texts[first] < high:
            bits |= kind
    return bits


def labels_of(node: Labels, kind: int) -> Iterator[bytes]:
    """The labels of some types."""
    for bits, low, high in _RANGES:
        if bits & kind:
            yield from node.texts[bisect_left(node.texts, low) : bisect_left(node.texts, high)]


def of_kinds(definitions: Definitions, node: Node, kind: int) -> tuple[Node, ...]:
    """The parts of a node that have values of some types; they may have values of others too."""
    node = definitions.resolve(node)
    if isinstance(node, AnyJson):
        return tuple(part for part in PARTS if kinds(definitions, part) & kind)
    options = node.options if isinstance(node, Union) else (node,)
    return tuple(part for part in options if kinds(definitions, part) & kind)


def label_value(text: bytes) -> Any:
    """The value that a label stands for."""
    return json.loads(text)
