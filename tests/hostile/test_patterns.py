"""Patterns that explode, and texts and names that no file should hold."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.compiler import CompiledSchema
from structgen.errors import SchemaError, StructgenError, UnsatisfiableSchemaError
from tests.hostile.bounds import EITHER, assert_ends

LETTERS = "abcdefghijklmnopqrst"
EVERY_OTHER = "".join(chr(0x4E00 + 2 * i) for i in range(10_000))
REFUSED = StructgenError

PATTERNS: dict[str, tuple[str, Any]] = {
    "same options": ("(a|a)*b{1000}", CompiledSchema),
    "same options, whole": ("^(a|a)*b{1000}$", CompiledSchema),
    "counts of counts": ("(a{0,1000}){0,1000}", REFUSED),
    "counts of counts, whole": ("^((a{0,100}){0,100}){0,100}$", REFUSED),
    "stars of stars": ("^((a*)*)*$", CompiledSchema),
    "many look-aheads": ("".join(f"(?=.*{c})" for c in LETTERS), REFUSED),
    "many look-aheads, whole": ("^" + "".join(f"(?=.*{c})" for c in LETTERS) + ".*$", REFUSED),
    "many negative look-aheads": (
        "^" + "".join(f"(?!.*{c}{c})" for c in LETTERS) + ".*$", CompiledSchema,
    ),
    "nested look-aheads": ("^" + "(?=a" * 200 + ")" * 200, REFUSED),
    "long look-ahead": ("^(?!" + "a" * 2000 + ").*$", CompiledSchema),
    "exponential": ("^(a|b)*a(a|b){20}$", REFUSED),
    "twice exponential": ("a.{30}b.{30}c", REFUSED),
    "giant class": (f"^[{EVERY_OTHER}]+$", CompiledSchema),
    "giant negative class": (f"^[^{EVERY_OTHER}]{{0,200}}$", CompiledSchema),
    "deep groups": ("(" * 10_000 + "a" + ")" * 10_000, REFUSED),
    "deep options": ("^" + "(a|" * 500 + "b" + ")" * 500, REFUSED),
    "many words": ("^(" + "|".join(f"word{i}" for i in range(3_000)) + ")$", EITHER),
    "count of a million": ("^a{1000000}$", REFUSED),
    "count of 5,000 digits": ("^a{" + "9" * 5000 + "}$", REFUSED),
    "optional letters": ("^" + "a?" * 1000 + "a" * 1000 + "$", REFUSED),
    "megabyte": ("a" * 1_000_000, REFUSED),
    "many quantifiers": ("a" + "?" * 10_000, REFUSED),
    "many braces": ("{" * 10_000, EITHER),
    "many boundaries": (r"\b" * 500, EITHER),
    "large character": (r"^\u{" + "1" * 5000 + "}$", EITHER),
    "categories": (r"^[\p{L}\p{N}\p{M}]{0,100}$", EITHER),
    "dots": (".*" * 500, CompiledSchema),
    "back-reference": (r"^(a)\1$", SchemaError),
    "NUL": ("^\0+$", CompiledSchema),
    "escaped NUL": (r"^\0\x00\u0000$", CompiledSchema),
    "lone surrogate": ("^\ud800$", SchemaError),
    "escaped lone surrogate": (r"^\ud800$", UnsatisfiableSchemaError),
    "not closed": ("(", SchemaError),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name):
    source, expected = PATTERNS[name]
    assert_ends({"type": "string", "pattern": source}, expected)


COMBINED: dict[str, Any] = {
    "names": {"type": "object", "patternProperties": {"^(a|b)*a(a|b){20}$": {}}},
    "all of 20": {"type": "string", "allOf": [{"pattern": f"{c}.*{c}"} for c in LETTERS]},
    "none of 20": {
        "type": "string", "allOf": [{"not": {"pattern": f"{c}.*{c}"}} for c in LETTERS],
    },
    "one of 8": {"type": "string", "oneOf": [{"pattern": f"{c}.*{c}"} for c in LETTERS[:8]]},
    "with lengths": {
        "type": "string", "pattern": "^(ab|c)*$", "minLength": 5000, "maxLength": 10_000,
    },
    "100 large ones": {
        "type": "object",
        "properties": {
            f"p{i}": {"type": "string", "pattern": f"(a|b)*a(a|b){{12}}{i}"} for i in range(100)
        },
    },
    "formats": {
        "type": "string",
        "oneOf": [{"format": f} for f in ("email", "uri", "hostname", "uri-reference", "ipv6")],
    },
    "30 overlapping names": {
        "type": "object",
        "patternProperties": {f"a{{{i}}}": {"minLength": i} for i in range(30)},
    },
    "30 names overlapping in pairs": {
        "type": "object",
        "patternProperties": {f"{chr(97 + i % 26)}{i // 26}": {"minLength": i} for i in range(30)},
    },
}  # fmt: skip
HEAVY = ("all of 20", "none of 20", "one of 8", "100 large ones", "formats", "30 overlapping names")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * (name in HEAVY)) for name in COMBINED]
)
def test_combined_patterns(name):
    assert_ends(COMBINED[name])


LONE = ("\ud800", "a\udc00b")
STRANGE = ("\0", '\x01"\\', "\u2028", "\ufeff", "\U0010ffff")


def places(text: str) -> list[dict[Any, Any]]:
    """Schemas with a text in every place that could hold one."""
    return [
        {"enum": [text, "ok"]},
        {"const": text},
        {"const": {text: [text]}},
        {"type": "object", "properties": {text: {"type": "integer"}}, "required": [text]},
        {"type": "object", "properties": {text: {"type": "integer"}}},
        {"type": "object", "required": [text]},
        {"type": "object", "propertyNames": {"enum": [text, "b"]}},
        {"type": "object", "dependentRequired": {text: [text + "x"]}},
        {"type": "object", "dependentSchemas": {text: {"type": "strin"}}},
        {"type": "string", "not": {"const": text}},
        {"type": "string", "format": text},
        {"type": text},
        {"properties": {text: {"type": "strin"}}},
        {"patternProperties": {text: {"type": "strin"}}},
        {"title": text, "type": "strin"},
        {"title": text, "description": text, "default": text, "type": "string"},
        {"$schema": text},
        {"$id": f"http://{text}/", "$ref": "x"},
        {"$ref": f"#/$defs/{text}", "$defs": {text: {"type": "integer"}}},
        {"$ref": f"#{text}", "$defs": {"x": {"$anchor": text}}},
        {text: 1},
    ]


@pytest.mark.parametrize("text", [*LONE, *STRANGE], ids=ascii)
def test_strange_texts(text):
    for schema in places(text):
        assert_ends(schema)


@pytest.mark.parametrize("text", LONE, ids=ascii)
def test_what_is_not_text_is_never_part_of_a_value(text):
    for schema in places(text)[:4]:
        assert_ends(schema, SchemaError)
