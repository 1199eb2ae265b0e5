"""Ambiguous recursion costs as many threads as there are frame states, not readings."""

from __future__ import annotations

import functools
import operator
from typing import Any

from pydantic import BaseModel, RootModel, TypeAdapter, create_model

import structgen as sg
from structgen.testing import small_vocabulary

VOCABULARY = small_vocabulary(['{"', '{"left": ', "[[[[", '": {"', "}}", "]]"])


class Sum(BaseModel):
    left: Expression
    right: Expression


class Product(BaseModel):
    left: Expression
    right: Expression
    scale: int


class Expression(RootModel[int | Sum | Product]):
    """Which object it is shows only at its end."""


class Left(RootModel[list["Left"] | list["Right"] | int]):
    """Every bracket could begin either list."""


class Right(RootModel[list["Left"] | list["Right"] | str]):
    """See Left."""


Sum.model_rebuild()
Product.model_rebuild()
Left.model_rebuild()


def most_threads(schema: Any, text: bytes) -> int:
    """Write `text` byte by byte; it must be a value of `schema`."""
    session = sg.compile(schema, VOCABULARY).session()
    most = 0
    for byte in text:
        assert session.allows(byte)
        session.advance(byte)
        most = max(most, len(session._state.threads))
    assert session.complete
    return most


def test_objects_that_differ_at_their_end() -> None:
    for depth in (1, 5, 40):
        text = b'{"left": ' * depth + b"1" + b', "right": 2}' * depth
        assert most_threads(Expression, text) <= 4


def test_lists_of_either_kind() -> None:
    for depth in (1, 5, 40):
        assert most_threads(Left, b"[" * depth + b"1" + b"]" * depth) <= 12


def test_an_inner_reading_can_still_decide_for_an_outer_one() -> None:
    """The second `scale` makes the outer object a product, whatever the inner one was."""
    inner = b'{"left": 1, "right": 2, "scale": 3}'
    text = b'{"left": {"left": 1, "right": 2}, "right": ' + inner + b', "scale": 4}'
    assert most_threads(Expression, text) <= 4
    wrong = sg.compile(Expression, VOCABULARY).session()
    for byte in b'{"left": {"left": 1, "right": 2, "scale": 3}, "right": 1':
        wrong.advance(byte)
    assert wrong.allows(ord("}"))
    assert wrong.allows(ord(","))


def test_fifty_nearly_equal_objects() -> None:
    models = [create_model(f"M{i}", a=(str, ...), **{f"b{i}": (int, ...)}) for i in range(50)]
    assert (
        most_threads(TypeAdapter(functools.reduce(operator.or_, models)), b'{"a": "x", "b17": 3}')
        <= 50
    )
