"""Functions become argument models."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import Field, validate_call

import structgen as sg
from structgen.errors import UnsupportedSchemaError
from structgen.schema.docstrings import split_docstring
from structgen.schema.functions import Arguments, arguments_model, arguments_of, is_function
from structgen.schema.load import load_schema
from structgen.schema.nodes import Object, Ref
from structgen.testing import RandomLM, byte_vocabulary


def weather(city: str, days: int = 3, *, unit: Literal["C", "F"] = "C") -> str:
    """Forecast the weather.

    It rains.

    Args:
        city: where, for instance
            Rome
        days (int): how many
        other: not an argument

    Returns:
        A text.
    """
    return f"{city} {days} {unit}"


def test_a_signature_becomes_an_object():
    model = arguments_model(weather)
    schema = load_schema(model).schema
    root = schema.definitions[schema.root.name] if isinstance(schema.root, Ref) else schema.root
    assert isinstance(root, Object)
    assert [(p.name, p.required, p.description) for p in root.properties] == [
        ("city", True, "where, for instance Rome"),
        ("days", False, "how many"),
        ("unit", False, ""),
    ]
    assert root.description == "Forecast the weather.\n\nIt rains.\n\nReturns:\n    A text."
    assert root.extras == ()


def test_the_function_can_be_called_with_what_was_read():
    value = arguments_model(weather).model_validate_json('{"city": "Rome", "unit": "F"}')
    assert weather(**arguments_of(value)) == "Rome 3 F"


def test_names_that_a_model_cannot_have():
    def odd(json: int, _x: str, model_config: bool, copy: int = 1) -> None: ...

    value = arguments_model(odd).model_validate_json('{"json":1,"_x":"a","model_config":true}')
    assert arguments_of(value) == {"json": 1, "_x": "a", "model_config": True, "copy": 1}


def test_constraints_are_kept():
    def f(n: Annotated[int, Field(ge=1, description="own")], m: int = Field(2, le=3)) -> None:
        """Args:
        n: from the docstring
        """

    fields = arguments_model(f).model_fields
    assert fields["m"].default == 2
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        arguments_model(f)(n=0)


def test_methods_and_callables():
    class Tool:
        def method(self, a: int) -> None: ...

        def __call__(self, b: str) -> None: ...

    assert list(arguments_model(Tool().method).model_fields) == ["a"]
    assert list(arguments_model(Tool()).model_fields) == ["b"]


def positional(a: int, /) -> None: ...
def var_args(*a: int) -> None: ...
def var_kwargs(**a: int) -> None: ...
def untyped(a, b: int) -> None: ...  # type: ignore[no-untyped-def]
def unknown(a: Nothing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "path", "words"),
    [
        (positional, "$.a", "remove the `/`"),
        (var_args, "$.a", "a list"),
        (var_kwargs, "$.a", "a dict"),
        (untyped, "$.a", "annotate it"),
        (unknown, "$.a", "import the types"),
    ],
)
def test_what_cannot_be_written_is_refused(function: Any, path: str, words: str):
    with pytest.raises(UnsupportedSchemaError, match=words) as info:
        arguments_model(function)
    assert [fault.path for fault in info.value.faults] == [path]


@pytest.mark.parametrize(
    ("text", "summary", "described"),
    [
        ("", "", {}),
        ("Only this.", "Only this.", {}),
        ("A.\n\nArgs:\n    x: one\n\n    y: two\nReturns:\n    z: no", "A.\n\nReturns:\n    z: no",
         {"x": "one", "y": "two"}),
        ("Args:\n  x:\n    later\n  *y: rest", "", {"x": "later", "y": "rest"}),
        ("A: b\nc", "A: b\nc", {}),
    ],
)  # fmt: skip
def test_docstrings(text: str, summary: str, described: dict[str, str]):
    assert split_docstring(text) == (summary, described)


def numpy_style(city: str, x: float = 0.0, y: float = 1.0) -> None:
    """Look.

    Parameters
    ----------
    city : str
        where it
        is
    x, y : float, optional
        degrees

    Returns
    -------
    None
    """


def sphinx_style(city: str, days: int = 3) -> None:
    """Look.

    :param city: where
        it is
    :type city: str
    :param int days: how many
    :returns: nothing
    """


def google_style(city: str, days: int = 3) -> None:
    """Look.

    Args:
        city (str, optional): where

            it is: there
        days: how many

    More: not an argument.
    """


@pytest.mark.parametrize(
    ("function", "kept", "described"),
    [
        (numpy_style, "Look.\n\nReturns\n-------\nNone",
         {"city": "where it is", "x": "degrees", "y": "degrees"}),
        (sphinx_style, "Look.\n\n:returns: nothing", {"city": "where it is", "days": "how many"}),
        (google_style, "Look.\n\nMore: not an argument.",
         {"city": "where it is: there", "days": "how many"}),
    ],
)  # fmt: skip
def test_styles_of_docstrings(function: Any, kept: str, described: dict[str, str]):
    model = arguments_model(function)
    assert model.__doc__ == kept
    assert {name: info.description for name, info in model.model_fields.items()} == described


def test_the_authors_field_goes_before_the_docstring():
    def f(
        a: Annotated[int, Field(description="own")], b: int = Field(1), c: int = Field(2)
    ) -> None:
        """Do.

        Args:
            a: from the docstring
            b: from the docstring
        """

    fields = arguments_model(f).model_fields
    assert [info.description for info in fields.values()] == ["own", "from the docstring", None]


class Context:
    """What a framework passes, and no model can write."""


def with_context(ctx: Context, question: str, bad: complex, *rest: int, **more: int) -> None: ...


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(UnsupportedSchemaError) as info:
        sg.check(with_context)
    assert [fault.path for fault in info.value.faults] == ["$.ctx", "$.bad", "$.rest", "$.more"]
    assert info.value.faults[0].advice == "give it beforehand: functools.partial(..., ctx=...)"
    assert info.value.schema == "the arguments of with_context"


def answer(ctx: Context, question: str) -> tuple[Context, str]:
    return ctx, question


@pytest.mark.parametrize("by_name", [True, False])
def test_what_a_partial_gives_is_no_argument(by_name: bool):
    given = Context()
    part = functools.partial(answer, ctx=given) if by_name else functools.partial(answer, given)
    model = arguments_model(part)
    assert model.__name__ == "answer"
    assert list(model.model_fields) == ["question"]
    assert model.model_validate_json('{"question": "why"}').call() == (given, "why")


class Tool:
    """A tool."""

    def method(self, a: int) -> int:
        return a + 1

    @classmethod
    def of_class(cls, a: int) -> int:
        return a + 2

    @staticmethod
    def static(a: Whole) -> int:
        return a + 3

    def __call__(self, a: int) -> int:
        """Call it."""
        return a + 4


Whole = int


@functools.lru_cache
def cached(a: int) -> int:
    return a + 5


@validate_call
def validated(a: int) -> int:
    return a + 6


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (Tool().method, 2),
        (Tool.of_class, 3),
        (Tool.static, 4),
        (Tool(), 5),
        (cached, 6),
        (validated, 7),
        (functools.partial(Tool().method), 2),
    ],
)
def test_whatever_can_be_called_is_called(function: Any, result: int):
    assert arguments_model(function)(a=1).call() == result


def misfit(a: Annotated[int, Field(fail_fast=True)]) -> None: ...


def test_an_async_function_is_awaited():
    async def later(a: int) -> int:
        return a

    assert asyncio.run(arguments_model(later)(a=3).call()) == 3


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (max, "signature cannot be read"),
        (len, "wrap it"),
        (print, r"\$.sep: the argument has no type"),
        (Tool.method, "pass the method of an instance"),
        (misfit, "Unable to apply constraint"),
        (lambda x: x, "no type"),
    ],
)
def test_what_has_no_types_is_refused(function: Any, words: str):
    with pytest.raises(UnsupportedSchemaError, match=words):
        sg.check(function)


def test_defaults_are_the_functions_own():
    missing: Any = object()

    def f(a: int = missing, tags: list[str] = SHARED) -> bool:
        return a is missing and tags is SHARED

    assert arguments_model(f)().call()


SHARED: list[str] = []


def test_names_of_the_model_itself_are_free_for_arguments():
    def f(call: int, structgen_names: int, argument_call: int, model_dump: int = 4) -> list[int]:
        return [call, structgen_names, argument_call, model_dump]

    text = '{"call": 1, "structgen_names": 2, "argument_call": 3}'
    assert arguments_model(f).model_validate_json(text).call() == [1, 2, 3, 4]


def test_an_alias_is_what_is_written_but_not_what_is_called():
    def f(a: int = Field(alias="A")) -> int:
        return a

    assert arguments_model(f).model_validate_json('{"A": 3}').call() == 3


def test_a_function_has_one_model_until_the_cache_is_cleared():
    before = arguments_model(weather)
    assert arguments_model(weather) is before
    sg.clear_cache()
    assert arguments_model(weather) is not before


def test_a_callable_that_cannot_be_remembered_is_fine_too():
    @dataclass
    class Adder:
        n: int

        def __call__(self, a: int) -> int:
            return self.n + a

    assert arguments_model(Adder(2))(a=1).call() == 3


@pytest.mark.parametrize(
    "kind",
    [int, list[int], NewType("Name", str), int | str, Annotated[int, 1], Literal["a"], Any, None],
)
def test_types_are_no_functions(kind: Any):
    assert not is_function(kind)
    sg.check(kind)


def test_a_function_is_taken_wherever_a_schema_is():
    vocabulary = byte_vocabulary()
    lm = RandomLM(vocabulary)
    value = sg.generate(weather, "Rain?", lm=lm)
    assert isinstance(value, arguments_model(weather))
    assert value.call() == weather(**arguments_of(value))
    assert type(sg.Generator(weather, lm)("Rain?")) is type(value)
    assert sg.compile(weather, vocabulary) is sg.compile(weather, vocabulary)
    assert [row.path for row in sg.explain(weather).fields] == ["$", "$.city", "$.days", "$.unit"]
    assert {finding.code for finding in sg.lint(weather)} >= {"SG103", "SG108"}
    assert "// where, for instance Rome" in sg.Generator(weather, lm).render("")


def test_tools_can_be_chosen_from():
    def rain(city: str) -> str:
        return city

    schema = arguments_model(weather) | arguments_model(rain)
    value = sg.generate(schema, "Rain?", lm=RandomLM(byte_vocabulary()))
    assert isinstance(value, Arguments)
    assert isinstance(value.call(), str)


def test_no_arguments_are_an_empty_object():
    def now() -> int:
        return 12

    lm = RandomLM(byte_vocabulary())
    assert sg.Generator(now, lm).run("").text == "{}"
    assert sg.generate(now, "", lm=lm).call() == 12
