"""Schemas that refer to themselves, combined with others."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.schema.jsonschema import admits, read_json_schema

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}},
}
NARROW: dict[str, Any] = {
    "type": "object",
    "properties": {"left": {"$ref": "#/$defs/narrow"}},
    "additionalProperties": False,
}
EXPRESSION: dict[str, Any] = {
    "oneOf": [
        {"type": "number"},
        {
            "type": "object",
            "properties": {
                "kind": {"const": "not"},
                "of": {"oneOf": [{"$ref": "#/$defs/e"}, {"type": "null"}]},
            },
            "required": ["kind", "of"],
        },
        {
            "type": "object",
            "properties": {
                "kind": {"const": "and"},
                "of": {"type": "array", "items": {"$ref": "#/$defs/e"}},
            },
            "required": ["kind", "of"],
        },
    ]
}
TABLE: list[tuple[Any, list[Any], list[Any]]] = [
    (
        {"$defs": {"tree": TREE, "narrow": NARROW}, "allOf": [{"$ref": "#/$defs/tree"}, NARROW]},
        [{}, {"left": {"left": {}}}],
        [{"right": {}}, {"left": {"right": {}}}, {"left": 1}],
    ),
    (
        {"$defs": {"e": EXPRESSION}, "$ref": "#/$defs/e"},
        [1, {"kind": "not", "of": None}, {"kind": "and", "of": [1, {"kind": "not", "of": 2}]}],
        [{"kind": "not", "of": "x"}, {"kind": "and", "of": [None]}, {"kind": "or", "of": 1}],
    ),
    (
        {"$defs": {"narrow": NARROW}, "not": {"$ref": "#/$defs/narrow"}},
        [1, {"x": 1}, {"left": 3}, {"left": {"left": {"x": 1}}}],
        [{}, {"left": {}}],
    ),
]

TABLE += [
    (
        {"type": "array", "items": {"items": {"const": "x"}, "$ref": "#"}},
        [[], [[]], [[], []]],
        [["x"], [["x"]], [[1]]],
    ),
    (
        {"items": {"items": {"$ref": "#"}, "$ref": "#", "maxItems": 1}, "type": "array"},
        [[], [[]], [[[]], [[]]]],
        [1, [1], [[[], []]]],
    ),
]


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"), TABLE, ids=["and", "oneOf", "not", "self", "growing"]
)
def test_recursive_schemas_are_combined(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    read = read_json_schema(schema, "test")
    assert read.faults == ()
    for value in valid:
        assert admits(read.definitions, read.root, value), value
    for value in invalid:
        assert not admits(read.definitions, read.root, value), value


def test_only_definitions_in_use_are_kept() -> None:
    read = read_json_schema({"$defs": {"a": {"type": "null"}, "b": NARROW}, "type": "null"}, "t")
    assert read.definitions == {}
