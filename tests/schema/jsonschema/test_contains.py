"""Arrays that must contain items of some kinds, against an independent validator."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.errors import LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.testing import byte_vocabulary

VALUES = [1, 2, 3, "a", [], ["a"]]
ONE, TEXT, SMALL, LARGE = {"const": 1}, {"type": "string"}, {"maximum": 2}, {"minimum": 2}
SCHEMAS: list[dict[str, Any]] = [
    {"contains": ONE, "minContains": 2, "maxItems": 2},
    {"contains": ONE, "minContains": 0, "maxContains": 1},
    {"prefixItems": [ONE], "contains": ONE, "maxContains": 1},
    {
        "prefixItems": [TEXT, {}],
        "items": {"type": ["integer", "string"]},
        "contains": {"type": "integer"},
        "maxContains": 2,
    },
    {"allOf": [{"contains": ONE, "minContains": 2}, {"contains": TEXT, "maxContains": 1}]},
    {"allOf": [{"contains": LARGE}, {"contains": SMALL}], "maxItems": 1},
    {"allOf": [{"contains": n} for n in (ONE, {"const": 2}, TEXT)], "minItems": 3},
    {"not": {"items": {"type": "integer"}}, "contains": ONE},
    {"not": {"contains": ONE, "maxContains": 1}},
    {"not": {"prefixItems": [TEXT], "contains": ONE}},
]


def writes(compiled: CompiledSchema[Any], value: Any) -> bool:
    session = compiled.session()
    for byte in json.dumps(value).encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda part: str(part)[:60])
def test_exactly_the_arrays_that_another_validator_accepts(schema: dict[str, Any]) -> None:
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    typed = {"type": "array", **schema}
    valid = jsonschema_rs.Draft202012Validator(typed).is_valid
    compiled = compile(typed, byte_vocabulary())
    for length in range(4):
        for items in map(list, product(VALUES, repeat=length)):
            assert writes(compiled, items) == valid(items), items


def test_an_item_behind_which_the_array_cannot_end_is_not_begun() -> None:
    schema = {"type": "array", "contains": ONE, "minContains": 2, "maxItems": 2}
    session = compile(schema, byte_vocabulary()).session()
    session.advance(ord("["))
    assert session.allows(ord("1"))
    assert not session.allows(ord('"'))


def test_counts_that_contradict_each_other() -> None:
    parts = [{"contains": {"const": n}} for n in (1, 2)]
    with pytest.raises(UnsatisfiableSchemaError, match="kinds that it must contain"):
        compile({"type": "array", "allOf": parts, "maxItems": 1}, byte_vocabulary())


def test_limits() -> None:
    parts = [{"contains": {"const": n}} for n in range(5)]
    with pytest.raises(UnsupportedSchemaError, match="more than 4 kinds"):
        compile({"type": "array", "allOf": parts}, byte_vocabulary())
    with pytest.raises(LimitError, match=r"\$: an array whose items are counted"):
        compile({"type": "array", "contains": ONE, "minContains": 30_000}, byte_vocabulary())
