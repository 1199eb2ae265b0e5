"""Random sequences of parts: what is generated validates, and says again what it said."""

from __future__ import annotations

import random
import re
from typing import Annotated, Any, Literal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

import structgen as sg
from structgen.regex import matches
from structgen.schema.nodes import Raw, String
from structgen.schema.raw import endings
from tests.strategies import SOAK, examples, random_vocabulary
from tests.walks import generate

SEEDS = st.integers(0, 2**32)
WORDS = st.text("ab<\n\u00e9", min_size=1, max_size=3)
SHORT = Annotated[str, Field(max_length=3)]


def parts(depth: int = 1) -> st.SearchStrategy[Any]:
    """Anything that may stand in a sequence."""
    leaves = st.one_of(
        st.sampled_from([int, bool, SHORT, Literal["a", "ab", 1], list[bool], {"enum": ["a"]}]),
        st.sampled_from(["a+", "[ab]{2}", "(ab|<)*", "\u00e9?"]).map(sg.Regex),
        st.lists(WORDS, min_size=1, max_size=4).map(sg.OneOf),
        texts(),
        WORDS,
    )
    return st.one_of(leaves, sequences(depth - 1)) if depth else leaves


def texts() -> st.SearchStrategy[sg.Text]:
    return st.builds(
        sg.Text,
        stop=st.lists(WORDS, min_size=1, max_size=2),
        max_tokens=st.none() | st.integers(1, 6),
        min_length=st.integers(0, 1),
        max_length=st.none() | st.integers(2, 5),
    )


def sequences(depth: int = 1) -> st.SearchStrategy[sg.Sequence[Any]]:
    return st.lists(parts(depth), max_size=4).map(lambda found: sg.Sequence(*found, int))


@examples(60)
@given(sequences(), SEEDS)
def test_what_is_generated_validates_and_reads_the_same(schema, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = sg.compile(schema, vocabulary)
    for _ in range(4 * SOAK):
        budget = compiled.min_tokens + rng.randint(0, 30)
        text, _ = generate(compiled.session, vocabulary, rng, budget)
        value = compiled.validate(text)
        assert len(value) == sum(not isinstance(part, str) for _, part in schema.parts)


def first_stop(text: str, stops: list[str]) -> int:
    """Where the first stop string to be completed ends, -1 if none is."""
    return min((text.find(s) + len(s) for s in stops if s in text), default=-1)


@given(st.lists(WORDS, min_size=1, max_size=3), st.text("ab<\n", max_size=8))
def test_the_first_stop_ends_a_text(stops, text):
    kept = list(sg.Text(stop=stops).stop)
    found = {
        ending.content and stop
        for ending in endings(Raw(String(), tuple(kept)))
        for stop in ending.stops
        if text.endswith(stop) and matches(ending.content, text[: len(text) - len(stop)])
    }
    assert bool(found) == (first_stop(text, stops) == len(text) and bool(text))


@given(st.lists(WORDS, min_size=1, max_size=3), st.text("ab<\n\u00e9", max_size=8))
def test_bans_are_searches(banned, text):
    compiled = sg.compile(sg.Text(), BYTES, banned_strings=banned)
    session = compiled.session()
    written = all(_take(session, byte) for byte in text.encode())
    assert written == (not re.search("|".join(map(re.escape, banned)), text))


def _take(session: sg.Session, byte: int) -> bool:
    if not session.allows(byte):
        return False
    session.advance(byte)
    return True


BYTES = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)], 256)
