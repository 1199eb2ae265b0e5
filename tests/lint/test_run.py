"""`lint`: what it takes, what it returns, how rules are silenced; and warnings of `structured`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, create_model

import structgen as sg
from structgen.errors import OptionError, UnsupportedSchemaError

QUIET = {"structgen_ignore": ["SG108"]}


class Node(BaseModel):
    title: str
    left: Node | None
    right: Node | None


@dataclass
class Record:
    loud: str
    quiet: Annotated[str, Field(json_schema_extra=QUIET)]


def codes(schema: Any, **options: Any) -> list[str]:
    return [finding.code for finding in sg.lint(schema, **options)]


def test_a_finding_reads_as_a_sentence():
    assert [str(finding) for finding in sg.lint(str)] == [
        "SG108 $: the string has no max_length; set `max_length`, in characters [capped-strings]"
    ]


def test_findings_are_sorted_by_code():
    class Loose(BaseModel):
        x: str
        team: Literal["red", "blue", "green"]

    assert codes(Loose) == ["SG102", "SG103", "SG108", "SG204"]


@pytest.mark.parametrize("schema", [str, TypeAdapter(str), {"type": "string"}])
def test_every_kind_of_schema_is_taken(schema):
    assert codes(schema) == ["SG108"]


def test_a_recursive_type_is_looked_at_once():
    found = [(f.code, f.path) for f in sg.lint(Node)]
    assert found == [("SG103", "$"), ("SG108", "$.title")]


def test_a_schema_that_cannot_be_compiled_is_refused():
    with pytest.raises(UnsupportedSchemaError, match="complex"):
        sg.lint(complex)


@pytest.mark.parametrize("ignore", [["SG108"], ("capped-strings",), {"SG108", "SG103"}])
def test_rules_are_ignored_by_code_or_name(ignore):
    assert codes(str, ignore=ignore) == []


@pytest.mark.parametrize("ignore", [["SG999"], ["capped"], "SG108"])
def test_a_misspelt_rule_is_refused(ignore):
    with pytest.raises(OptionError, match="ignore"):
        sg.lint(str, ignore=ignore)


def test_a_budget_needs_a_vocabulary():
    with pytest.raises(OptionError, match="vocabulary"):
        sg.lint(str, max_new_tokens=9)


def loud_paths(schema: Any) -> list[str]:
    return [finding.path for finding in sg.lint(schema) if finding.code == "SG108"]


def test_a_field_silences_a_rule_for_itself_and_what_is_in_it():
    class Fields(BaseModel):
        loud: str
        quiet: str = Field(json_schema_extra=QUIET)
        inside: list[str] = Field(json_schema_extra=QUIET)
        by_name: str = Field(json_schema_extra={"structgen_ignore": ["capped-strings"]})
        other: str = Field(json_schema_extra={"structgen_ignore": ["SG102"]})
        aliased: str = Field(json_schema_extra=QUIET, alias="as")
        choices: str = Field(json_schema_extra=QUIET, validation_alias=AliasChoices("b", "c"))

    assert loud_paths(Fields) == ["$.loud", "$.other"]


def test_a_silence_holds_for_its_own_class_only():
    class Inner(BaseModel):
        note: str
        age: int

    class Outer(BaseModel):
        note: str = Field(json_schema_extra=QUIET)
        inner: Inner

    assert loud_paths(Outer) == ["$.inner.note"]


def test_a_json_schema_silences_by_a_keyword():
    properties = {"loud": {"type": "string"}, "quiet": {"type": "string", **QUIET}}
    assert loud_paths({"type": "object", "properties": properties}) == ["$.loud"]


def test_a_dataclass_silences_too():
    assert loud_paths(Record) == ["$.loud"]


def test_a_described_field_is_not_listed_again():
    class Fields(BaseModel):
        bare: int
        quiet: int = Field(json_schema_extra={"structgen_ignore": ["SG103"]})

    (finding,) = sg.lint(Fields)
    assert finding.message == "this field has no description: 'bare'"


@pytest.mark.parametrize("value", ["SG108", [1], None, ["SG999"]])
def test_a_broken_silence_is_refused(value):
    class Fields(BaseModel):
        note: str = Field(json_schema_extra={"structgen_ignore": value})

    with pytest.raises(OptionError, match="structgen_ignore"):
        sg.lint(Fields)


def test_structured_warns_once_a_class_where_it_is_decorated():
    with pytest.warns(sg.DesignWarning) as caught:

        @sg.structured
        class Loose(BaseModel):
            x: str

    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).startswith("Loose has 3 findings of the design lint:\n  SG102 $.x:")
    assert isinstance(warning.message, sg.DesignWarning)
    assert warning.message.findings == tuple(sg.lint(Loose))


def test_structured_with_arguments_points_at_the_class_too():
    with pytest.warns(sg.DesignWarning, match=r"1 finding of .*\n.*SG108") as caught:

        @sg.structured(ignore=("SG102", "descriptions"))
        class Loose(BaseModel):
            x: str

    assert caught[0].filename == __file__


def test_structured_is_silent_where_it_is_told_so():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @sg.structured(lint=False)
        class Unlinted(BaseModel):
            x: str

        @sg.structured(ignore=["SG102", "SG103", "SG108"])
        class Ignored(BaseModel):
            x: str

        @sg.structured
        class Good(BaseModel):
            age: int = Field(description="in years")

    assert Unlinted.__name__ == "Unlinted"
    assert Ignored(x="a").x == "a"


def test_structured_still_checks_what_it_does_not_lint():
    with pytest.raises(UnsupportedSchemaError):

        @sg.structured(lint=False)
        class Wrong(BaseModel):
            z: complex


def test_structured_refuses_other_things_and_unknown_rules():
    with pytest.raises(OptionError, match="for Pydantic models"):
        sg.structured(ignore=["SG103"])(int)
    with pytest.raises(OptionError, match="SG999"):

        @sg.structured(ignore=["SG999"])
        class Model(BaseModel):
            age: int


@sg.structured(ignore=["capped-strings", "SG103", "SG107"])
class Quiet(BaseModel):
    model_config = ConfigDict(extra="allow")
    note: str
    again: Quiet | None


class Around(BaseModel):
    note: str
    quiet: list[Quiet]


def test_a_class_is_silent_inside_of_others_too():
    assert sg.lint(Quiet) == []
    assert [(finding.code, finding.path) for finding in sg.lint(Around)] == [
        ("SG103", "$"),
        ("SG108", "$.note"),
    ]


def test_only_the_class_itself_is_silent():
    @sg.structured(ignore=["SG108"])
    class Short(BaseModel):
        note: str = Field(description="a note")

    class Longer(BaseModel):
        note: str = Field(description="another note")
        more: str = Field(description="and one more", json_schema_extra=QUIET)
        short: Short = Field(description="the short one")

    assert [(finding.code, finding.path) for finding in sg.lint(Longer)] == [("SG108", "$.note")]


def test_a_class_that_is_completed_later_is_silent_too():
    @sg.structured(ignore=["SG108", "SG103"])
    class Letter(BaseModel):
        text: str
        stamp: Stamp

    class Stamp(BaseModel):
        cents: int = Field(description="its price")

    Letter.model_rebuild(_types_namespace={"Stamp": Stamp})
    assert sg.lint(Letter) == []


@pytest.mark.parametrize("rule", ["SG106", "flat-over-deep"])
def test_a_class_silences_what_is_about_the_whole_schema(rule):
    inner: Any = int
    for _ in range(5):
        inner = create_model("Deep", inner=(inner, Field(description="the next one")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.structured(ignore=[rule])(inner)
