"""Smart constructors simplify, and say why something is impossible."""

from __future__ import annotations

import math

import pytest

from structgen.schema import nodes
from structgen.schema.nodes import Array, Integer, Labels, Never, Number, Schema, String, Union

NULL = Labels((b"null",))


def test_labels_are_sorted_and_unique():
    assert nodes.labels([b'"b"', b"1", b'"a"', b"1"]) == Labels((b'"a"', b'"b"', b"1"))
    assert isinstance(nodes.labels([]), Never)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", b'"a"'), ('"\\\n\x00/', b'"\\"\\\\\\n\\u0000/"'), ("é", '"é"'.encode()),
        ("\U0001f600", '"\U0001f600"'.encode()), (True, b"true"), (None, b"null"), (12, b"12"),
        (0.5, b"0.5"), (1.0, b"1.0"), (10**30, b"1" + b"0" * 30),
    ],
)  # fmt: skip
def test_json_text(value, text):
    assert nodes.json_text(value) == text


@pytest.mark.parametrize("value", ["\ud800", "a\udc00b"])
def test_json_text_of_a_lone_surrogate(value):
    with pytest.raises(UnicodeEncodeError):
        nodes.json_text(value)


def test_unions_are_flat_without_doubles():
    inner = nodes.union([Integer(), String()])
    assert nodes.union([inner, Integer(), NULL, nodes.labels([b"true"])]) == Union(
        (Integer(), String(), Labels((b"null", b"true")))
    )
    assert nodes.union([Integer(), Integer()]) == Integer()
    assert nodes.union([NULL, nodes.labels([b"true"])]) == Labels((b"null", b"true"))


def test_impossible_options_are_dropped():
    assert nodes.union([Never("no"), Integer()]) == Integer()
    assert nodes.union([Never("first"), Never("second")]) == Never("first")
    assert isinstance(nodes.union([]), Never)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (nodes.integer(2, 1), "no integer is at least 2 and at most 1"),
        (nodes.string(3, 2), "min_length 3 is more than max_length 2"),
        (nodes.array(Integer(), 3, 2), "min_items 3 is more than max_items 2"),
        (nodes.number(2.0, 1.0), "no number is >= 2.0 and <= 1.0"),
        (nodes.number(1.0, 1.0, above=True), "no number is > 1.0 and <= 1.0"),
        (nodes.number(1.0, 1.0, below=True), "no number is >= 1.0 and < 1.0"),
        (nodes.number(math.nan, None), "no number"),
        (nodes.number(math.inf, None), "no number"),
        (nodes.number(None, -math.inf), "no number"),
        (nodes.number(0.0, 1e-25, above=True), "no number"),
    ],
)  # fmt: skip
def test_contradictions(node, reason):
    assert isinstance(node, Never)
    assert reason in node.reason


def test_arrays():
    assert nodes.array(Integer(), 0, 0) == Labels((b"[]",))
    assert nodes.array(Never("x"), 0, None) == Labels((b"[]",))
    assert nodes.array(Never("x"), 1, None) == Never("x")
    assert nodes.array(Integer(), 1, None) == Array(Integer(), 1, None)


def test_infinite_bounds_are_none():
    assert nodes.number(-math.inf, math.inf, True, True) == Number()
    assert nodes.number(0.0, 0.0) == Number(0.0, 0.0)


def test_schemas_are_values():
    assert Schema(Integer(), {}) == Schema(Integer(), {})
    assert nodes.integer(None, 3) == Integer(None, 3)
