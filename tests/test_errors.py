"""Every mistake in a schema has its own error, which says where it is and what to do."""

# ruff: noqa: UP007  # users write types in the older spellings too

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Union

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    TypeAdapter,
    create_model,
)
from pydantic.dataclasses import dataclass

from structgen.compiler import compile  # noqa: A004
from structgen.errors import (
    BudgetError,
    Fault,
    SchemaError,
    StructgenError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from tests import strategies
from tests.walks import generate

BYTES = strategies.byte_vocabulary()


class Plain(enum.Enum):
    a = (1, 2)


class NoMembers(enum.Enum):
    pass


@dataclass
class Data:
    a: int


class Pair(NamedTuple):
    a: int


UNSUPPORTED: list[tuple[Any, str]] = [
    (complex, "'complex' is not supported"),
    (Callable[[int], int], "'callable' is not supported"),
    (NoMembers, "(NoMembers) is not supported"),
    (Plain, "the choice (1, 2) has no JSON form"),
    (Literal[b"x"], "the choice b'x' has no JSON form (use a str or an int)"),
    (Annotated[int, PlainValidator(int)], "a function decides alone what is valid"),
    (Annotated[str, StringConstraints(to_lower=True)], "to_lower=True of type 'str'"),
]


@pytest.mark.parametrize(("source", "problem"), UNSUPPORTED, ids=lambda x: str(x)[:40])
def test_unsupported_types(source, problem):
    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(source, BYTES)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].path == "$"
    assert problem in str(caught.value)


@pytest.mark.parametrize(("source", "problem"), UNSUPPORTED, ids=lambda x: str(x)[:40])
def test_unsupported_types_anywhere(source, problem):
    inner = create_model("Inner", odd=(source, ...))
    model = create_model(
        "Outer", a=(list[inner], ...), b=(dict[str, source], ...), c=(source, Field(alias="C c"))
    )
    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(model, BYTES)
    paths = [fault.path for fault in caught.value.faults]
    everywhere = ["$.a[*].odd", "$.b.*", "$.C c"]
    assert paths in (everywhere, everywhere[:1])  # classes are read, and reported, once
    assert all(problem in str(fault) for fault in caught.value.faults)


@pytest.mark.parametrize("key", [tuple[int, int], frozenset[str]])
def test_unsupported_keys(key):
    model = create_model("M", a=(dict[key, int], ...))
    with pytest.raises(UnsupportedSchemaError, match=r"\$\.a\.<key>: keys of type") as caught:
        compile(model, BYTES)
    assert caught.value.faults[0].advice.startswith("use str")


def test_more_free_keys_than_there_are_cannot_be_demanded():
    key = Annotated[str, StringConstraints(pattern="^[ab]$")]
    source = Annotated[dict[key, int], Field(min_length=3)]
    with pytest.raises(UnsupportedSchemaError, match=r"\$: at least 3 properties are needed"):
        compile(source, BYTES)


@pytest.mark.parametrize("setting", ["str_to_lower", "str_to_upper"])
def test_settings_that_change_text(setting):
    model = create_model("M", __config__=ConfigDict(**{setting: True}), a=(str, ...), b=(int, ...))
    for source in (model, list[model]):
        with pytest.raises(UnsupportedSchemaError, match=f"a: the model setting {setting} cannot"):
            compile(source, BYTES)
    with pytest.raises(UnsupportedSchemaError, match=setting):
        compile(TypeAdapter(str, config=ConfigDict(**{setting: True})), BYTES)
    harmless = create_model("M", __config__=ConfigDict(**{setting: True}), b=(int, ...))
    compile(harmless, BYTES)


def test_all_faults_are_reported_at_once():
    class Inner(BaseModel):
        odd: complex

    class Bad(BaseModel):
        a: complex
        fine: int
        b: Annotated[str, StringConstraints(to_lower=True)]
        c: list[Inner] = []
        d: dict[tuple[int, int], str] | None = None
        e: Annotated[str, StringConstraints(to_upper=True)] | complex

    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(Bad, BYTES)
    error = caught.value
    paths = ["$.a", "$.b", "$.c[*].odd", "$.d.<key>", "$.e", "$.e"]
    assert [fault.path for fault in error.faults] == paths
    assert error.schema == "Bad"
    assert isinstance(error, SchemaError)
    lines = str(error).splitlines()
    assert lines[0] == "Bad cannot be compiled:"
    assert lines[1:] == [f"  {fault}" for fault in error.faults]


def test_alias_faults():
    class Paths(BaseModel):
        a: int = Field(validation_alias=AliasPath("a", 0))
        b: int = Field(validation_alias=AliasChoices(AliasPath("b", "c"), "b"))

    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(Paths, BYTES)
    assert [fault.path for fault in caught.value.faults] == ["$.a", "$.b"]
    assert "the alias path ['a', 0] is not supported (use a plain alias)" in str(caught.value)

    class Twice(BaseModel):
        a: int = Field(alias="k")
        b: int = Field(alias="k")

    with pytest.raises(UnsupportedSchemaError, match=r"\$\.b: the alias.*'k'.*'a'"):
        compile(Twice, BYTES)


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    x: int = Field(alias="y")
    y: str = Field("d", alias="z")


class Choices(BaseModel):
    x: int = Field(1, validation_alias=AliasChoices("a", "b"))
    b: str


@pytest.mark.parametrize("model", [ByName, Choices])
def test_names_that_stand_for_two_fields(model):
    """Validation would read one value into both."""
    with pytest.raises(UnsupportedSchemaError, match="also stands for the field 'x'"):
        compile(model, BYTES)


@pytest.mark.parametrize(
    ("config", "field", "key"),
    [
        ({"validate_by_name": True, "validate_by_alias": True}, Field(1, alias="X"), "x"),
        ({"populate_by_name": True}, Field(1, alias="X"), "x"),
        ({}, Field(1, validation_alias=AliasChoices("X", "x")), "x"),
        ({}, Field(1, validation_alias=AliasChoices("X", AliasPath("x", 0))), "x"),
    ],
)
def test_undeclared_keys_are_no_second_name_of_a_field(config, field, key):
    """Such a key would be read as the field, whose type its value need not have."""
    model = create_model("M", __config__=ConfigDict(extra="allow", **config), x=(int, field))
    session = compile(model, BYTES).session()
    for byte in b'{"' + key.encode():
        session.advance(byte)
    assert not session.allows(ord('"'))
    session.advance(ord("y"))
    assert session.allows(ord('"'))


def pick_tag(value: Any) -> str:
    return "a"


def test_what_a_callable_discriminator_says_is_checked_afterwards():
    source = Annotated[Annotated[int, Tag("a")] | Annotated[str, Tag("b")], Discriminator(pick_tag)]
    model = create_model("M", a=(source, ...))
    assert "$.a" in compile(model, BYTES).validators


@pytest.mark.parametrize("source", [5, len, "Undefined", Literal["\ud800"], {1: 2}])
def test_sources_that_are_no_schema(source):
    with pytest.raises(UnsupportedSchemaError, match=r"\$(\.obj)?: "):
        compile(source, BYTES)


def test_a_misspelt_keyword_is_refused_by_name():
    with pytest.raises(UnsupportedSchemaError, match="did you mean 'required'"):
        compile({"type": "object", "requred": []}, BYTES)


def test_a_pattern_whose_automaton_is_too_large_is_refused():
    with pytest.raises(UnsupportedSchemaError, match="too large"):
        compile({"type": "string", "pattern": "^[01]*1[01]{30}$"}, BYTES)


def test_lone_surrogates_in_choices():
    odd = enum.Enum("odd", {"a": "\udc00", "b": "fine"})
    with pytest.raises(UnsupportedSchemaError, match=r"\$: [\s\S]*(surrogate|extract)"):
        compile(odd, BYTES)


def test_undefined_names():
    class Open(BaseModel):
        a: Nowhere  # noqa: F821

    with pytest.raises(UnsupportedSchemaError, match="Nowhere"):
        compile(Open, BYTES)


IMPOSSIBLE: list[tuple[Any, str]] = [
    (Annotated[int, Field(gt=3, lt=4)], "no integer is at least 4 and at most 3"),
    (Annotated[str, Field(min_length=3, max_length=2)], "min_length 3 is more than max_length 2"),
    (Annotated[list[int], Field(min_length=3, max_length=2)], "min_items 3 is more than max_items"),
    (Annotated[float, Field(gt=1, lt=1)], "no number is > 1.0 and < 1.0"),
    (Annotated[float, Field(ge=2, le=1)], "no number is >= 2.0 and <= 1.0"),
]


def test_numbers_too_small_to_be_written():
    """There are such numbers, so the bounds do not contradict each other."""
    with pytest.raises(UnsupportedSchemaError, match="at most 20 digits after the point"):
        compile(Annotated[float, Field(gt=0, lt=1e-25)], BYTES)


@pytest.mark.parametrize(("source", "problem"), IMPOSSIBLE, ids=lambda x: str(x)[-40:])
def test_contradictory_bounds(source, problem):
    """They are the author's mistake also where the field may be left out."""
    model = create_model(
        "M", a=(source, ...), b=(source, None), c=(Union[source, None], None), d=(list[source], [])
    )
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        compile(model, BYTES)
    assert [fault.path for fault in caught.value.faults] == ["$.a", "$.b", "$.c", "$.d[*]"]
    assert str(caught.value).count(problem) == 4
    with pytest.raises(UnsatisfiableSchemaError, match=r"\$: "):
        compile(source, BYTES)


class Endless(BaseModel):
    again: Endless


class Ping(BaseModel):
    pong: Pong


class Pong(BaseModel):
    pings: list[Ping] = Field(min_length=1)


class Ends(BaseModel):
    nothing: Endless | None
    none: list[Endless] = []


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (Endless, "$.again"),
        (Ping, "$.pong.pings[*]"),
        (create_model("M", a=(int, 1), b=(Endless, ...)), "$.b.again"),
        (Annotated[list[Endless], Field(min_length=1)], "$[*].again"),
        (Union[Endless, Ping], "$.again"),
    ],
)
def test_recursion_without_end(source, path):
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        compile(source, BYTES)
    assert caught.value.faults[0].path == path
    assert "contains itself" in caught.value.faults[0].problem
    assert "optional" in caught.value.faults[0].advice


def test_endless_parts_that_can_be_left_out_are_never_begun():
    compiled = compile(Ends, BYTES)
    rng = random.Random(0)
    found = {generate(compiled.session, BYTES, rng, compiled.min_tokens + n)[0] for n in range(40)}
    assert found == {b'{"nothing": null}', b'{"nothing": null, "none": []}'}


def test_require_all_can_make_a_recursion_endless():
    model = create_model("M", again=("M | None", None), other=("M", None))
    model.model_rebuild(_types_namespace={"M": model})
    compile(model, BYTES)
    with pytest.raises(UnsatisfiableSchemaError, match=r"other"):
        compile(model, BYTES, require_all=True)


def test_budgets_name_the_schema():
    with pytest.raises(BudgetError, match="shortest value of Ends, which takes 17"):
        compile(Ends, BYTES).session(16)


def test_the_tree_of_errors():
    assert issubclass(SchemaError, StructgenError)
    assert str(Fault("$.a", "bad", "do this")) == "$.a: bad (do this)"
    assert str(Fault("$.a", "bad")) == "$.a: bad"
