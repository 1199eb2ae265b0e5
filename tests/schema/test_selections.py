"""Several labels as plain text: what is written, how it is read, and what is refused."""

from __future__ import annotations

import enum
import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from structgen.errors import OptionError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.schema.distinct import MOST_DISTINCT
from structgen.schema.selections import ambiguous
from structgen.testing import ScriptedLM, byte_vocabulary, small_vocabulary
from tests.walks import allowed, generate

VOCABULARY = small_vocabulary(["ab", "a, b", ", ", ", a", "b, ", "; ", "\nb", " | a"])
BYTES = byte_vocabulary()
FEW = ["a", "ab", "b"]
MANY = ["a", "ab", "abc", "b", "ba", "c", "d", "e", "ee", "f; g"]


def texts(labels: list[str], separator: str, least: int, most: int) -> set[str]:
    """The slow twin: every list of different labels."""
    counts = range(least, min(most, len(labels)) + 1)
    return {separator.join(p) for n in counts for p in itertools.permutations(labels, n)}


def may_follow(language: set[str], written: str) -> set[int]:
    """The bytes with which some text goes on; the end is 256."""
    found = {text[len(written) :].encode()[:1] for text in language if text.startswith(written)}
    return {piece[0] if piece else 256 for piece in found}


def feed(session: Any, text: str) -> None:
    for byte in text.encode():
        session.advance(byte)


@pytest.mark.parametrize("labels", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("separator", [", ", "\n", " | ", "/", " ; "])
@pytest.mark.parametrize(("least", "most"), [(1, 2), (0, 2), (2, 3)])
def test_masks_are_those_of_the_lists_of_different_labels(labels, separator, least, most):
    language = texts(labels, separator, least, most)
    compiled = sg.compile(
        sg.SomeOf(labels, separator=separator, min_items=least, max_items=most), BYTES
    )
    rng = random.Random(3)
    for _ in range(40):
        session, written = compiled.session(), ""
        while True:
            expected = may_follow(language, written)
            assert set(allowed(session)) == expected, written
            byte = rng.choice(sorted(expected))
            if byte == 256:
                assert session.accepting
                break
            session.advance(byte)
            written += chr(byte)


@pytest.mark.parametrize("count", [4, MOST_DISTINCT + 4])
def test_when_nothing_is_left_only_the_end_is_allowed(count):
    labels = [f"label {i}" for i in range(10, 10 + count)]
    session = sg.compile(sg.SomeOf(labels, separator=" | "), BYTES).session()
    feed(session, " | ".join(reversed(labels)))
    assert allowed(session) == [256]
    assert session.accepting


@pytest.mark.parametrize("labels", [FEW, MANY], ids=["few", "many"])
def test_a_chosen_label_does_not_block_a_longer_one(labels):
    session = sg.compile(sg.SomeOf(labels), BYTES).session()
    feed(session, "a, a")
    assert not session.accepting
    assert allowed(session) == [ord("b")]
    feed(session, "b")
    assert session.accepting


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("ab,; é", min_size=1, max_size=4), min_size=1, max_size=14, unique=True),
    st.sampled_from([", ", "; ", "\n", ","]),
    st.integers(0, 3),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_what_is_generated_reads_back(labels, separator, least, most, rng):
    if least > min(most, len(labels)) or ambiguous(set(labels), separator[0]):
        return
    form = sg.SomeOf(labels, separator=separator, min_items=least, max_items=most)
    compiled = sg.compile(form, VOCABULARY)
    for budget in (None, compiled.min_tokens, compiled.min_tokens + rng.randrange(8)):
        source = random.Random(rng.random())
        text, _ = generate(compiled.session, VOCABULARY, source, budget)
        value = compiled.validate(text)
        assert separator.join(value) == text.decode()
        assert len(set(value)) == len(value)
        assert least <= len(value) <= most


def test_every_split_into_tokens_is_allowed():
    session = sg.compile(sg.SomeOf(MANY), VOCABULARY).session()
    ids = {VOCABULARY.bytes_of(i): i for i in range(VOCABULARY.width)}
    session.advance(ids[b"a, b"])
    assert session.accepting
    for token in (b",", b", ", b", a", b"a"):
        assert session.allows(ids[token]), token
    for token in (b"; ", b"b, ", b" "):
        assert not session.allows(ids[token]), token


def test_a_token_that_begins_a_label_written_before_may_still_go_on():
    session = sg.compile(sg.SomeOf(["a", "ab", "b"]), VOCABULARY).session()
    ids = {VOCABULARY.bytes_of(i): i for i in range(VOCABULARY.width)}
    session.advance(ids[b"a"])
    assert session.allows(ids[b", a"])  # it can become ab
    session.advance(ids[b", a"])
    assert not session.accepting


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def test_values_are_the_choices():
    lm = ScriptedLM(VOCABULARY, "blue, red")
    assert sg.generate(sg.SomeOf(Colour), "...", lm=lm) == [Colour.BLUE, Colour.RED]
    form = sg.SomeOf({"yes": True, "no": False}, separator="/", min_items=0)
    assert sg.generate(form, "...", lm=ScriptedLM(VOCABULARY, "no")) == [False]
    compiled = sg.compile(form, VOCABULARY)
    assert compiled.validate("") == []
    assert compiled.validate("no/yes") == [False, True]
    for wrong in ("no/no", "no/", "/no", "maybe", "no yes"):
        with pytest.raises(sg.ValidationFailedError):
            compiled.validate(wrong)


def test_each_label_has_a_probability():
    lm = ScriptedLM(VOCABULARY, "b, a")
    labels = sg.Generator(sg.SomeOf(FEW), lm=lm).run("...").labels
    assert {path: score.label for path, score in labels.items()} == {"$[0]": "b", "$[1]": "a"}


def test_it_stands_between_constants_of_a_sequence():
    schema = sg.Sequence("Topics: ", topics=sg.SomeOf(MANY), end="\nWhy: ", why=sg.Text(stop="."))
    text = "Topics: ab, a\nWhy: so."
    found = sg.generate(schema, "...", lm=ScriptedLM(VOCABULARY, text))
    assert (found.topics, found.why) == (["ab", "a"], "so")
    thought = sg.generate(
        sg.Thinking(sg.SomeOf(MANY)), "...", lm=ScriptedLM(VOCABULARY, "<think>\nx</think>\n\nc, d")
    )
    assert thought.answer == ["c", "d"]


def test_labels_show_in_a_stream_once_they_are_complete():
    lm = ScriptedLM(BYTES, "ab, a, abc")
    seen = [event.partial for event in sg.Generator(sg.SomeOf(MANY), lm=lm).stream("...")]
    assert ["ab"] in seen
    assert ["ab", "a"] in seen
    assert not any(label == "abc" for value in seen[:-1] if value for label in value[:2])


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (sg.SomeOf(["a", "a, b"]), "separator ', ' could be taken .* 'a' and 'a, b'"),
        (sg.SomeOf(["a", "a,b"]), "'a' and 'a,b'"),
        (sg.SomeOf(["", "a"]), "an empty text"),
        (sg.SomeOf([]), "empty"),
        (sg.SomeOf(['"a', *MANY]), "begin with a quotation mark"),
        (sg.Sequence(sg.Text(stop="."), sg.SomeOf(FEW)), "right behind another part"),
        (sg.Sequence(sg.Text(), ": ", sg.SomeOf(FEW)), "whose end is not marked"),
        (sg.Sequence(int, ": ", sg.SomeOf(FEW)), "whose end is not marked"),
        (sg.Sequence(sg.SomeOf(FEW), int), "right before another part"),
        (sg.Sequence(sg.SomeOf(FEW), ", so ", int), "could be taken for a part"),
        (sg.Sequence(sg.SomeOf(FEW), "b", int), "could be taken for a part"),
        (sg.Sequence(sg.SomeOf(FEW, min_items=0), "a", int), "could be taken for a part"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(schema, problem):
    with pytest.raises(UnsupportedSchemaError, match=problem):
        sg.compile(schema, BYTES)


def test_a_label_may_hold_the_separator_where_no_other_label_ends_before_it():
    compiled = sg.compile(sg.SomeOf(["a, b", "b", "c"]), BYTES)
    assert compiled.validate("a, b, b") == ["a, b", "b"]


def test_more_labels_than_there_are_cannot_be_demanded():
    with pytest.raises(UnsatisfiableSchemaError, match="4 different choices are needed"):
        sg.compile(sg.SomeOf(FEW, min_items=4), BYTES)


@pytest.mark.parametrize(
    "options",
    [
        {"separator": ""}, {"separator": 3}, {"separator": "\ud800"}, {"min_items": -1},
        {"max_items": 0}, {"min_items": 2, "max_items": 1},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(OptionError):
        sg.SomeOf(FEW, **options)


@pytest.mark.parametrize("labels", [FEW, MANY], ids=["few", "many"])
def test_banned_strings_leave_the_other_labels(labels):
    compiled = sg.compile(sg.SomeOf(labels), BYTES, banned_strings=["a"])
    text, _ = generate(compiled.session, BYTES, random.Random(1), None)
    assert "a" not in text.decode()
    assert compiled.validate(text)
    with pytest.raises(sg.SchemaError):
        sg.compile(sg.SomeOf(["a", "ab", "b"], min_items=2), BYTES, banned_strings=["a"])


def test_the_prompt_and_the_table_say_what_is_written():
    from structgen.prompts import schema_text

    schema = sg.compile(sg.SomeOf(FEW, max_items=2), BYTES).schema
    assert '1 to 2 different ones, with ", " between them, of: a or ab or b' in schema_text(
        schema, True
    )
    assert "no choice twice" in str(sg.explain(sg.SomeOf(FEW)))


def test_a_taxonomy_can_be_chosen_from():
    topics = sg.Taxonomy(["Animals", "Animals > Cats", *(f"Topic {i}" for i in range(10, 20))])
    session = sg.compile(sg.SomeOf(topics), BYTES).session()
    feed(session, "Animals, Animals > Cats, Topic 12")
    assert session.accepting
    assert allowed(session) == sorted([ord(","), 256])
