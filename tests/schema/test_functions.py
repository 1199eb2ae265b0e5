"""Functions become argument models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from structgen.errors import UnsupportedSchemaError
from structgen.schema.functions import arguments_model, arguments_of, split_docstring
from structgen.schema.load import load_schema
from structgen.schema.nodes import Object, Ref


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
        (unknown, "$", "import the types"),
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
