"""Numbers of any size in any place, and Python objects that are no JSON."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from structgen.compiler import CompiledSchema
from structgen.errors import SchemaError, UnsupportedSchemaError
from tests.hostile.bounds import EITHER, assert_ends

LONG = 10**4999 + 7
"""More digits than Python turns into text."""


def places(number: Any) -> list[dict[Any, Any]]:
    """Schemas with a number in every place where one, or anything else, could be."""
    return [
        {"type": "integer", "minimum": number},
        {"type": "integer", "maximum": number},
        {"type": "integer", "minimum": -1, "exclusiveMaximum": number},
        {"type": "number", "exclusiveMinimum": number, "multipleOf": 0.1},
        {"type": "number", "maximum": number},
        {"type": "integer", "multipleOf": number},
        {"type": "number", "multipleOf": number},
        {"const": number},
        {"const": {"a": [number]}},
        {"enum": [number, 1, "a"]},
        {"enum": [number, 6], "multipleOf": 3, "minimum": 0},
        {"type": "integer", "not": {"const": number}},
        {"oneOf": [{"const": number}, {"const": 5}]},
        {"oneOf": [{"type": "integer", "minimum": number}, {"type": "integer", "maximum": 5}]},
        {"type": "string", "minLength": number},
        {"type": "string", "maxLength": number},
        {"type": "string", "pattern": "^a", "maxLength": number},
        {"type": "array", "minItems": number},
        {"type": "array", "maxItems": number},
        {"type": "array", "contains": {"const": 1}, "minContains": number},
        {"type": "array", "contains": {"const": 1}, "maxContains": number},
        {"type": "array", "contains": {"const": number}},
        {"type": "object", "minProperties": number},
        {"type": "object", "maxProperties": number},
        {"type": number},
        {"type": ["string", number]},
        {"type": "object", "required": [number]},
        {"type": "object", "dependentRequired": {"a": [number]}},
        {"type": "string", "format": number},
        {"type": "string", "pattern": number},
        {"type": "array", "uniqueItems": number},
        {"title": number, "default": number, "x-unknown": number, "type": "string"},
        {"title": number, "type": "strin"},
        {"items": number},
        {"additionalProperties": number},
        {"anyOf": [number]},
        {"allOf": number},
        {"enum": number},
        {"$ref": number},
        {"$id": number},
        {"$schema": number},
        {"$defs": number},
    ]


def keyed(key: Any) -> list[dict[Any, Any]]:
    """Schemas with a key that is no text."""
    return [
        {key: 1},
        {"properties": {key: {"type": "strin"}}},
        {"patternProperties": {key: {}}},
        {"$defs": {key: {}}},
        {"dependentRequired": {key: ["a"]}},
        {"dependentSchemas": {key: {}}},
        {"const": {key: 1}},
    ]


@pytest.mark.parametrize("number", [LONG, -LONG, 0, -0.0, -1, 5e-324], ids=range(6))
def test_numbers(number):
    for schema in places(number):
        assert_ends(schema)


@pytest.mark.soak
@pytest.mark.parametrize(
    "number", [10**400, 10**20, 2**63, 1e308, -1e308, 1e-300, 1e16, 0.1], ids=range(8)
)
def test_numbers_that_are_slow_to_divide(number):
    for schema in places(number):
        assert_ends(schema)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(number):
    for schema in places(number)[:31]:
        assert_ends(schema, SchemaError)
    for schema in places(number)[31:]:
        assert_ends(schema)


@pytest.mark.parametrize("key", [1, None, LONG, 1.5, (1, 2), b"a", math.nan], ids=range(7))
def test_keys_that_are_no_text(key):
    for schema in keyed(key):
        assert_ends(schema)


class Hostile:
    """Comparing or hashing it fails."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        raise RuntimeError("hashed")

    def __repr__(self) -> str:
        raise RuntimeError("shown")


STRANGERS: list[Any] = [
    b"a", {1, 2}, (1, 2), object(), Hostile(), Decimal("1.5"), Decimal("sNaN"), np.int64(3), 1j,
    range(3), int, len, {}, [], [[]], True, None, "9" * 5000, {"a": Hostile()}, [Hostile()],
]  # fmt: skip


@pytest.mark.parametrize("stranger", STRANGERS, ids=range(len(STRANGERS)))
def test_python_objects(stranger):
    for schema in places(stranger):
        assert_ends(schema)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "number", "minimum": 1e308}, CompiledSchema),
        ({"type": "number", "maximum": -1e308}, CompiledSchema),
        ({"type": "number", "minimum": 1e308, "maximum": 1.1e308}, CompiledSchema),
        ({"type": "number", "minimum": 1e-308, "maximum": 1.1e-308}, UnsupportedSchemaError),
        ({"type": "number", "multipleOf": 1e-300}, EITHER),
        ({"type": "integer", "multipleOf": 1e-300}, CompiledSchema),
        ({"type": "number", "multipleOf": 1e308}, EITHER),
        ({"type": "integer", "multipleOf": 1_000_003}, EITHER),
        ({"type": "integer", "multipleOf": 10**20 + 39}, EITHER),
        ({"type": "number", "multipleOf": 123.456789}, EITHER),
        ({"allOf": [{"type": "integer", "multipleOf": n} for n in range(1, 200)]}, EITHER),
        ({"allOf": [{"type": "integer", "not": {"multipleOf": n}} for n in (2, 3, 5, 7)]}, EITHER),
        ({"type": "integer", "minimum": 10**3000, "maximum": 10**3000 + 5}, CompiledSchema),
        ({"enum": [10**3990, -(10**3990)]}, CompiledSchema),
    ],
    ids=range(14),
)
def test_arithmetic(schema, expected):
    assert_ends(schema, expected)
