"""Alternatives that multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from structgen.compiler import CompiledSchema
from tests.hostile.bounds import EITHER, assert_ends
from tests.hostile.test_nesting import TEXT, nested


def similar(i: int, **others: Any) -> dict[str, Any]:
    """An object that differs from others only in its last, optional property."""
    names = {f"common{j}": TEXT for j in range(5)}
    properties = {**names, f"own{i}": {"type": "integer"}}
    return {"type": "object", "properties": properties, "required": list(names), **others}


def closed(i: int) -> dict[str, Any]:
    return similar(i, additionalProperties=False)


FIFTY = range(50)
TAGS = [f"v{i}" for i in range(100)]

ALTERNATIVES: dict[str, tuple[Callable[[], Any], Any]] = {
    "anyOf 50 alike": (lambda: {"anyOf": [similar(i) for i in FIFTY]}, CompiledSchema),
    "anyOf 50 alike, closed": (lambda: {"anyOf": [closed(i) for i in FIFTY]}, CompiledSchema),
    "oneOf 50 alike": (lambda: {"oneOf": [similar(i) for i in FIFTY]}, EITHER),
    "oneOf 50 alike, closed": (lambda: {"oneOf": [closed(i) for i in FIFTY]}, EITHER),
    "array of 50 alike": (
        lambda: {"type": "array", "items": {"anyOf": [similar(i) for i in FIFTY]}},
        CompiledSchema,
    ),
    "recursive 50 alike": (
        lambda: {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"x": {"$ref": "#"}, f"k{i}": {"type": "integer"}},
                    "additionalProperties": False,
                }
                for i in FIFTY
            ]
        },
        EITHER,
    ),
    "not 20 alike": (lambda: {"not": {"anyOf": [similar(i) for i in range(20)]}}, EITHER),
    "allOf 200": (
        lambda: {"allOf": [{"type": "object", "properties": {f"p{i}": TEXT}} for i in range(200)]},
        CompiledSchema,
    ),
    "allOf 200 alike": (lambda: {"allOf": [similar(0)] * 200}, CompiledSchema),
    "allOf 200 lengths": (
        lambda: {"type": "string", "allOf": [{"minLength": i} for i in range(200)]},
        CompiledSchema,
    ),
    "allOf of anyOf": (
        lambda: {
            "allOf": [
                {"anyOf": [{"properties": {f"a{i}": {"const": j}}} for j in range(5)]}
                for i in range(12)
            ]
        },
        EITHER,
    ),
    "allOf of oneOf": (
        lambda: {
            "allOf": [
                {"oneOf": [{"required": [f"a{i}{j}"]} for j in range(3)]} for i in range(10)
            ]
        },
        EITHER,
    ),
    "100 conditions": (
        lambda: {
            "type": "object",
            "properties": {"t": {"enum": TAGS}},
            "allOf": [
                {
                    "if": {"properties": {"t": {"const": tag}}, "required": ["t"]},
                    "then": {"required": [f"x{tag}"]},
                }
                for tag in TAGS
            ],
        },
        EITHER,
    ),
    "nested conditions": (
        lambda: nested(
            30,
            lambda part: {
                "if": {"properties": {"t": {"const": "x"}}, "required": ["t"]},
                "then": {"required": ["y"]},
                "else": part,
            },
        ),
        EITHER,
    ),
    "nested anyOf of properties": (
        lambda: nested(
            8,
            lambda part: {
                "type": "object",
                "properties": {"a": {"anyOf": [part, part]}, "b": {"anyOf": [part, TEXT]}},
            },
        ),
        EITHER,
    ),
    "nested not": (
        lambda: {
            "not": nested(
                8, lambda part: {"properties": {"a": part, "b": part}, "required": ["a"]}
            )
        },
        EITHER,
    ),
    "chain of needs": (
        lambda: {
            "type": "object",
            "properties": {f"p{i}": {"type": "integer"} for i in FIFTY},
            "dependentRequired": {f"p{i}": [f"p{i + 1}"] for i in range(49)},
        },
        EITHER,
    ),
    "everything needs everything": (
        lambda: {
            "type": "object",
            "dependentRequired": {
                f"p{i}": [f"p{j}" for j in range(100)] for i in range(100)
            },
        },
        EITHER,
    ),
    "dependent schemas": (
        lambda: {
            "type": "object",
            "dependentSchemas": {f"p{i}": {"required": [f"q{i}"]} for i in range(15)},
        },
        EITHER,
    ),
    "half of 60": (
        lambda: {
            "type": "object",
            "properties": {f"p{i}": {"type": "integer"} for i in range(60)},
            "minProperties": 20,
            "maxProperties": 40,
        },
        EITHER,
    ),
    "many contents": (
        lambda: {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(12)]},
        EITHER,
    ),
    "unevaluated": (
        lambda: {
            "allOf": [
                {"anyOf": [{"properties": {f"a{i}{j}": {}}} for j in range(4)]} for i in range(6)
            ],
            "unevaluatedProperties": False,
        },
        EITHER,
    ),
    "unique of 1,000": (
        lambda: {
            "type": "array",
            "uniqueItems": True,
            "items": {"enum": list(range(1000))},
            "minItems": 500,
        },
        EITHER,
    ),
}  # fmt: skip


HEAVY = ("half of 60", "chain of needs")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] * (name in HEAVY)) for name in ALTERNATIVES],
)
def test_alternatives(name):
    make, expected = ALTERNATIVES[name]
    assert_ends(make(), expected)


@pytest.mark.soak
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_nested_alternatives(keyword):
    schema = nested(
        10,
        lambda part: {
            keyword: [
                part,
                {"type": "object", "properties": {"a": part}, "required": ["a"]},
                {"type": "array", "items": part},
            ]
        },
    )
    assert_ends(schema)
