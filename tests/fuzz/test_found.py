"""Schemas that random search once found to be enforced wrongly, or to end in a dead end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.check import exact_or_refused

SHORT = {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 2}]}
FOUND: dict[str, dict[str, Any]] = {
    "an impossible declared key that fits a pattern": {
        "type": "array",
        "prefixItems": [
            {
                "type": "object",
                "properties": {"a": {"type": "array"}, "c": {"type": "string"}},
                "required": ["c"],
                "additionalProperties": False,
                "patternProperties": {"^a": {"type": "string", "maxLength": 1}},
            }
        ],
        "contains": SHORT,
        "minContains": 0,
        "maxContains": 2,
    },
    "one value read in two ways before a comma": {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 1},
        "prefixItems": [{"type": "string", "pattern": "a", "maxLength": 5}],
        "contains": {"const": 1},
        "uniqueItems": True,
    },
    "different items of too few choices, inside of different items": {
        "type": "array",
        "uniqueItems": True,
        "items": {
            "type": "array",
            "prefixItems": [
                {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True}
            ],
        },
    },
    "a free key whose value is endless": {
        "type": "object",
        "properties": {"c": {"enum": [{"a": 1}, 1]}},
        "additionalProperties": {"$ref": "#/$defs/t"},
        "propertyNames": {"maxLength": 2},
        "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 1}},
    },
    "different items of a prefix under a budget": {
        "type": "array",
        "prefixItems": [{"type": "number"}, {"type": "boolean"}, {"type": "null"}],
        "uniqueItems": True,
        "minItems": 2,
        "maxItems": 2,
    },
    "different objects that need an optional property": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"ab": {"type": "array", "maxItems": 1}, "c": {"type": "number"}},
            "required": ["c"],
            "additionalProperties": False,
            "minProperties": 2,
        },
        "uniqueItems": True,
        "minItems": 3,
    },
    "different arrays of different strings": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "uniqueItems": True,
    },
    "a string that contradicts its length among free values": {
        "type": "object",
        "additionalProperties": {"type": "string", "pattern": "^[0-9]{4}$", "maxLength": 3},
    },
    "a contained object that declares what others may name freely": {
        "type": "array",
        "contains": {
            "type": "object",
            "properties": {"a": {"const": {"a": [1]}}, "ab": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        "maxContains": 1,
    },
}
REFUSED = {"a contained object that declares what others may name freely"}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    compiled = [exact_or_refused(FOUND[name], seed, count=6) for seed in range(8)]
    assert compiled == [name not in REFUSED] * 8
