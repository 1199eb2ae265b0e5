"""Bounds on the size of schemas, and options of `compile` out of their range."""

# ruff: noqa: UP007  # users write types in the older spellings too

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

import pytest
from pydantic import Field, create_model

from structgen.compiler import compile  # noqa: A004
from structgen.errors import (
    InvalidTextError,
    LimitError,
    OptionError,
    UnsupportedSchemaError,
    VocabularyError,
)
from structgen.options import Limits
from structgen.prompts import check_prompt
from structgen.schema.functions import arguments_of
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()


def nested_models(levels: int) -> Any:
    model: Any = int
    for level in range(levels):
        model = create_model(f"D{level}", a=(model, ...))
    return model


def nested_lists(levels: int) -> Any:
    kind: Any = int
    for _ in range(levels):
        kind = Annotated[list[kind], Field(min_length=1)]
    return kind


@pytest.mark.parametrize("levels", [1, 10, 60])
def test_nested_models(levels):
    compiled = compile(nested_models(levels), BYTES)
    shortest = '{"a": ' * levels + "0" + "}" * levels
    assert compiled.min_tokens == len(shortest)
    compiled.validate(shortest)


@pytest.mark.parametrize("levels", [200, 400])
@pytest.mark.parametrize("make", [nested_models, nested_lists])
def test_nesting_that_is_too_deep(make, levels):
    with pytest.raises(LimitError, match="nested"):
        compile(make(levels), BYTES)


@pytest.mark.parametrize(
    ("source", "limits", "message"),
    [
        (ZOO["nested"], Limits(max_states=20), "more than Limits.max_states=20"),
        (Literal["abcdefgh"], Limits(max_label_bytes=7), "8 bytes, more than Limits.max_label"),
        (Annotated[str, Field(min_length=2**31)], Limits(), None),
        (Annotated[list[int], Field(min_length=2**29)], Limits(), None),
        (Annotated[list[int], Field(min_length=2**40)], Limits(), None),
    ],
)  # fmt: skip
def test_limits(source, limits, message):
    with pytest.raises(LimitError, match=message):
        compile(source, BYTES, limits=limits)


@pytest.mark.parametrize("bound", [2**29, 2**30, 2**31, 2**40])
def test_huge_upper_bounds_are_no_bounds(bound):
    compile(Annotated[str, Field(max_length=bound)], BYTES).session(5)
    compile(Annotated[list[int], Field(max_length=bound)], BYTES).session(5)


def test_too_many_alternatives():
    """Reading stays bounded however ambiguous a schema is."""

    kind: Any = int
    for _ in range(7):
        kind = Union[list[kind], list[kind | None], list[kind | bool]]
    compiled = compile(kind, BYTES, limits=Limits(max_threads=1))
    session = compiled.session()

    def open_all() -> None:
        for _ in range(7):
            session.advance(ord("["))
            session.mask()

    with pytest.raises(LimitError, match=r"too ambiguous: more than Limits\.max_threads=1 "):
        open_all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compile(int, BYTES).validate(5), InvalidTextError, "str or bytes, got int"),
        (lambda: arguments_of(5), OptionError, "arguments_of takes .*, got 5"),
        (lambda: Vocabulary.from_bytes(["a"], 0), VocabularyError, "token 0 is 'a'"),
        (lambda: Vocabulary.from_bytes([], 0), VocabularyError, "no tokens"),
        (lambda: check_prompt([]), InvalidTextError, "empty list"),
        (lambda: compile('{"type": "string"}', BYTES), UnsupportedSchemaError, r"json\.loads"),
        (lambda: compile({"enum": [object()]}, BYTES), UnsupportedSchemaError, "an object is not"),
        (lambda: compile({1: 2}, BYTES), UnsupportedSchemaError, "but an int"),
    ],
)
def test_what_is_passed_by_mistake(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("layout", ["pretty", "", None, 3, "SPACED"])
def test_unknown_layouts(layout):
    with pytest.raises(OptionError, match="use one of") as caught:
        compile(int, BYTES, layout=layout)
    assert repr(layout) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", None])
@pytest.mark.parametrize("limit", ["max_states", "max_depth", "cache_bytes", "max_threads"])
def test_bad_limits(limit, value):
    with pytest.raises(OptionError, match=rf"Limits\.{limit}={value!r} must be a whole number"):
        compile(int, BYTES, limits=Limits(**{limit: value}))


@pytest.mark.parametrize("vocabulary", [None, "gpt2", object(), []])
def test_vocabularies_of_another_kind(vocabulary):
    with pytest.raises(OptionError, match=r"must be a structgen\.Vocabulary, got"):
        compile(int, vocabulary)
