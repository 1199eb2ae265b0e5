"""Schemas that are large, or ask for large values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from structgen.compiler import CompiledSchema
from structgen.errors import LimitError, SchemaError, StructgenError
from structgen.schema.load import load_schema
from tests.hostile.bounds import EITHER, assert_ends

BILLION = 10**9
PRIME = 2**61 - 1
"""Python's hash of a whole number is the number modulo this one."""


class SameHash(str):
    """A text whose hash is the same for all."""

    def __hash__(self) -> int:
        return 1


def properties(count: int, **others: Any) -> dict[str, Any]:
    names = {f"p{i}": {"type": "integer"} for i in range(count)}
    return {"type": "object", "properties": names, **others}


LARGE: dict[str, tuple[Callable[[], Any], Any]] = {
    "enum of 10 MB": (
        lambda: {"enum": [f"label number {i:08d}, of many" for i in range(350_000)]},
        CompiledSchema,
    ),
    "enum of one text of 10 MB": (lambda: {"enum": ["x" * 10_000_000]}, LimitError),
    "enum of numbers": (lambda: {"enum": list(range(500_000))}, CompiledSchema),
    "enum of numbers with one hash": (
        lambda: {"enum": [i * PRIME for i in range(1, 20_001)]},
        CompiledSchema,
    ),
    "enum of beginnings": (lambda: {"enum": ["a" * i for i in range(3000)]}, CompiledSchema),
    "enum of objects": (lambda: {"enum": [{"a": i, "b": [i]} for i in range(1_000)]}, EITHER),
    "many excluded texts": (
        lambda: {"type": "string", "not": {"enum": [f"k{i}" for i in range(100_000)]}},
        SchemaError,
    ),
    "enum met by enum": (
        lambda: {
            "allOf": [
                {"enum": [f"k{i}" for i in range(50_000)]},
                {"enum": [f"k{2 * i}" for i in range(50_000)]},
            ]
        },
        CompiledSchema,
    ),
    "20,000 properties": (lambda: properties(20_000), LimitError),
    "5,000 closed properties": (
        lambda: properties(5_000, additionalProperties=False),
        EITHER,
    ),
    "2,000 required names": (
        lambda: {"type": "object", "required": [f"p{i}" for i in range(2_000)]},
        EITHER,
    ),
    "names with one hash": (
        lambda: {
            "type": "object",
            "properties": {SameHash(f"p{i}"): {} for i in range(400)},
            "required": [SameHash(f"p{i}") for i in range(400)],
        },
        EITHER,
    ),
    "names with one beginning": (
        lambda: {"type": "object", "properties": {"a" * 1000 + str(i): {} for i in range(500)}},
        EITHER,
    ),
    "name of 10 MB": (
        lambda: {"type": "object", "properties": {"n" * 10_000_000: {"type": "integer"}}},
        LimitError,
    ),
    "15,000 prefix items": (
        lambda: {"type": "array", "prefixItems": [{"type": "integer"}] * 15_000},
        EITHER,
    ),
    "description of 20 MB": (
        lambda: {"type": "string", "description": "x" * 20_000_000},
        CompiledSchema,
    ),
    "title of 10 MB": (lambda: {"type": "strin", "title": "x" * 10_000_000}, SchemaError),
    "type of 5 MB": (lambda: {"type": "x" * 5_000_000}, SchemaError),
    "name of 5 MB with a fault": (
        lambda: {"properties": {"n" * 5_000_000: {"type": "strin"}}},
        SchemaError,
    ),
    "20,000 faults": (
        lambda: {"properties": {f"p{i}": {"type": "strin"} for i in range(20_000)}},
        SchemaError,
    ),
    "reference of 4 MB": (lambda: {"$ref": "#/" + "a/" * 2_000_000}, SchemaError),
    "format of 5 MB": (lambda: {"type": "string", "format": "f" * 5_000_000}, EITHER),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_schemas(name):
    make, expected = LARGE[name]
    assert_ends(make(), expected)


def test_all_faults_are_kept_though_few_are_shown():
    schema = {"properties": {f"p{i}": {"type": "strin"} for i in range(500)}}
    with pytest.raises(SchemaError, match="and 400 more") as caught:
        load_schema(schema)
    assert len(caught.value.faults) == 500


HEAVY: dict[str, Callable[[], Any]] = {
    "enum of 100,000 objects": lambda: {"enum": [{"a": i, "b": [i]} for i in range(100_000)]},
    "enum met by a pattern": lambda: {
        "enum": [f"k{i}" for i in range(200_000)],
        "pattern": "^k[0-9]*7$",
    },
    "100,000 properties": lambda: properties(100_000),
    "100,000 prefix items that differ": lambda: {
        "type": "array",
        "prefixItems": [{"const": i} for i in range(100_000)],
    },
    "1,000 patterns of names": lambda: {
        "type": "object",
        "patternProperties": {f"^k{i}_": {"type": "integer"} for i in range(1000)},
        "additionalProperties": False,
    },
    "100,000 required properties": lambda: properties(
        100_000, required=[f"p{i}" for i in range(100_000)], additionalProperties=False
    ),
    "200 large patterns": lambda: {
        "type": "object",
        "properties": {
            f"p{i}": {"type": "string", "pattern": f"^(a|b){{0,{300 + i}}}c{i}$"}
            for i in range(200)
        },
    },
}


@pytest.mark.soak
@pytest.mark.parametrize("name", HEAVY)
def test_heavy_schemas(name):
    assert_ends(HEAVY[name]())


BOUNDS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "array", "minItems": BILLION}, LimitError),
    ({"type": "array", "maxItems": BILLION}, CompiledSchema),
    ({"type": "array", "minItems": 10**6, "maxItems": BILLION}, CompiledSchema),
    ({"type": "array", "contains": {"const": 1}, "minContains": BILLION}, LimitError),
    ({"type": "array", "contains": {"const": 1}, "maxContains": BILLION}, EITHER),
    ({"type": "array", "uniqueItems": True, "minItems": BILLION}, EITHER),
    ({"type": "string", "minLength": BILLION}, LimitError),
    ({"type": "string", "maxLength": BILLION}, CompiledSchema),
    ({"type": "string", "minLength": 10**6}, CompiledSchema),
    ({"type": "string", "pattern": "^(ab)*$", "minLength": BILLION}, StructgenError),
    ({"type": "string", "pattern": "a", "maxLength": BILLION}, EITHER),
    ({"type": "object", "minProperties": BILLION}, EITHER),
    ({"type": "object", "maxProperties": BILLION}, CompiledSchema),
    ({"type": "object", "required": ["a"], "maxProperties": 5000}, CompiledSchema),
    ({"type": "array", "maxItems": 1e300}, CompiledSchema),
    ({"type": "array", "minItems": 1e300}, LimitError),
    ({"type": "string", "minLength": math.nan}, SchemaError),
    (
        {"type": "array", "minItems": 1000, "items": {"type": "array", "minItems": 1000,
         "items": {"type": "array", "minItems": 1000, "items": {"minLength": 1000}}}},
        EITHER,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), BOUNDS, ids=range(len(BOUNDS)))
def test_huge_bounds(schema, expected):
    assert_ends(schema, expected)


NEEDS: list[tuple[dict[str, Any], str]] = [
    ({"type": "array", "minItems": BILLION}, "$: min_items=1000000000"),
    ({"properties": {"a": {"items": {"type": "string", "minLength": BILLION}}}}, "$.a[*]: min_le"),
    ({"properties": {"a": {"type": "number", "multipleOf": 1e308}}}, "$.a: the multiples"),
    (properties(1500), "$: an object with 1500 properties"),
]


@pytest.mark.parametrize(("schema", "words"), NEEDS, ids=range(len(NEEDS)))
def test_limits_name_the_place(schema, words):
    assert_ends(schema, LimitError, words)
