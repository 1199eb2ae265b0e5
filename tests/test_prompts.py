"""What the model is told: the schema's short form, and where it stands in the prompt."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from structgen.errors import InvalidTextError, OptionError
from structgen.generator import Generator
from structgen.prompts import render, schema_text
from structgen.schema.describe import describe
from structgen.schema.load import load_schema
from structgen.testing import RandomLM, byte_vocabulary


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(BaseModel):
    name: str
    kids: list[Tree] = []


class Even(BaseModel):
    next: Odd | None


class Odd(BaseModel):
    next: Even | None


class Pair(BaseModel):
    """Two trees.

    With a second paragraph.
    """

    left: Tree
    right: Tree = Field(description="may be\n  the same")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str = Field(alias="Name")


class Empty(BaseModel):
    pass


def described(schema: Any) -> str:
    return describe(load_schema(schema).schema)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (bool, "true or false"),
        (None, "null"),
        (Any, "any JSON"),
        (str, "string"),
        (Annotated[str, Field(max_length=9)], "string (at most 9 characters)"),
        (
            Annotated[str, Field(min_length=2, max_length=9)],
            "string (at least 2 and at most 9 characters)",
        ),
        (int, "whole number"),
        (Annotated[int, Field(ge=1, lt=5)], "whole number (at least 1 and at most 4)"),
        (float, "number"),
        (Annotated[float, Field(ge=0.5)], "number (at least 0.5)"),
        (TypeAdapter(Literal["b", "a", 1]), '"b" or "a" or 1'),
        (TypeAdapter(Color), '"red" or "blue"'),
        (int | None, "whole number or null"),
        (list[int], "[whole number, ...]"),
        (Annotated[list[bool], Field(max_length=3)], "[true or false, ...] (at most 3 items)"),
        (dict[str, int], "{string: whole number, ...}"),
        (Empty, "{}"),
        (Open, '{\n  "Name": string\n  any other key: any JSON\n}'),
        (
            Tree,
            'Tree\nTree: {\n  "name": string\n  "kids": [Tree, ...] (may be left out)\n}',
        ),
        (
            Even,
            'Even\nEven: {\n  "next": Odd or null\n}\nOdd: {\n  "next": Even or null\n}',
        ),
        (
            Pair,
            "{\n"
            "  // Two trees.\n"
            "  // With a second paragraph.\n"
            '  "left": Tree\n'
            '  "right": Tree  // may be the same\n'
            "}\n"
            'Tree: {\n  "name": string\n  "kids": [Tree, ...] (may be left out)\n}',
        ),
    ],
)
def test_the_short_form(schema, text):
    assert described(schema) == text


def test_large_sets_of_labels_are_described_by_size():
    labels = tuple(f"label {i}" for i in range(41))
    few = tuple(f"label {i}" for i in range(40))
    shown = described(TypeAdapter(Literal[labels]))
    assert shown.startswith('one of 41 choices such as "label 0", "label 1"')
    assert described(Literal[few]).count(" or ") == 39


def test_nested_objects_are_indented():
    class Inner(BaseModel):
        sure: bool

    class Outer(BaseModel):
        inner: Inner

    assert described(Outer) == '{\n  "inner": {\n    "sure": true or false\n  }\n}'


@pytest.fixture
def lm():
    return RandomLM(byte_vocabulary())


@pytest.mark.parametrize(
    ("schema_prompt", "rendered"),
    [
        (False, "Hello"),
        (
            True,
            "Hello\n\nAnswer with one JSON value of this form, and nothing else:\ntrue or false",
        ),
        ("Write {schema}, {schema}!", "Hello\n\nWrite true or false, true or false!"),
        ("Braces {} stay {other}", "Hello\n\nBraces {} stay {other}"),
        ("", "Hello"),
        (str.upper, "Hello\n\nTRUE OR FALSE"),
        (lambda form: "", "Hello"),
    ],
)
def test_what_the_prompt_says_about_the_schema(lm, schema_prompt, rendered):
    assert Generator(bool, lm, schema_prompt=schema_prompt).render("Hello") == rendered


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["{schema}"]])
def test_another_kind_of_schema_prompt_is_refused(wrong):
    with pytest.raises(OptionError, match="must be True, False, a text or a function"):
        schema_text(load_schema(bool).schema, wrong)


def test_the_model_is_given_what_render_returns(lm):
    generator = Generator(bool, lm)
    generator.run("Hello")
    prompt_ids = lm.encode_prompt(generator.render("Hello"))
    assert lm.chunks[0][0][: len(prompt_ids)] == prompt_ids


def test_messages_keep_their_order_and_the_last_one_gets_the_schema(lm):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello", "name": "Ana"},
    ]
    rendered = Generator(bool, lm, schema_prompt="Write {schema}").render(messages)
    assert rendered == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello\n\nWrite true or false", "name": "Ana"},
    ]
    assert messages[1]["content"] == "Hello", "the caller's messages are left alone"


def test_a_tuple_of_messages_will_do(lm):
    messages = ({"role": "user", "content": "Hello"},)
    assert Generator(bool, lm).run(messages).value in (True, False)


def test_an_empty_prompt_is_the_schema_alone():
    assert render("", "Write true or false") == "Write true or false"
    assert render("", "") == ""


@pytest.mark.parametrize(
    ("prompt", "error", "message"),
    [
        (b"Hello", InvalidTextError, r"decode it: prompt\.decode\(\)"),
        (b"\xff", InvalidTextError, "not UTF-8"),
        (bytearray(b"Hello"), InvalidTextError, "bytes"),
        (None, InvalidTextError, "got NoneType"),
        (42, InvalidTextError, "got int"),
        ([], InvalidTextError, "an empty list"),
        ({"role": "user", "content": "Hello"}, InvalidTextError, "got dict"),
        (["Hello"], OptionError, "message 0 of the prompt must be a dict"),
        ([{"role": "user", "content": "a"}, {"role": "user"}], OptionError, "message 1"),
        ([{"role": "user", "content": None}], InvalidTextError, "content of message 0"),
    ],
)
def test_what_is_no_prompt_is_refused(prompt, error, message):
    with pytest.raises(error, match=message):
        render(prompt, "addition")
