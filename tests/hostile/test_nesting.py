"""Schemas that are nested deeply, refer to themselves, or are cyclic Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from structgen.compiler import CompiledSchema
from structgen.errors import LimitError, SchemaError, UnsatisfiableSchemaError
from tests.hostile.bounds import EITHER, assert_ends

DEEP = 10_000
TEXT = {"type": "string"}


def nested(depth: int, wrap: Callable[[Any], Any], leaf: Any = TEXT) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


WRAPS: dict[str, Callable[[Any], Any]] = {
    "items": lambda part: {"type": "array", "items": part},
    "prefixItems": lambda part: {"prefixItems": [part]},
    "properties": lambda part: {"type": "object", "properties": {"a": part}, "required": ["a"]},
    "additionalProperties": lambda part: {"additionalProperties": part},
    "propertyNames": lambda part: {"propertyNames": part},
    "contains": lambda part: {"contains": part},
    "dependentSchemas": lambda part: {"dependentSchemas": {"a": part}},
    "not": lambda part: {"not": part},
    "allOf": lambda part: {"allOf": [part]},
    "anyOf": lambda part: {"anyOf": [part, {"type": "null"}]},
    "oneOf": lambda part: {"oneOf": [part, {"type": "null"}]},
    "if": lambda part: {"if": part, "then": part},
    "$defs": lambda part: {"$defs": {"x": part}, "$ref": "#/$defs/x"},
    "unevaluatedItems": lambda part: {"unevaluatedItems": part},
    "const": lambda part: {"const": [part]},
    "enum": lambda part: {"enum": [{"a": part}]},
}


@pytest.mark.parametrize("keyword", WRAPS)
def test_very_deep_schemas(keyword):
    assert_ends(nested(DEEP, WRAPS[keyword]), LimitError, "nested")


@pytest.mark.parametrize("keyword", WRAPS)
def test_deep_schemas(keyword):
    if keyword != "if":  # it says its part twice
        assert_ends(nested(60, WRAPS[keyword]))


@pytest.mark.parametrize("keyword", ["x-unknown", "default", "examples"])
def test_annotations_may_be_deep(keyword):
    assert_ends(nested(DEEP, lambda part: {"type": "string", keyword: part}), CompiledSchema)


@pytest.mark.parametrize("depth", [100, 200, 250, 300, 500, DEEP])
def test_deep_values(depth):
    expected = CompiledSchema if depth == 100 else LimitError
    assert_ends({"const": nested(depth, lambda part: [part], 1)}, expected)
    assert_ends({"enum": [1, nested(depth, lambda part: {"a": part}, 1)]})


def test_values_that_must_be_huge():
    assert_ends(nested(60, lambda part: {"type": "array", "minItems": 2, "items": part}))


def defs(first: str, **parts: Any) -> dict[str, Any]:
    return {"$defs": parts, "$ref": f"#/$defs/{first}"}


def to(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


ALWAYS_ITSELF = "leads back to itself"
LOOPS: dict[str, tuple[Any, Any, str]] = {
    "itself": ({"$ref": "#"}, SchemaError, ALWAYS_ITSELF),
    "a to b to a": (defs("a", a=to("b"), b=to("a")), SchemaError, ALWAYS_ITSELF),
    "allOf itself": ({"type": "string", "allOf": [{"$ref": "#"}]}, SchemaError, ALWAYS_ITSELF),
    "anyOf itself": ({"anyOf": [{"$ref": "#"}, TEXT]}, EITHER, ""),
    "oneOf itself": ({"oneOf": [{"$ref": "#"}, TEXT]}, SchemaError, ALWAYS_ITSELF),
    "not itself": ({"not": {"$ref": "#"}}, SchemaError, ALWAYS_ITSELF),
    "if itself": ({"if": {"$ref": "#"}, "then": TEXT}, SchemaError, ALWAYS_ITSELF),
    "dynamic": (
        {"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}, SchemaError, ALWAYS_ITSELF,
    ),
    "required": (
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        UnsatisfiableSchemaError,
        "no finite value",
    ),
    "required through two": (
        defs(
            "a",
            a={"type": "array", "items": to("b"), "minItems": 1},
            b={"type": "object", "properties": {"c": to("a")}, "required": ["c"]},
        ),
        UnsatisfiableSchemaError,
        "no finite value",
    ),
    "names": ({"propertyNames": {"$ref": "#"}}, EITHER, ""),
    "optional": ({"type": "array", "items": {"$ref": "#"}}, CompiledSchema, ""),
    "meets itself": (
        defs(
            "a",
            a={"type": "array", "items": {"allOf": [to("a"), to("b")]}},
            b={"type": "array", "items": {"allOf": [to("b"), to("a")]}},
        ),
        CompiledSchema,
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_reference_loops(name):
    assert_ends(*LOOPS[name])


def chain(length: int, step: Callable[[dict[str, str]], Any]) -> dict[str, Any]:
    parts = {f"d{i}": step(to(f"d{i + 1}")) for i in range(length)}
    return defs("d0", **parts, **{f"d{length}": TEXT})


CHAINS: dict[str, Callable[[], Any]] = {
    "references": lambda: chain(5000, lambda part: part),
    "allOf": lambda: chain(5000, lambda part: {"allOf": [part], "minLength": 1}),
    "properties": lambda: chain(
        5000, lambda part: {"type": "object", "properties": {"n": part}, "required": ["n"]}
    ),
    "two items": lambda: chain(
        40, lambda part: {"type": "array", "prefixItems": [part, part], "minItems": 2}
    ),
    "two options": lambda: chain(40, lambda part: {"anyOf": [part, part]}),
    "two meets": lambda: chain(40, lambda part: {"allOf": [part, part]}),
    "two of one": lambda: chain(40, lambda part: {"oneOf": [part, part]}),
    "two properties": lambda: chain(
        40,
        lambda part: {
            "type": "object", "properties": {"a": part, "b": part}, "required": ["a", "b"],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains(name):
    assert_ends(CHAINS[name]())


def cyclic(*path: Any, start: Any = None) -> Any:
    """A Python object that holds itself at `path`."""
    root: Any = {"type": "object"} if start is None else start
    place = root
    for key in path[:-1]:
        place[key] = {}
        place = place[key]
    place[path[-1]] = root
    return root


def test_cyclic_objects():
    assert_ends(cyclic("properties", "a"), LimitError, "nested")
    assert_ends(cyclic("items", start={"type": "array"}), LimitError, "nested")
    assert_ends(cyclic("not"), LimitError, "nested")
    assert_ends(cyclic("$defs", "x") | {"$ref": "#/$defs/x"}, EITHER)
    assert_ends(cyclic("default"), CompiledSchema)
    assert_ends(cyclic("x-unknown"), CompiledSchema)
    endless: list[Any] = []
    endless.append(endless)
    assert_ends({"enum": endless}, LimitError, "nested")
    assert_ends({"const": endless}, LimitError, "nested")
    assert_ends({"allOf": endless}, SchemaError)
