"""`sampling="aligned"` as users ask for it."""

from __future__ import annotations

import asyncio
import logging
from typing import Literal

import pytest
from pydantic import BaseModel, field_validator

from structgen import api, many
from structgen.aligned import KEPT_PROMPTS, AlignedDraws
from structgen.errors import OptionError, ValidationFailedError
from structgen.generator import Generator
from structgen.results import Generation
from structgen.runtime.aligned import Aligned
from structgen.testing import RandomLM, byte_vocabulary, small_vocabulary

VOCABULARY = small_vocabulary(['{"', '": ', "true", "false", "red", "green", "blue"])


class MildLM(RandomLM):
    """Finds all values about as likely."""

    def logits(self, token_ids):
        return super().logits(token_ids) / 20


class Light(BaseModel):
    on: bool
    color: Literal["red", "green", "blue"]


def generator(schema: type = Light, **options) -> Generator:
    options = {"sampling": "aligned", "seed": 0, "max_new_tokens": 60, **options}
    return Generator(schema, MildLM(VOCABULARY, seed=1), **options)


def outcome(result: Generation) -> tuple[str, tuple[int, ...], object]:
    return result.text, result.token_ids, result.aligned


def test_runs_candidates_and_batches_draw_the_same_values():
    gen = generator()
    runs = [gen.run("Hello", seed=seed) for seed in range(4)]
    assert all(isinstance(run.value, Light) and run.aligned is not None for run in runs)
    assert len({run.text for run in runs}) > 1
    wanted = [outcome(run) for run in runs]
    assert [outcome(c) for c in gen.candidates("Hello", 4)] == wanted
    assert gen.batch(["Hello"] * 4) == [run.value for run in runs]
    completed = gen.as_completed(iter(["Hello"] * 4))
    assert [(i, outcome(r)) for i, r in completed] == list(enumerate(wanted))
    assert outcome(asyncio.run(gen.arun("Hello", seed=2))) == wanted[2]


def test_candidates_share_what_the_model_said():
    gen = generator()
    apart = sum(gen.run("Hello", seed=seed).usage.forward_passes for seed in range(4))
    gen.lm.chunks.clear()
    together = gen.candidates("Hello", 4)
    passes = sum(result.usage.forward_passes for result in together)
    assert passes == len(gen.lm.chunks) < apart


def test_results_are_complete():
    result = generator().run("Hello")
    assert result.usage.forced_tokens == 0
    assert result.usage.completion_tokens == len(result.token_ids) == result.usage.sampled_tokens
    assert result.tokens[-1].text == b""
    assert result.labels["$.color"].label in ('"red"', '"green"', '"blue"')
    assert 0 < result.labels["$.color"].probability <= 1
    assert result.timings.total_s >= result.timings.forward_s > 0
    assert result.finish_reason == "complete"
    assert generator(sampling="masked").run("Hello").aligned is None


def test_an_approximate_draw_is_marked_and_logged(caplog):
    with caplog.at_level(logging.WARNING, logger="structgen"):
        result = generator(sampling=Aligned(max_attempts=1, n_proposals=1)).run("Hello")
    assert result.aligned is not None
    assert not result.aligned.exact
    assert "none of 1 attempts" in caplog.text
    assert Light.model_validate_json(result.text) == result.value


class Picky(Light):
    @field_validator("color")
    @classmethod
    def not_red(cls, color: str) -> str:
        if color != "blue":
            raise ValueError("must be blue")
        return color


def test_what_a_validator_rejects_is_drawn_again():
    result = generator(Picky, retries=100).run("Hello")
    assert result.value.color == "blue"
    rejected = generator(Picky).batch(["Hello"] * 20, on_error="return")
    assert any(isinstance(result, ValidationFailedError) for result in rejected)


def test_only_a_few_prompts_are_remembered():
    gen = generator()
    draws = AlignedDraws(gen.lm, Aligned())
    for name in "abcdef":
        draws.first_valid(gen.job(name))
    before = len(gen.lm.chunks)
    draws.first_valid(gen.job("f"))
    assert len(gen.lm.chunks) == before, "the same draw needs nothing new"
    assert len(draws._samplers) == KEPT_PROMPTS


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 5},
        {"top_p": 0.9},
        {"min_p": 0.1},
        {"repetition_penalty": 1.2},
        {"num_beams": 2},
        {"sampling": "faithful"},
        {"sampling": None},
    ],
)
def test_what_contradicts_is_refused_before_anything_is_loaded(options, monkeypatch):
    name = next(iter(options))
    with pytest.raises(OptionError, match=name):
        generator(**options)
    monkeypatch.setattr(api, "default_lm", lambda: pytest.fail("a model was loaded"))
    with pytest.raises(OptionError, match=name):
        api.generate(Light, "Hello", **{"sampling": "aligned", **options})


def test_streams_and_mixed_batches_are_refused():
    with pytest.raises(OptionError, match="cannot be streamed"):
        generator().stream("Hello")
    with pytest.raises(OptionError, match="batches of several schemas"):
        many.generate_many([(Light, "Hello")], lm=RandomLM(byte_vocabulary()), sampling="aligned")
