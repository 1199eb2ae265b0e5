"""Hostile and huge schemas end soon and with a clear message."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from structgen.errors import LimitError
from structgen.schema.jsonschema import admits, read_json_schema


def nested(depth: int, wrap: Callable[[Any], Any], leaf: Any) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


WRAPS: list[Callable[[Any], Any]] = [
    lambda part: {"items": part},
    lambda part: {"properties": {"a": part}},
    lambda part: {"not": part},
    lambda part: {"allOf": [part]},
    lambda part: {"$defs": {"x": part}, "$ref": "#/$defs/x"},
    lambda part: {"const": [part]},
]


@pytest.mark.parametrize("wrap", WRAPS, ids=range(len(WRAPS)))
def test_deep_nesting_is_a_limit_and_no_recursion_error(wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(LimitError, match="64 levels"):
        read_json_schema(nested(10_000, wrap, {"type": "string"}), "test")


@pytest.mark.parametrize("wrap", WRAPS[:4], ids=range(4))
def test_sixty_levels_are_fine(wrap: Callable[[Any], Any]) -> None:
    assert read_json_schema(nested(60, wrap, {"type": "string"}), "test").faults == ()


def test_a_long_chain_of_references_is_fine() -> None:
    parts: dict[str, Any] = {
        f"d{i}": {"properties": {"n": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(2000)
    }
    read = read_json_schema({"$defs": {**parts, "d2000": {}}, "$ref": "#/$defs/d0"}, "test")
    assert read.faults == ()
    assert admits(read.definitions, read.root, {"n": {"n": 1}})


PRODUCTS: list[tuple[Any, str]] = [
    (
        {
            "type": "object",
            "allOf": [
                {"anyOf": [{"required": [f"a{i}{j}"]} for j in range(10)]} for i in range(10)
            ],
        },
        "$.allOf",
    ),
    ({"dependentRequired": {f"a{i}": [f"b{i}"] for i in range(20)}}, "$.dependentRequired"),
    ({"patternProperties": {c: {"minimum": i} for i, c in enumerate("abcdefgh")}}, "$"),
    (
        {
            "anyOf": [{"properties": {f"a{i}": {}}} for i in range(12)],
            "unevaluatedProperties": False,
        },
        "$.unevaluatedProperties",
    ),
]


@pytest.mark.parametrize(("schema", "path"), PRODUCTS, ids=[path for _, path in PRODUCTS])
def test_products_of_alternatives_are_refused_soon(schema: Any, path: str) -> None:
    start = time.perf_counter()
    faults = read_json_schema(schema, "test").faults
    assert [fault.path for fault in faults] == [path]
    assert time.perf_counter() - start < 5


def test_a_large_enum_is_read_fast() -> None:
    names = [f"label number {i:06d}" for i in range(200_000)]
    start = time.perf_counter()
    read = read_json_schema({"type": "string", "enum": names}, "test")
    assert time.perf_counter() - start < 3
    assert admits(read.definitions, read.root, "label number 123456")
    assert not admits(read.definitions, read.root, "label number")


def test_many_tagged_alternatives_are_told_apart_fast() -> None:
    options = [
        {"type": "object", "properties": {"t": {"const": f"t{i}"}}, "required": ["t"]}
        for i in range(1000)
    ]
    start = time.perf_counter()
    read = read_json_schema({"oneOf": options}, "test")
    assert time.perf_counter() - start < 2
    assert read.faults == ()
    assert admits(read.definitions, read.root, {"t": "t999"})
