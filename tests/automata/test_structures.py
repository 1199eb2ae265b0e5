"""Objects whose undeclared properties are counted by registers."""

from __future__ import annotations

import json
import random

import pytest

from structgen.compiler import compile  # noqa: A004
from structgen.testing import byte_vocabulary
from tests.walks import generate

BYTES = byte_vocabulary()
FEW = {"propertyNames": {"pattern": "^[a-c]$"}, "additionalProperties": {"const": 1}}
WITH_A = {"properties": {"a": {"const": 0}}, "required": ["a"]}


def reads(schema: dict[str, object], text: str) -> bool:
    session = compile({"type": "object", **schema}, BYTES).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


@pytest.mark.parametrize("layout", ["spaced", "flexible"])
@pytest.mark.parametrize("others", [{}, FEW, WITH_A, {**FEW, **WITH_A}], ids=range(4))
@pytest.mark.parametrize("bounds", [(0, 1), (1, 1), (2, 2), (2, 3), (3, None), (0, 10**9)])
def test_every_value_has_as_many_properties_as_it_may(bounds, others, layout):
    least, most = bounds
    schema = {"type": "object", "minProperties": least, **others}
    if most is not None:
        schema["maxProperties"] = most
    compiled = compile(schema, BYTES, layout=layout)
    rng = random.Random(1)
    for extra in range(0, 30, 4):
        text, _ = generate(compiled.session, BYTES, rng, compiled.min_tokens + extra)
        value = json.loads(text)
        written = json.loads(text, object_pairs_hook=len)
        assert least <= len(value)
        assert most is None or written <= most


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"maxProperties": 1}, '{"x": 1}', True),
        ({"maxProperties": 1}, '{"x": 1, "y": 1}', False),
        ({"minProperties": 1}, "{}", False),
        ({"minProperties": 2, "maxProperties": 2}, '{"x": 1}', False),
        ({"minProperties": 2, "maxProperties": 2}, '{"x": 1, "y": 1}', True),
        ({"minProperties": 2, "maxProperties": 2}, '{"x": 1, "x": 1}', False),
        ({"maxProperties": 1, **WITH_A}, '{"a": 0}', True),
        ({"maxProperties": 1, **WITH_A}, '{"a": 0, "b": 0}', False),
        ({"minProperties": 2, **WITH_A}, '{"a": 0}', False),
        ({"minProperties": 2, **WITH_A}, '{"a": 0, "b": 0}', True),
        ({"maxProperties": 5000, **WITH_A}, '{"a": 0, "b": 0, "c": 0}', True),
    ],
)
def test_texts(schema, text, expected):
    assert reads(schema, text) == expected
