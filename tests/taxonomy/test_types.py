"""A taxonomy in annotations: what validates, what is compiled, what can be told apart."""

from __future__ import annotations

import enum
import json
import random
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Json, TypeAdapter, ValidationError, create_model

import structgen as sg
from structgen.errors import OptionError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.schema.describe import describe
from structgen.schema.identity import identity
from structgen.schema.label_checks import LabelCheck, levels_above, most_together
from structgen.schema.nodes import Array, Labels
from structgen.taxonomy import Taxonomy
from structgen.testing import byte_vocabulary
from tests.walks import generate

TOPICS = Taxonomy(["Animals", "Animals > Cats", "Animals > Dogs", "Cars"], name="topics")
VOCABULARY = byte_vocabulary()


class Item(BaseModel):
    topic: Annotated[str, TOPICS]


def nodes_of(source: Any) -> Any:
    return sg.compile(source, VOCABULARY).schema.root


def test_exactly_the_labels_are_valid():
    adapter = TypeAdapter(Annotated[str, TOPICS])
    for label in TOPICS:
        assert adapter.validate_python(label) == label
        assert adapter.validate_json(json.dumps(label)) == label
    for wrong in ("animals", "Animals ", "", b"Cars", 3, None, ["Cars"], {"a": 1}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)


class Word(enum.StrEnum):
    CARS = "Cars"


def test_a_value_is_a_plain_str():
    assert type(TypeAdapter(TOPICS.Label).validate_python(Word.CARS)) is str


def test_settings_of_a_model_do_not_change_labels():
    settings_ = ConfigDict(str_max_length=3, str_to_lower=True, str_strip_whitespace=True)
    strict = create_model("Strict", __config__=settings_, topic=(TOPICS.Label, ...))
    assert strict(topic="Animals").topic == "Animals"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValidationError):
        strict(topic="Animals ")


def test_an_error_does_not_list_thousands_of_labels():
    many = Taxonomy([f"label {i}" for i in range(5000)], name="numbers")
    with pytest.raises(ValidationError, match="one of the 5000 labels of numbers") as caught:
        TypeAdapter(many.Label).validate_python("x")
    assert len(str(caught.value)) < 300
    with pytest.raises(ValidationError, match="one of 'Animals', 'Animals > Cats'"):
        Item(topic="x")


def test_the_json_schema_is_an_enum():
    assert Item.model_json_schema()["properties"]["topic"]["enum"] == list(TOPICS)
    listed = TypeAdapter(TOPICS.Labels(min_length=1)).json_schema()
    assert listed["items"]["enum"] == list(TOPICS)
    assert (listed["uniqueItems"], listed["minItems"]) == (True, 1)


def test_the_reader_sees_labels_in_declared_order():
    for source in (TOPICS.Label, TOPICS):
        root = nodes_of(source)
        assert isinstance(root, Labels)
        assert [json.loads(text) for text in root.declared] == list(TOPICS)
    coded = Taxonomy(["a", "b"], codes={"a": "1", "b": "2"}, written="code")
    assert nodes_of(coded.Label).texts == (b'"1"', b'"2"')


def test_it_stands_wherever_a_type_may():
    class Many(BaseModel):
        some: set[TOPICS.Label]  # pyright: ignore[reportInvalidTypeForm]
        by: dict[Annotated[str, TOPICS], int]
        maybe: Annotated[str, TOPICS] | None
        pair: tuple[Annotated[str, TOPICS], int]

    compiled = sg.compile(Many, VOCABULARY)
    text = '{"some": ["Cars", "Animals"], "by": {"Cars": 1}, "maybe": null, "pair": ["Cars", 1]}'
    assert compiled.validate(text).some == {"Cars", "Animals"}
    assert not compiled.validators
    session = compiled.session()
    for byte in text.encode():
        session.advance(byte)
    assert session.accepting


def test_bare_labels_come_from_iterating():
    compiled = sg.compile(sg.OneOf(TOPICS), VOCABULARY)
    assert compiled.validate("Animals > Cats") == "Animals > Cats"


def test_only_str_can_be_annotated():
    with pytest.raises(OptionError, match=r"annotates str: Annotated\[str, topics\]"):
        TypeAdapter(Annotated[int, TOPICS])
    with pytest.raises(UnsupportedSchemaError, match="annotates str"):
        sg.compile(Annotated[list[str], TOPICS], VOCABULARY)


def other(**changes: Any) -> Taxonomy:
    options: dict[str, Any] = {"source": list(TOPICS), "name": "topics", **changes}
    return Taxonomy(options.pop("source"), **options)


def model(taxonomy: Taxonomy, **options: Any) -> type[BaseModel]:
    field: Any = taxonomy.Labels(**options) if options else taxonomy.Label
    return create_model("Same", topic=(field, ...))


def test_changing_the_taxonomy_changes_what_compiled_schemas_are_known_by():
    one = model(TOPICS)
    same = model(other())
    more = model(other(source=[*TOPICS, "Bikes"]))
    fewer = model(TOPICS.subset(["Cars", "Animals"]))
    assert identity(one) is not None
    assert identity(one) == identity(same)
    assert len({identity(m) for m in (one, more, fewer)}) == 3
    prints = [sg.compile(m, VOCABULARY).fingerprint for m in (one, same, more, fewer)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    listed = [
        model(TOPICS, min_length=1),
        model(TOPICS, min_length=1, max_length=2),
        model(other(source=[*TOPICS, "Bikes"]), min_length=1),
        model(TOPICS, min_length=1, antichain=True),
        model(other(source=["A/B", "A"], separator="/"), min_length=1, antichain=True),
    ]
    assert len({identity(m) for m in listed}) == len(listed)


def test_a_stale_automaton_is_not_used():
    first, second = model(Taxonomy(["a", "b"])), model(Taxonomy(["a", "c"]))
    for source, label, wrong in ((first, b'"b"', b'"c"'), (second, b'"c"', b'"b"')):
        session = sg.compile(source, VOCABULARY).session()
        for byte in b'{"topic": "':
            session.advance(byte)
        assert session.allows(label[1])
        assert not session.allows(wrong[1])


def test_a_list_of_labels_has_no_repeats():
    adapter = TypeAdapter(TOPICS.Labels(min_length=1, max_length=3))
    assert adapter.validate_python(["Cars", "Animals"]) == ["Cars", "Animals"]
    for wrong in (["Cars", "Cars"], [], list(TOPICS), ["x"], "Cars"):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
    root = nodes_of(TOPICS.Labels(min_length=1, max_length=3))
    assert isinstance(root, Array)
    assert (root.min_items, root.max_items, root.unique, root.strict) == (1, 3, True, True)
    assert "no repeats" in describe(sg.compile(TOPICS.Labels(), VOCABULARY).schema)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text('ab >"é', min_size=1, max_size=3), min_size=2, max_size=12, unique=True),
    st.integers(0, 3),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_lists_that_are_generated_are_valid(labels, least, most, rng):
    clean = list({label.strip() for label in labels} - {""})
    if len(clean) < max(least, 1) or least > most:
        return
    taxonomy = Taxonomy(clean, separator=None, allow_similar=True)
    compiled = sg.compile(taxonomy.Labels(min_length=least, max_length=most), VOCABULARY)
    text, _ = generate(compiled.session, VOCABULARY, random.Random(rng.random()), None)
    found = compiled.validate(text)
    assert len(set(found)) == len(found)
    assert least <= len(found) <= most
    assert not compiled.validators


@pytest.mark.parametrize(
    "options",
    [
        {"min_length": -1}, {"max_length": True}, {"min_length": 5},
        {"min_length": 2, "max_length": 1},
    ],
)  # fmt: skip
def test_bounds_of_a_list_are_looked_at(options):
    with pytest.raises(OptionError):
        TOPICS.Labels(**options)


def test_of_an_antichain_validation_refuses_a_label_and_one_above_it():
    adapter = TypeAdapter(TOPICS.Labels(antichain=True))
    assert adapter.validate_python(["Animals > Dogs", "Cars", "Animals > Cats"])
    for wrong in (["Animals", "Animals > Cats"], ["Animals > Cats", "Cars", "Animals"]):
        with pytest.raises(ValidationError, match="stands below 'Animals', which is there too"):
            adapter.validate_python(wrong)
    for flat in (
        Taxonomy(["a"], separator=None),
        Taxonomy(["a"], codes={"a": "1"}, written="code"),
    ):
        with pytest.raises(OptionError, match="written as paths"):
            flat.Labels(antichain=True)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "ab", 'b"']), min_size=1, max_size=3).map(tuple),
        min_size=2,
        max_size=20,
        unique=True,
    ),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
def test_antichains_that_are_generated_are_valid(paths, least, rng):
    taxonomy = Taxonomy(paths)
    if least > len(taxonomy.leaves):
        return
    listed = taxonomy.Labels(min_length=least, max_length=4, antichain=True)
    compiled = sg.compile(listed, VOCABULARY)
    assert not compiled.validators
    for _ in range(3):
        text, _ = generate(compiled.session, VOCABULARY, random.Random(rng.random()), None)
        assert least <= len(compiled.validate(text)) <= 4


def test_an_antichain_cannot_be_larger_than_the_labels_without_others_below_them():
    texts = [json.dumps(label).encode() for label in TOPICS]
    assert most_together(texts, " > ") == 3
    assert levels_above("a > b > c", " > ") == ["a", "a > b"]
    with pytest.raises((UnsatisfiableSchemaError, UnsupportedSchemaError)):
        sg.compile(TOPICS.Labels(antichain=True, min_length=4), VOCABULARY)


def test_repeats_are_not_let_through_where_they_cannot_be_forbidden():
    many = Taxonomy([f"label {i}" for i in range(20)])
    sg.compile(Json[set[many.Label]], VOCABULARY)  # a set forgets them
    with pytest.raises(UnsupportedSchemaError, match="repeats cannot be forbidden"):
        sg.compile(Json[many.Labels()], VOCABULARY)


def test_a_check_is_called_by_its_taxonomys_name():
    with pytest.raises(ValidationError, match=r"function-after\[topics\(\), any\]"):
        TypeAdapter(TOPICS.Label).validate_python(1)
    assert repr(LabelCheck(("a",), "n")) == "n"


def test_of_a_label_nothing_is_shown_before_it_is_complete():
    lm = sg_lm('{"topic": "Animals > Cats"}')
    seen = [
        event.partial.topic
        for event in sg.Generator(Item, lm=lm).stream("...")
        if getattr(event.partial, "topic", None) is not None
    ]
    assert set(seen) <= set(TOPICS)


def sg_lm(text: str) -> Any:
    from structgen.testing import ScriptedLM

    return ScriptedLM(VOCABULARY, text)
