"""`explain` says what holds: compared with what can be generated where that is cheap."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Json, model_validator

import structgen as sg
from structgen.errors import UnsupportedSchemaError


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
        (Literal["a", "b"], '"a" or "b"', ("one spelling, as json.dumps",)),
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
