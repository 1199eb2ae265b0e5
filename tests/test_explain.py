"""`explain` says what holds: compared with what can be generated where that is cheap."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    UUID4,
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    DirectoryPath,
    Discriminator,
    Field,
    FilePath,
    FutureDatetime,
    HttpUrl,
    Json,
    NaiveDatetime,
    PastDate,
    PrivateAttr,
    StringConstraints,
    Tag,
    TypeAdapter,
    WrapValidator,
    field_validator,
    model_validator,
)

import structgen as sg
from structgen.errors import UnsupportedSchemaError
from structgen.testing import byte_vocabulary


class Home(BaseModel):
    city: str = Field(max_length=30)


class Person(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: Annotated[str, AfterValidator(str.strip)] = Field(min_length=1)
    age: int = Field(ge=0, le=120)
    share: float = Field(0.5, ge=0, le=1)
    home: Home
    work: Home | None = None
    tags: set[Literal["a", "b"]]

    @model_validator(mode="after")
    def check(self) -> Person:
        return self


class Tree(BaseModel):
    kids: list[Tree] = Field(max_length=2)


def rows(schema: Any) -> dict[str, sg.Explanation]:
    return {row.path: row for row in sg.explain(schema).fields}


def test_there_is_a_row_for_every_path_in_declared_order():
    assert [row.path for row in sg.explain(Person).fields if not row.path.startswith("$.*")] == [
        "$", "$.name", "$.age", "$.share", "$.home", "$.home.city", "$.work", "$.tags", "$.tags[*]",
        "$.<key>",
    ]  # fmt: skip


def test_validators_are_named_where_they_run():
    checked = [path for path, row in rows(Person).items() if row.checked_after]
    assert checked == ["$", "$.name"]


@pytest.mark.parametrize(
    ("schema", "enforced", "canonical"),
    [
        (str, "string", ("raw UTF-8 or any JSON escape",)),
        (Annotated[str, Field(max_length=3)], "string (at most 3 characters)", None),
        (
            Annotated[str, Field(pattern="^a+$")],
            "string (matching ^a+$)",
            ("json.dumps' escapes only",),
        ),
        (int, "whole number", ("at most 19 digits", "no fraction or exponent")),
        (
            Annotated[int, Field(ge=0, le=5)],
            "whole number (at least 0 and at most 5)",
            ("no fraction or exponent",),
        ),
        (float, "number", ("at most 16 digits before and 20 after the point",)),
        (
            Annotated[float, Field(ge=0)],
            "number (at least 0)",
            ("no exponent", "at most 20 decimals"),
        ),
        (bool, "true or false", ()),
        (TypeAdapter(Literal["a", "b"]), '"a" or "b"', ("one spelling, as json.dumps",)),
        (list[int], "array", ()),
        (Annotated[list[int], Field(max_length=1)], "array (at most 1 item)", ()),
        (Annotated[list[int], Field(min_length=2, max_length=2)], "array (exactly 2 items)", ()),
        (set[bool], "array (no repeats)", ("no item twice",)),
        (int | None, "whole number or null", None),
        (Home, "object of 1 field (no other keys)", ()),
        (Json[int], "string of JSON: whole number", ("compact JSON inside the string",)),
        (dict[str, int], "object", ()),
    ],
)
def test_a_row_in_words(schema, enforced, canonical):
    row = rows(schema)["$"]
    assert row.enforced == enforced
    assert canonical is None or row.canonical == canonical


def test_open_objects_and_optional_fields():
    found = rows(Person)
    assert found["$"].enforced == "object of 6 fields (undeclared keys may follow)"
    assert found["$"].canonical == ("declared order, then undeclared keys",)
    assert found["$.share"].enforced.endswith("; may be left out")
    assert "left out" not in found["$.age"].enforced


def test_a_definition_is_explained_once():
    assert rows(Person)["$.work"].enforced == "the same as $.home or null; may be left out"
    assert rows(Tree)["$.kids[*]"].enforced == "the same as $"


def test_the_options_of_a_union_share_a_row():
    found = rows(Home | list[int])
    assert found["$"].enforced == "object of 1 field (no other keys) or array"
    assert list(found) == ["$", "$.city", "$[*]"]


def test_it_prints_as_an_aligned_table():
    assert str(sg.explain(Home)) == (
        "path    enforced while decoding            written as\n"
        "------  ---------------------------------  ----------------------------\n"
        "$       object of 1 field (no other keys)\n"
        "$.city  string (at most 30 characters)     raw UTF-8 or any JSON escape"
    )


def test_long_cells_are_wrapped():
    lines = str(sg.explain(Literal[tuple(f"label {n}" for n in range(30))])).splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) < 100


def test_it_is_plain_data_too():
    explanation = sg.explain(Person)
    data = json.loads(json.dumps(explanation.to_dict()))
    assert data["title"] == "Person"
    assert [row["path"] for row in data["fields"]] == [row.path for row in explanation.fields]
    assert set(data["fields"][0]) == {"path", "enforced", "checked_after", "canonical"}


def test_a_refused_schema_raises_what_compile_raises():
    with pytest.raises(UnsupportedSchemaError) as caught:
        sg.explain(complex)
    with pytest.raises(UnsupportedSchemaError) as compiled:
        sg.check(complex)
    assert str(caught.value) == str(compiled.value)


def test_json_schemas_are_explained():
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    found = rows(schema)
    assert found["$.age"].enforced == "whole number"
    assert "undeclared keys may follow" in found["$"].enforced


def even(value: int) -> int:
    return value


class Checked(BaseModel):
    named: Annotated[int, AfterValidator(even)]
    nameless: Annotated[int, BeforeValidator(lambda value: value)]
    around: Annotated[int, WrapValidator(lambda value, inner: inner(value))]
    partly: Annotated[int, AfterValidator(functools.partial(even))]
    twice: int
    items: list[Annotated[str, AfterValidator(str.strip)]]
    born: PastDate
    due: FutureDatetime
    file: FilePath
    parent: DirectoryPath

    @field_validator("twice")
    @classmethod
    def late(cls, value: int) -> int:
        return value

    @field_validator("twice", mode="before")
    @classmethod
    def early(cls, value: Any) -> Any:
        return value

    @model_validator(mode="wrap")
    @classmethod
    def whole(cls, value: Any, inner: Any) -> Any:
        return inner(value)


def test_every_check_has_its_name():
    found = rows(Checked).items()
    assert {path: row.checked_after for path, row in found if row.checked_after} == {
        "$": "the validator `whole` (around)",
        "$.named": "the validator `even`",
        "$.nameless": "a Python validator (before)",
        "$.around": "a Python validator (around)",
        "$.partly": "the validator `even`",
        "$.twice": "the validator `late`; the validator `early` (before)",
        "$.items[*]": "the validator `strip`",
        "$.born": "lies in the past",
        "$.due": "lies in the future",
        "$.file": "the file exists",
        "$.parent": "the directory exists",
    }


class OwnInit(BaseModel):
    a: int

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)


class PostInit(BaseModel):
    a: int
    _cache: int = PrivateAttr(1)

    def model_post_init(self, context: Any) -> None: ...


class Private(BaseModel):
    a: int
    _cache: int = PrivateAttr(1)


@dataclass
class Record:
    a: int

    def __post_init__(self) -> None: ...


@dataclass
class PlainRecord:
    a: int


def of_kind(value: Any) -> str:
    return "cat"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


ByFunction = Annotated[
    Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(of_kind)
]


@pytest.mark.parametrize(
    ("schema", "checked"),
    [
        (OwnInit, "the model's `__init__`"),
        (PostInit, "the model's `model_post_init`"),
        (Private, ""),
        (Record, "the model's `__post_init__`"),
        (PlainRecord, ""),
        (ByFunction, "`of_kind` picks the option"),
        (TypeAdapter(even), "`even` is called"),
        (even, ""),
    ],
)
def test_what_runs_when_the_value_is_made(schema, checked):
    assert rows(schema)["$"].checked_after == checked


@pytest.mark.parametrize("schema", [OwnInit, PostInit])
def test_what_a_model_runs_itself_is_a_check_for_the_compiler_too(schema):
    assert sg.compile(schema, byte_vocabulary()).validators == ("$",)


def test_values_of_extra_keys_are_checked_in_their_own_row():
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        __pydantic_extra__: dict[str, Annotated[int, AfterValidator(even)]]

    assert rows(Open)["$.*"].checked_after == "the validator `even`"
    assert all(row.enforced for row in rows(Open).values())


@pytest.mark.parametrize(
    ("schema", "enforced", "canonical"),
    [
        (Annotated[float, Field(gt=0, lt=1)], "number (more than 0 and less than 1)", None),
        (
            Annotated[str, StringConstraints(strip_whitespace=True, max_length=5)],
            "string (at most 5 characters; no white space at the ends)",
            None,
        ),
        (AwareDatetime, "date-time with an offset", ("ISO 8601 with seconds",)),
        (NaiveDatetime, "date-time without an offset", None),
        (UUID4, "uuid of version 4", ("with hyphens",)),
        (HttpUrl, "http or https url", None),
        (
            Annotated[date, Field(ge=date(2020, 1, 1), lt=date(2021, 1, 1))],
            "date from 2020-01-01 until 2020-12-31",
            ("YYYY-MM-DD",),
        ),
        (Annotated[date, Field(gt=date(2020, 1, 1))], "date from 2020-01-02", None),
        (Base64Bytes, "base64", ("padded",)),
        (Annotated[dict[str, int], Field(min_length=1, max_length=2)],
         "object (at least 1 key, at most 2 keys)", None),
    ],
)  # fmt: skip
def test_types_with_a_name_say_what_they_demand(schema, enforced, canonical):
    row = rows(schema)["$"]
    assert row.enforced == enforced
    assert canonical is None or row.canonical == canonical


def test_objects_of_a_union_are_told_apart():
    found = rows(ByFunction)
    assert found["$"].enforced == (
        "object of kind, lives (no other keys) or object of kind, barks (no other keys)"
    )
    assert found["$.kind"].enforced == '"cat" (may be left out) or "dog"'


def test_names_that_are_read_but_never_written():
    class Named(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        a: int = Field(alias="A")
        b: int = Field(validation_alias=AliasChoices("B", "bee"))

    assert rows(Named)["$"].canonical == ("declared order", "not by the names a, b, bee")
