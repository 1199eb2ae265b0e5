"""Arrays that must contain items of some kinds, against an independent validator."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.errors import LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.testing import byte_vocabulary
from tests.walks import generate

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


NUMBERS = {"type": "array", "contains": {"type": "number"}}
NESTED: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    (
        {
            "prefixItems": [{"type": "object", "properties": {"c": NUMBERS}}],
            "contains": {"type": "number"},
            "maxContains": 1,
        },
        [[{"c": [1]}, 1], [{"c": ["a", 2]}, "a", 2]],
        [[{"c": []}, 1], [{"c": [1]}, 1, 2], [{"c": [1]}]],
    ),
    (
        {
            "items": {"type": ["array", "null"], "contains": {"type": "integer"}},
            "contains": {"type": "array", "items": {"type": "number"}},
            "maxContains": 1,
        },
        [[[1]], [None, [1.5, 1]], [["a", 1], [1]]],
        [[[1], [1]], [["a"]], [[]], [None]],
    ),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), NESTED)
def test_items_that_must_contain_items_themselves(schema, valid, invalid) -> None:
    compiled = compile({"type": "array", **schema}, byte_vocabulary())
    assert all(writes(compiled, value) for value in valid)
    assert not any(writes(compiled, value) for value in invalid)


LETTERS = [*"abcdefghijkl"]


@pytest.mark.parametrize(
    "schema",
    [
        {"contains": {"const": "c"}},
        {"contains": {"const": "c"}, "maxContains": 1, "minItems": 3},
        {"contains": {"enum": ["c", "d"]}, "minContains": 2},
        {"allOf": [{"contains": {"enum": ["a", "b", "c"]}, "minContains": 2},
                   {"contains": {"enum": ["b", "c", "d"]}, "minContains": 2}], "maxItems": 3},
        {"prefixItems": [{"const": "a"}], "contains": {"const": "c"}, "minItems": 2},
    ],
)  # fmt: skip
def test_contained_items_without_repeats_can_always_be_written(schema: dict[str, Any]) -> None:
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    lengths = {letter: letter * (1 + 7 * index) for index, letter in enumerate("dcba")}
    text = json.dumps({"type": "array", "items": {"enum": LETTERS}, "uniqueItems": True, **schema})
    for letter, longer in lengths.items():  # the last values of a kind are the longest
        text = text.replace(f'"{letter}"', f'"{longer}"')
    typed = json.loads(text)
    valid = jsonschema_rs.Draft202012Validator(typed).is_valid
    compiled = compile(typed, byte_vocabulary())
    names = [lengths.get(letter, letter) for letter in "abcde"]
    for length in range(4):
        for items in map(list, product(names, repeat=length)):
            assert writes(compiled, items) == valid(items), items
    rng = random.Random(1)
    for more in range(40):
        found, _ = generate(compiled.session, byte_vocabulary(), rng, compiled.min_tokens + more)
        assert valid(json.loads(found))


def test_too_few_values_of_a_kind() -> None:
    typed = {"type": "array", "items": {"enum": LETTERS}, "uniqueItems": True}
    parts = [{"contains": {"enum": ["c", other]}, "minContains": 2} for other in "de"]
    for schema in ({"contains": {"enum": ["c", "d"]}, "minContains": 3}, {"allOf": parts}):
        with pytest.raises(UnsupportedSchemaError, match="different items are needed"):
            compile({**typed, **schema}, byte_vocabulary())


def test_the_reason_is_said_once() -> None:
    schema = {"type": "array", "items": {"type": "string"}, "contains": {"type": "number"}}
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        compile(schema, byte_vocabulary())
    assert str(caught.value).count("no item is of the kind") == 1


def test_limits() -> None:
    parts = [{"contains": {"const": n}} for n in range(5)]
    with pytest.raises(UnsupportedSchemaError, match="more than 4 kinds"):
        compile({"type": "array", "allOf": parts}, byte_vocabulary())
    with pytest.raises(LimitError, match=r"\$: an array whose items are counted"):
        compile({"type": "array", "contains": ONE, "minContains": 30_000}, byte_vocabulary())
