"""The border between prompt and value, where a token may stand on both sides."""

from __future__ import annotations

import time
from typing import Literal

import pytest
import torch

from structgen.generator import Generator
from structgen.runtime.masking import Masker
from structgen.testing import RandomLM, ScriptedLM, small_vocabulary
from structgen.tokens.healing import healing_state

MERGES = small_vocabulary([" billing", " sales", " bill", "ing", "Team:", " technical"])


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"max_new_tokens": 12}])
def test_a_value_may_begin_within_the_prompts_last_token(options):
    """The script prefers the long token that begins with the prompt's blank."""
    lm = ScriptedLM(MERGES, "Team: billing")
    lm.encode_prompt = MERGES.encode
    generator = Generator(Literal["billing", "sales"], lm, schema_prompt=False, **options)
    result = generator.run("Team: ")
    assert result.value == result.text == "billing"
    assert [t.text for t in result.tokens if t.text] == [b"billing"]
    assert result.labels["$"].label == "billing"
    assert 0.5 < result.labels["$"].probability <= 1
    assert lm.chunks[0] == [MERGES.encode("Team:")]
    assert generator.batch(["Team: ", "Team:"]) == ["billing", "billing"]
    if not options:
        assert [event.delta for event in generator.stream("Team: ") if event.delta] == ["billing"]


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"sampling": "aligned"}])
def test_looking_for_tokens_to_hold_back_is_part_of_the_time_of_masks(options, monkeypatch):
    def slow(*arguments):
        time.sleep(0.3)
        return healing_state(*arguments)

    lm = RandomLM(MERGES)
    generator = Generator(Literal["billing", "sales"], lm, schema_prompt=False, **options)
    generator.run("Team: ")  # so that nothing else is slow
    monkeypatch.setattr("structgen.tokens.session.healing_state", slow)
    timings = generator.run("Team: ").timings
    assert timings.total_s >= timings.mask_s >= 0.3
    assert timings.first_mask_s >= 0.3


def test_the_first_mask_of_a_beam_search_is_timed(monkeypatch):
    def slow(self, sessions):
        time.sleep(0.3)
        return collect(self, sessions)

    collect = Masker.collect
    monkeypatch.setattr(Masker, "collect", slow)
    timings = Generator(bool, RandomLM(MERGES), num_beams=2).run("x").timings
    assert timings.mask_s > timings.first_mask_s >= 0.3


@pytest.mark.parametrize("seed", range(8))
def test_what_the_prompt_ends_with_is_never_part_of_the_value(seed):
    lm = RandomLM(MERGES, seed)
    lm.encode_prompt = MERGES.encode
    generator = Generator(
        Literal["billing", "sales", "technical"], lm, schema_prompt=False, do_sample=True, seed=seed
    )
    result = generator.run("Team: ")
    assert result.text == result.value
    assert b"".join(t.text for t in result.tokens).decode() == result.text
    deltas = [event.delta for event in generator.stream("Team: ")]
    assert "".join(deltas) == result.text


def test_the_labels_share_one_probability_however_they_begin():
    lm = RandomLM(MERGES)
    lm.encode_prompt = MERGES.encode
    blank, billing = MERGES.encode(" ")[0], MERGES.encode(" billing")[0]

    def logits(ids):
        found = torch.full((MERGES.width,), -30.0)
        found[[blank, billing]] = torch.tensor([0.1, 0.9]).log()
        return found if ids[-1] != blank else RandomLM.logits(lm, ids)

    lm.logits = logits
    labels = ("billing", "sales")
    generator = Generator(Literal[labels], lm, schema_prompt=False, do_sample=True)
    scores = {r.text: r for r in (generator.run("Team: ", seed=seed) for seed in range(60))}
    assert set(scores) == set(labels)
    assert scores["sales"].labels["$"].probability < 0.11
