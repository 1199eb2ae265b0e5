"""`generate`, `structured` and `check`."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field, TypeAdapter

import structgen as sg
from structgen import api
from structgen.errors import (
    BudgetError,
    InvalidTextError,
    OptionError,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::structgen.linter.DesignWarning")
"""What the design lint says is tested in `tests/lint`."""

T = TypeVar("T")


class Triage(BaseModel):
    reasoning: str = Field(max_length=10)
    team: Literal["billing", "technical", "sales"]


class Node(BaseModel):
    """Its first reference is known only once the class exists."""

    name: str = Field(max_length=3)
    kids: list[Node] = Field(default=[], max_length=2)


class Page(BaseModel, Generic[T]):
    items: list[T] = Field(max_length=2)


class Base(BaseModel):
    reason: str = Field(max_length=5)


class Inherited(Base):
    sure: bool


@pytest.fixture
def lm():
    return RandomLM(byte_vocabulary())


@pytest.fixture
def no_default_model(monkeypatch):
    """Asking for the default model fails."""

    def refuse():
        raise AssertionError("the default model was asked for")

    monkeypatch.setattr(api, "default_lm", refuse)


def test_generate_returns_an_instance(lm):
    assert isinstance(sg.generate(Triage, "Hello", lm=lm), Triage)


def test_generate_passes_its_options_on(lm):
    options = {
        "max_new_tokens": 90,
        "do_sample": True,
        "temperature": 1.5,
        "top_k": 20,
        "top_p": 0.9,
        "min_p": 0.01,
        "seed": 4,
        "retries": 2,
        "layout": "compact",
        "require_all": True,
        "schema_prompt": "Write {schema}",
    }
    by_hand = sg.Generator(Node, lm, **options)("Hello")
    assert sg.generate(Node, "Hello", lm=lm, **options) == by_hand


def test_generate_takes_the_default_model_if_none_is_given(monkeypatch):
    monkeypatch.setattr(api, "default_lm", lambda: ScriptedLM(byte_vocabulary(), "true"))
    assert sg.generate(bool, "Is water wet?") is True


def test_the_default_model_is_loaded_once(monkeypatch):
    from structgen.runtime import hf

    loaded: list[object] = []
    monkeypatch.setattr(api, "_default", [])
    monkeypatch.setattr(hf, "load", lambda: loaded.append(object()) or loaded[-1])
    assert sg.default_lm() is sg.default_lm()
    assert len(loaded) == 1


@pytest.mark.usefixtures("no_default_model")
@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (complex, UnsupportedSchemaError),
        ({"divisibleBy": 2}, UnsupportedSchemaError),
        (Annotated[int, Field(gt=5, lt=6)], UnsatisfiableSchemaError),
    ],
)
def test_the_schema_is_checked_before_a_model_is_loaded(schema, error):
    with pytest.raises(error):
        sg.generate(schema, "Hello")


@pytest.mark.usefixtures("no_default_model")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
        ({"temperature": 0}, "temperature=0"),
        ({"top_k": -1}, "top_k=-1"),
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"min_p": 2.0}, "min_p=2.0"),
        ({"do_sample": "yes"}, "do_sample='yes'"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"layout": "pretty"}, "layout='pretty'"),
        ({"schema_prompt": 3}, "schema_prompt=3"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": 2, "top_k": 1}, "top_k=1"),
    ],
)
def test_options_are_checked_before_a_model_is_loaded(options, message):
    with pytest.raises(OptionError, match=message):
        sg.generate(bool, "Hello", **options)


@pytest.mark.usefixtures("no_default_model")
@pytest.mark.parametrize("prompt", [b"bytes", 3, None, [], ["text"], [{"role": "user"}]])
def test_the_prompt_is_checked_before_a_model_is_loaded(prompt):
    with pytest.raises((InvalidTextError, OptionError)):
        sg.generate(bool, prompt)


def test_a_budget_that_is_too_small_is_named(lm):
    with pytest.raises(BudgetError, match="Triage"):
        sg.generate(Triage, "Hello", lm=lm, max_new_tokens=2)
    assert lm.chunks == []


def test_structured_returns_the_class_unchanged():
    class Plain(BaseModel):
        sure: bool

    before = dict(vars(Plain))
    assert sg.structured(Plain) is Plain
    assert dict(vars(Plain)) == before


def test_structured_complains_where_the_class_is_written():
    with pytest.raises(UnsupportedSchemaError) as caught:

        @sg.structured
        class Wrong(BaseModel):
            z: complex
            team: Literal["a"]
            more: list[complex]

    assert [fault.path for fault in caught.value.faults] == ["$.z", "$.more[*]"]
    assert "Wrong cannot be compiled" in str(caught.value)


def test_structured_finds_what_no_value_can_match():
    with pytest.raises(UnsatisfiableSchemaError, match=r"\$\.low"):

        @sg.structured
        class Wrong(BaseModel):
            low: int = Field(ge=5, le=4)


def test_structured_leaves_forward_references_for_later(lm):
    @sg.structured
    class Letter(BaseModel):
        stamp: Stamp

    class Stamp(BaseModel):
        cents: int = Field(ge=0, le=99)

    assert not Letter.__pydantic_complete__
    Letter.model_rebuild(_types_namespace={"Stamp": Stamp})
    assert isinstance(sg.generate(Letter, "Hello", lm=lm), Letter)


def test_a_forward_reference_that_is_never_defined_is_a_schema_error(lm):
    @sg.structured
    class Letter(BaseModel):
        stamp: Missing  # noqa: F821

    with pytest.raises(SchemaError, match="Missing"):
        sg.generate(Letter, "Hello", lm=lm)


@pytest.mark.parametrize("schema", [Triage, Node, Page[Triage], Page[int], Inherited])
def test_structured_accepts_recursion_generics_and_inheritance(schema, lm):
    assert sg.structured(schema) is schema
    assert isinstance(sg.generate(schema, "Hello", lm=lm, max_new_tokens=120), schema)


def test_inherited_fields_come_first(lm):
    text = sg.Generator(Inherited, lm).run("Hello").text
    assert text.index('"reason"') < text.index('"sure"')


@pytest.mark.parametrize("thing", [int, 3, "Triage", Triage(reasoning="", team="sales")])
def test_structured_is_for_pydantic_models(thing):
    with pytest.raises(OptionError, match="structured is for Pydantic models"):
        sg.structured(thing)


@pytest.mark.parametrize("schema", [Triage, Node, int, list[Triage], TypeAdapter(dict[str, int])])
def test_check_says_nothing_about_a_good_schema(schema):
    assert sg.check(schema) is None


def test_check_lists_all_faults_at_once():
    class Wrong(BaseModel):
        a: complex
        b: list[complex]
        c: dict[str, complex]

    with pytest.raises(UnsupportedSchemaError) as caught:
        sg.check(Wrong)
    assert [fault.path for fault in caught.value.faults] == ["$.a", "$.b[*]", "$.c.*"]
