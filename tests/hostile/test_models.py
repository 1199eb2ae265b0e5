"""Pydantic types that are as hostile as a JSON Schema."""

from __future__ import annotations

import enum
import math
from decimal import Decimal
from functools import reduce
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from pydantic import BaseModel, Field, create_model

from structgen.compiler import CompiledSchema
from structgen.errors import LimitError, SchemaError, UnsupportedSchemaError
from structgen.schema.load import load_schema
from tests.hostile.bounds import EITHER, assert_ends

LONG = 10**4999 + 7


class Loop(BaseModel):
    again: Loop


class Odd(BaseModel):
    even: Even


class Even(BaseModel):
    odds: Annotated[list[Odd], Field(min_length=1)]


class Tree(BaseModel):
    one: Optional[Tree] = None  # noqa: UP045
    many: dict[str, list[Tree]] = {}


def chain(length: int) -> Any:
    return reduce(lambda inner, i: create_model(f"M{i}", inner=(inner, ...)), range(length), int)


def many_fields(count: int, default: Any) -> Any:
    fields: dict[str, Any] = {f"field_{i}": (int, default) for i in range(count)}
    return create_model("Wide", **fields)


def test_nested_types():
    deep: Any = reduce(lambda inner, _: list[inner], range(10_000), int)
    assert_ends(deep, LimitError, "nested")
    assert_ends(reduce(lambda inner, _: list[inner], range(60), int), CompiledSchema)
    assert_ends(reduce(lambda inner, _: dict[str, inner], range(200), int), EITHER)
    assert_ends(reduce(lambda inner, _: Annotated[inner, Field()], range(200), int))


@pytest.mark.parametrize("length", [60, 150, 250])
def test_nested_models(length):
    assert_ends(chain(length))


def test_recursive_models():
    assert_ends(Loop, SchemaError, "no finite value")
    assert_ends(Odd, SchemaError, "no finite value")
    assert_ends(Tree, CompiledSchema)


def test_many_fields():
    assert_ends(many_fields(300, 0), EITHER)
    assert_ends(many_fields(1500, ...), EITHER)
    assert_ends(many_fields(1500, 0), LimitError, "1500 properties")


def test_many_choices():
    assert_ends(Literal[tuple(f"choice number {i}" for i in range(100_000))], CompiledSchema)
    assert_ends(enum.Enum("Many", {f"k{i}": f"v{i}" for i in range(20_000)}), CompiledSchema)
    assert_ends(Union[tuple(create_model(f"M{i}", x=(int, i)) for i in range(50))], EITHER)  # noqa: UP007


def test_texts_that_are_no_text():
    assert_ends(Literal["\ud800"], SchemaError)
    assert_ends(enum.Enum("E", {"A": "a\udc00"}), SchemaError)
    assert_ends(create_model("M", x=(int, Field(alias='\0\n"'))), CompiledSchema)
    assert_ends(Literal["\0", ""], CompiledSchema)


BOUNDED: list[Any] = [
    Annotated[int, Field(ge=LONG)],
    Annotated[int, Field(le=-LONG)],
    Annotated[int, Field(multiple_of=LONG)],
    Literal[LONG],
    Annotated[float, Field(ge=1e308)],
    Annotated[float, Field(gt=0, lt=5e-324)],
    Annotated[float, Field(ge=math.nan)],
    Annotated[float, Field(le=math.inf)],
    Annotated[float, Field(multiple_of=1e-300)],
    Annotated[float, Field(multiple_of=1e300)],
    Annotated[Decimal, Field(max_digits=10**6, decimal_places=10**5)],
    Annotated[Decimal, Field(ge=Decimal("1e-1000"))],
    Annotated[Decimal, Field(le=Decimal("NaN"))],
    Annotated[str, Field(min_length=10**9)],
    Annotated[str, Field(max_length=10**9)],
    Annotated[str, Field(pattern="(a|a)*b{1000}")],
    Annotated[str, Field(pattern="(a{0,1000}){0,1000}")],
    Annotated[str, Field(pattern="^(a|b)*a(a|b){20}$")],
    Annotated[str, Field(pattern="a", max_length=10**9)],
    Annotated[list[int], Field(min_length=10**9)],
    Annotated[list[int], Field(max_length=10**9)],
    Annotated[set[int], Field(min_length=10**9)],
    Annotated[dict[str, int], Field(min_length=10**9)],
    Annotated[bytes, Field(max_length=10**9)],
    tuple[(int,) * 5000],
]


@pytest.mark.parametrize("schema", BOUNDED, ids=range(len(BOUNDED)))
def test_bounds(schema):
    assert_ends(schema)


class Unhelpful:
    """A type whose schema fails with an error of its own."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise ValueError("no schema today")


def test_what_a_type_raises_itself_is_the_cause():
    with pytest.raises(UnsupportedSchemaError, match="no schema today") as caught:
        load_schema(Unhelpful)
    assert str(caught.value.__cause__) == "no schema today"


@pytest.mark.parametrize("source", [1, "int", None, [], object(), Unhelpful, ...], ids=range(7))
def test_what_is_no_type(source):
    assert_ends(source)
