from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.compiler import compile as compile_schema
from structgen.errors import ModelError
from structgen.runtime.beams import beam_search
from structgen.runtime.events import Step
from structgen.runtime.loop import decode
from structgen.schema.roots import OneOf
from structgen.testing import RandomLM, byte_vocabulary, small_vocabulary

WORDS = small_vocabulary(["ab", "abc", "bc", "ca", "true"])
BYTES = byte_vocabulary()
PROMPT = [1, 2]


def all_values(lm, session, prompt, log_prob=0.0, text=b""):
    """(log-probability, text) of every way to write a value, by trying every token."""
    for token_id in session.forced():
        session.advance(token_id)
        prompt, text = [*prompt, token_id], text + lm.vocabulary.bytes_of(token_id)
    if session.complete:
        yield log_prob, text
        return
    logits = lm.logits(prompt).double()
    legal = [i for i in range(lm.vocabulary.width) if session.allows(i)]
    log_probs = logits[legal].log_softmax(-1).tolist()
    for token_id, more in zip(legal, log_probs, strict=True):
        if token_id in lm.vocabulary.eos_token_ids:
            yield log_prob + more, text
            continue
        after = session.fork()
        after.advance(token_id)
        token = lm.vocabulary.bytes_of(token_id)
        yield from all_values(lm, after, [*prompt, token_id], log_prob + more, text + token)


def best_by_hand(lm, compiled, n):
    ways = sorted(all_values(lm, compiled.session(), PROMPT), reverse=True)
    best = {}
    for log_prob, text in ways:
        best.setdefault(text, log_prob)
    return list(best.items())[:n]


TEXTS = st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=8, unique=True)


@given(TEXTS, st.integers(0, 1000), st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_with_enough_beams_the_best_values_are_found(texts, seed, wanted):
    lm = RandomLM(WORDS, seed)
    compiled = compile_schema(OneOf(texts), WORDS)
    found, effort = beam_search(lm, PROMPT, compiled.session(), 200, num_return_sequences=wanted)
    expected = best_by_hand(lm, compiled, wanted)
    got = found[: len(expected)]
    assert [b"".join(WORDS.bytes_of(s.token_id) for s in f.steps if not s.end) for f in got] == [
        text for text, _ in expected
    ]
    assert [f.log_prob for f in got] == pytest.approx([p for _, p in expected], abs=1e-3)
    assert effort.forward_passes == len(lm.chunks)
    for one in got:
        assert one.log_prob == pytest.approx(sum(s.log_prob for s in one.steps), abs=1e-5)


@given(TEXTS, st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_one_beam_is_greedy(texts, seed):
    compiled = compile_schema(OneOf(texts), BYTES)
    [found], _ = beam_search(RandomLM(BYTES, seed), PROMPT, compiled.session(), 1)
    events = decode(RandomLM(BYTES, seed), [PROMPT], [compiled.session()])
    greedy = [e for e in events if isinstance(e, Step)]
    assert [s.token_id for s in found.steps] == [s.token_id for s in greedy]
    assert [s.log_prob for s in found.steps] == pytest.approx(
        [s.log_prob for s in greedy], abs=1e-5
    )


def test_a_beam_ends_within_its_budget():
    compiled = compile_schema(list[bool], WORDS)
    for budget in range(compiled.min_tokens, 15):
        found, _ = beam_search(RandomLM(WORDS), PROMPT, compiled.session(budget), 3)
        for one in found:
            ids = [s.token_id for s in one.steps if not s.end]
            assert len(ids) <= budget
            compiled.validate(WORDS.decode(ids))


def test_a_value_without_a_choice_never_asks_the_model():
    lm = RandomLM(BYTES)
    [found], effort = beam_search(lm, PROMPT, compile_schema(OneOf(["only"]), BYTES).session(), 4)
    assert (found.log_prob, found.finish_reason) == (0.0, "complete")
    assert effort.forward_passes == 0
    assert lm.chunks == []


def test_logits_that_are_not_finite_are_the_models_fault():
    lm = RandomLM(BYTES)
    lm.logits = lambda ids: torch.full((257,), math.nan)
    with pytest.raises(ModelError, match="finite logit"):
        beam_search(lm, PROMPT, compile_schema(OneOf(["a", "b"]), BYTES).session(), 2)
