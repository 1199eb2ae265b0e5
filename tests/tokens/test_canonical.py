"""Forced and held-back tokens against whole texts as real tokenizers write them.

The model must be able to write every value as its tokenizer would: what is forced agrees with the
tokenizer's own tokens of every text that can still follow.
"""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from structgen.compiler import compile as compile_schema
from structgen.errors import OptionError
from structgen.schema.roots import OneOf
from structgen.testing import small_vocabulary
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed

FRAGMENTS = (
    "bill", "ing", " ", "  ", "12", "345", "6", "tech", "nical", "-", "--", "...", ". ", "'s",
    "don't", "\n", "\n\n", "\t", "é", "東京", "un", "happy", "http", "://", "/", "x", "X", "TEAM",
    " team", "_id", "id", "{", '"', ": ", ", ", "= ", "0", "\\",
)  # fmt: skip
LABELS = st.lists(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=7).map("".join),
    min_size=1,
    max_size=4,
    unique=True,
)


@pytest.fixture(scope="module", params=["deepseek_path", "mistral_path"])
def vocabulary(request) -> Vocabulary:
    path = request.getfixturevalue(request.param)
    more = {"eos_token_ids": [1]} if request.param == "deepseek_path" else {}
    return Vocabulary.from_tokenizer(str(path), cache=False, **more)


def follow(vocabulary: Vocabulary, compiled, text: str) -> int:
    """Write `text` as the tokenizer does; how many of its tokens were forced."""
    token_ids = vocabulary.encode(text)
    session, at, n_forced = compiled.session(), 0, 0
    while at < len(token_ids):
        forced = session.forced()
        assert forced == token_ids[at : at + len(forced)]
        n_forced += len(forced)
        for token_id in forced or token_ids[at : at + 1]:
            session.advance(token_id)
            at += 1
    assert session.accepting
    return n_forced


@given(LABELS, LABELS.map("".join), st.data())
@example(["0{\n\n12/-nical", "0{\n\nidnical= : 6", "0{\n\né"], "", None)
@example(["tech= é: \t345idtech", "tech= é: \t{{--nicalé"], "", None)
@settings(deadline=None, max_examples=120)
def test_what_is_forced_is_what_the_tokenizer_writes(vocabulary, labels, stem, data):
    labels = [stem + label for label in labels]
    bare = compile_schema(OneOf(labels), vocabulary)
    several = compile_schema(list[Literal[tuple(labels)]], vocabulary)
    for label in labels:
        follow(vocabulary, bare, label)
    chosen = data.draw(st.lists(st.sampled_from(labels), max_size=3)) if data else labels
    follow(vocabulary, several, json.dumps(chosen, ensure_ascii=False))


def test_most_of_a_structure_is_forced(vocabulary):
    compiled = compile_schema({
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in ("is_urgent", "was_paid")},
        "required": ["is_urgent", "was_paid"],
        "additionalProperties": False,
    }, vocabulary)  # fmt: skip
    text = '{"is_urgent": true, "was_paid": false}'
    assert follow(vocabulary, compiled, text) >= len(vocabulary.encode(text)) - 4


# The border between a prompt and a value.


def spellings(session, vocabulary: Vocabulary, healed: int, most: int = 6) -> set[bytes]:
    """The texts that a session can write in a few tokens, without the prompt's bytes."""
    if session.complete or most == 0:
        return {vocabulary.decode(session.token_ids)[healed:]} if session.accepting else set()
    found = set()
    if session.accepting:
        found.add(vocabulary.decode(session.token_ids)[healed:])
    for token_id in allowed(session):
        if token_id not in vocabulary.eos_token_ids:
            twin = session.fork()
            twin.advance(token_id)
            found |= spellings(twin, vocabulary, healed, most - 1)
    return found


MERGES = small_vocabulary([" a", " ab", "a ", "ab", "b a", ": a", ": ", "ca", "  "])


@given(
    st.lists(st.text("abc ", min_size=1, max_size=3), min_size=1, max_size=4, unique=True),
    st.text("abc: ", min_size=2, max_size=6),
    st.integers(0, 6),
)
@settings(deadline=None, max_examples=100)
def test_held_back_tokens_change_how_a_value_is_written_and_not_what(texts, prompt, spare):
    compiled = compile_schema(OneOf(texts), MERGES)
    prompt_ids = MERGES.encode(prompt)
    session = compiled.session(prompt_ids=prompt_ids)
    held = session.held_back
    assert list(held) == prompt_ids[len(prompt_ids) - len(held) :]
    healed = len(MERGES.decode(held))
    whole = {text.encode() for text in texts}
    assert spellings(session, MERGES, healed) == whole
    budget = compiled.min_tokens + spare
    tight = compiled.session(budget, prompt_ids=prompt_ids)
    assert len(tight.held_back) in (0, len(held))
    healed = len(MERGES.decode(tight.held_back))
    assert spellings(tight, MERGES, healed, budget) <= whole
    while not tight.complete and not tight.exhausted:
        tight.advance(allowed(tight)[0])
        if tight.finished:
            break
    assert MERGES.decode(tight.token_ids)[healed:] in whole
    # What the tokenizer writes for prompt and value together can be written.
    for text in texts:
        ids = MERGES.encode(prompt + text)
        kept = prompt_ids[: len(prompt_ids) - len(held)]
        if ids[: len(kept)] == kept and len(ids) > len(kept):
            twin = session.fork()
            crossing = MERGES.decode(kept + ids[len(kept) : len(kept) + 1])
            if held and len(crossing) > len(prompt.encode()):
                twin.advance(ids[len(kept)])


def test_a_label_is_written_as_a_continuation_of_the_prompt(smollm2):
    vocabulary = Vocabulary.from_tokenizer(smollm2, cache=False)
    compiled = compile_schema(Literal["billing", "sales"], vocabulary)
    session = compiled.session(prompt_ids=vocabulary.encode("Category: "))
    assert vocabulary.decode(session.held_back) == b" "
    assert session.allows(vocabulary.encode(" billing")[0])
    twin = session.fork()
    twin.advance(vocabulary.encode(" billing")[0])
    assert twin.complete
    session.advance(session.held_back[0])
    assert session.allows(vocabulary.encode("billing")[0])
    assert not session.allows(vocabulary.encode(" billing")[0])
    session.rollback(1)
    assert session.allows(vocabulary.encode(" billing")[0])


@pytest.mark.parametrize("prompt", ["Category:", "Q: 1\nA: ", "x"])
def test_prompts_that_no_token_reaches_over_are_left_alone(smollm2, prompt):
    vocabulary = Vocabulary.from_tokenizer(smollm2, cache=False)
    compiled = compile_schema(Literal["12", "7"], vocabulary)
    assert compiled.session(prompt_ids=vocabulary.encode(prompt)).held_back == ()


def test_special_and_unknown_tokens_of_a_prompt_are_no_text():
    compiled = compile_schema(OneOf(["a"]), MERGES)
    eos = MERGES.eos_token_ids[0]
    for prompt_ids in ([eos], [eos, eos], [1, eos, MERGES.encode(" ")[0]], [10**6, 10**6]):
        session = compiled.session(prompt_ids=prompt_ids)
        assert len(session.held_back) < len(prompt_ids)


def test_a_prompt_may_be_an_array_and_nothing_else_than_ids():
    compiled = compile_schema(OneOf(["a", "b"]), MERGES)
    ids = MERGES.encode("x: ")
    assert (
        compiled.session(prompt_ids=np.array(ids)).held_back
        == compiled.session(prompt_ids=ids).held_back
    )
    for wrong in ("abc", b"abc", 5, [None], [1.5], None):
        with pytest.raises(OptionError):
            compiled.session(prompt_ids=wrong)
