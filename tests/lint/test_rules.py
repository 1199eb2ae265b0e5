"""Every rule finds what it is about, and leaves the rest alone."""

from __future__ import annotations

import enum
from ipaddress import IPv6Address
from typing import Annotated, Any, Literal

import pytest
from pydantic import UUID4, BaseModel, ConfigDict, Field, HttpUrl, create_model

import structgen as sg
from structgen.linter import RULES
from structgen.testing import byte_vocabulary, small_vocabulary

TEAMS = Literal["billing", "sales", "other"]
Short = Annotated[str, Field(max_length=20)]


def model(config: ConfigDict | None = None, /, **fields: Any) -> type[BaseModel]:
    """A model of required fields."""
    parts: dict[str, Any] = {name: (kind, ...) for name, kind in fields.items()}
    return create_model("Model", __config__=config, **parts)


def paths(rule: str, schema: Any, **options: Any) -> list[str]:
    """Where one rule finds something."""
    return [finding.path for finding in sg.lint(schema, **options) if finding.code == rule]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


class Tagged(BaseModel):
    kind: Literal["tagged"]
    count: int


class Shared(BaseModel):
    first: Color
    second: Color


class Tree(BaseModel):
    title: str
    kids: list[Tree]


def nested(depth: int) -> type[BaseModel]:
    inner: Any = int
    for _ in range(depth):
        inner = model(inner=inner)
    return inner


def test_what_is_written_around_the_arguments_of_a_tool_needs_no_description():
    def weather(city: str, days: int = 1) -> str:
        """Look up the weather.

        Args:
            city: where.
        """
        return city * days

    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    search = {"type": "function", "function": {"name": "search", "parameters": parameters}}
    for options in ({}, {"parallel": True}, {"none": True}):
        found = [f for f in sg.lint(sg.tools([weather, search], **options)) if f.code == "SG103"]
        assert {f.message.split(": ")[1].split(";")[0] for f in found} == {"'days'", "'q'"}
    own = model(name=Literal["a"], arguments=int)
    assert paths("SG103", own) == ["$"]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (model(team=TEAMS), ["$.team"]),
        (model(count=int, team=TEAMS | None), ["$.team"]),
        (model(team=TEAMS, other=TEAMS), ["$.team"]),
        (model(team=TEAMS, reason=str), ["$.reason"]),
        (model(note=str, sure=bool, because=str), ["$.because"]),
        (model(answer=int, reasoning_steps=list[str]), ["$.reasoning_steps"]),
        (model(finalScore=float, finalExplanation=str), ["$.finalExplanation"]),
        (model(inner=model(team=TEAMS)), ["$.inner.team"]),
        (model(reason=str, team=TEAMS), []),
        (model(name=str, team=TEAMS), []),
        (model(evidence=list[str], team=TEAMS), []),
        (model(sure=bool), []),
        (model(reason=str, team=TEAMS, rationale=str), []),
        (model(count=int, reason=str), []),
        (model(reason=Literal["late", "broken"]), ["$.reason"]),
        (model(count=int, team=TEAMS, reason_code=int), ["$.team"]),
        (model(name=str, team=TEAMS, reason_code=int), []),
        (model(name=str, team=TEAMS, reasoning=model(steps=str)), ["$.reasoning"]),
        (model(note=str, inner=model(team=TEAMS)), []),
        (model(note=str, inner=list[model(team=TEAMS)]), []),
        (Tagged, []),
        (TEAMS, []),
    ],
)
def test_reasoning_before_answer(schema, found):
    assert paths("SG101", schema) == found


@pytest.mark.parametrize("name", ["x", "field1", "field_2", "value", "Data", "item", "str"])
def test_names_that_say_nothing(name):
    assert paths("SG102", model(**{name: int})) == [f"$.{name}"]


@pytest.mark.parametrize("name", ["id", "age", "order_value", "items", "metadata", "x_axis"])
def test_telling_names(name):
    assert paths("SG102", model(**{name: int})) == []


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("xy", ""),
        ("xyz", ""),
        ("rgba", ""),
        (["key", "value"], ""),
        (["X", "Y", "value"], ["value"]),
        ("xz", "xz"),
        ("rb", "rb"),
        (["key"], ["key"]),
    ],
)
def test_short_names_that_are_usual_together(names, found):
    schema = model(**dict.fromkeys(names, int))
    assert paths("SG102", schema) == [f"$.{name}" for name in found]


def test_descriptions_are_one_finding_an_object():
    inner = model(age=int, size=Annotated[int, Field(description="in cm")])
    outer = model(name=str, inner=inner)
    found = [f for f in sg.lint(outer) if f.code == "SG103"]
    assert [f.path for f in found] == ["$", "$.inner"]
    assert "'name', 'inner'" in found[0].message
    assert "'size'" not in found[1].message


def test_a_long_list_of_fields_is_cut():
    fields = {f"part_{n}": int for n in range(9)}
    message = next(f.message for f in sg.lint(model(**fields)) if f.code == "SG103")
    assert message.endswith("'part_4' and 4 more")


def test_described_fields_and_constants_need_no_description():
    described = Annotated[int, Field(description="how many")]
    assert paths("SG103", model(kind=Literal["a"], count=described)) == []


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (model(priority=str), ["$.priority"]),
        (model(order_status=str | None), ["$.order_status"]),
        (model(eventType=Short), ["$.eventType"]),
        (model(status=TEAMS), []),
        (model(type_name=str), []),
        (model(country=Annotated[str, Field(pattern="^[A-Z]{2}$")]), []),
        (model(status=model(note=str)), []),
    ],
)
def test_enum_over_free_text(schema, found):
    assert paths("SG104", schema) == found


@pytest.mark.parametrize(
    ("n_labels", "length", "found"), [(11, 61, ["$"]), (10, 61, []), (11, 59, [])]
)
def test_index_over_string(n_labels, length, found):
    labels = [f"{n:02}".ljust(length, ".") for n in range(n_labels)]
    assert paths("SG105", {"enum": labels}) == found


def test_flat_over_deep():
    assert paths("SG106", nested(4)) == []
    assert paths("SG106", nested(5)) == ["$.inner.inner.inner.inner"]
    assert paths("SG106", model(flat=nested(2), lists=list[nested(4)])) == [
        "$.lists[*].inner.inner.inner"
    ]


def test_recursion_is_not_depth():
    assert paths("SG106", Tree) == []


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (model(ConfigDict(extra="allow"), age=int), ["$"]),
        (model(inner=model(ConfigDict(extra="allow"), age=int)), ["$.inner"]),
        ({"type": "object", "properties": {"age": {"type": "integer"}}}, ["$"]),
        (model(age=int), []),
        (model(ConfigDict(extra="ignore"), age=int), []),
        (dict[str, int], []),
    ],
)
def test_closed_objects(schema, found):
    assert paths("SG107", schema) == found


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (str, ["$"]),
        (model(note=str, tags=list[str]), ["$.note", "$.tags[*]"]),
        (dict[str, Short], ["$.<key>"]),
        (model(code=Annotated[str, Field(pattern="^a+$")]), ["$.code"]),
        (Short, []),
        (dict[Short, int], []),
        (model(code=Annotated[str, Field(pattern="^[a-z]{3}$")]), []),
        (model(ConfigDict(extra="allow"), age=int), []),
    ],
)
def test_capped_strings(schema, found):
    assert paths("SG108", schema) == found


@pytest.mark.parametrize(
    ("tokens", "labels", "found"),
    [
        (['"-'], ["-up", "down"], ["$"]),
        ([' "', "up", "down"], ["up", "down"], []),
        (['-up"', "-up"], ["-up", "down"], []),
        (['-up"'], ["-up", "down"], ["$"]),
        (['"up'], ["up", "down"], ["$"]),
        ([], ['"quoted"', "plain"], ["$"]),
        ([], ["", "plain"], []),
    ],
)
def test_split_labels(tokens, labels, found):
    vocabulary = small_vocabulary(tokens)
    assert paths("SG201", {"enum": labels}, vocabulary=vocabulary) == found
    assert paths("SG201", {"enum": labels}) == []


def test_split_labels_need_an_encoder():
    plain = sg.Vocabulary.from_bytes([bytes([n]) for n in range(256)], eos_token_ids=256)
    assert paths("SG201", {"enum": ['"a', "b"]}, vocabulary=plain) == []


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["Sales", "sales"], ["$"]),
        (["on hold", "onhold", " On Hold"], ["$"]),
        (["straße", "STRASSE"], ["$"]),
        (["sales", "sale"], []),
        (["a-b", "a_b"], []),
        (["1", 1], []),
    ],
)
def test_look_alike_labels(labels, found):
    assert paths("SG202", {"enum": labels}) == found


def test_budget():
    vocabulary = byte_vocabulary()
    needed = sg.compile(Tagged, vocabulary).min_tokens
    assert paths("SG203", Tagged, vocabulary=vocabulary, max_new_tokens=needed) == []
    assert paths("SG203", Tagged, vocabulary=vocabulary, max_new_tokens=needed - 1) == ["$"]
    assert paths("SG203", Tagged, vocabulary=vocabulary) == []


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (Literal["red", "blue", "green"], ["$"]),
        (Color, ["$"]),
        (Shared, ["$.first", "$.second"]),
        (Literal["red", "blue"], []),
        (Literal["red", "blue", "other"], []),
        (Literal["red", "blue", "something else"], []),
        (Literal["red", "blue", "Unknown"], []),
        (Literal["red", "blue", "N/A"], []),
        (Literal["red", "blue", "not sure"], []),
        (Literal["red", "blue", "green"] | None, []),
        (Literal["red", "blue", "green"] | str, []),
        (Literal["red", "blue", "green"] | int, ["$"]),
        (Literal[1, 2, 3], []),
        (list[Literal["red", "blue", "green"]], []),
        (bool, []),
        (Literal["A", "B", "C", "D"], []),
        (Literal["low", "medium", "high", "very high"], []),
        (Literal["positive", "neutral", "negative"], []),
        (Literal["yes", "no", "maybe"], []),
        (Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], []),
        (Literal["Monday", "Tuesday", "Wednesday"], ["$"]),
    ],
)
def test_way_out(schema, found):
    assert paths("SG204", schema) == found


def test_large_patterns():
    large = Annotated[str, Field(pattern="^[a-z]{2,1500}$")]
    assert paths("SG205", model(code=large)) == ["$.code"]
    assert paths("SG205", model(code=Annotated[str, Field(pattern="^[a-z]{2,900}$")])) == []


@pytest.mark.parametrize("kind", [HttpUrl, IPv6Address, UUID4])
def test_the_patterns_of_types_are_not_the_authors(kind):
    assert paths("SG205", model(it=kind)) == []


def test_counted_lengths_do_not_make_a_pattern_large():
    pattern = Field(pattern="^[a-z]*$", max_length=1500)
    assert paths("SG205", model(code=Annotated[str, pattern])) == []


def test_a_good_schema_has_no_findings():
    class Good(BaseModel):
        reasoning: str = Field(max_length=200, description="why this team")
        team: TEAMS = Field(description="who should answer")
        order_number: int | None = Field(description="null if there is none")

    assert sg.lint(Good, vocabulary=small_vocabulary([' "', '":']), max_new_tokens=200) == []


def test_codes_and_names_are_unique_and_sorted():
    assert [rule.code for rule in RULES] == sorted({rule.code for rule in RULES})
    assert len({rule.name for rule in RULES}) == len(RULES)
