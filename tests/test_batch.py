"""Many prompts, and many values of one prompt."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from structgen.errors import (
    BudgetError,
    InvalidTextError,
    LimitError,
    ModelError,
    OptionError,
    PromptTooLongError,
    ValidationFailedError,
)
from structgen.generator import Generator
from structgen.options import Limits
from structgen.results import Generation
from structgen.testing import RandomLM, small_vocabulary

WORDS = small_vocabulary(['{"', '":', " true", " false", "billing", "team", ", "])


class Triage(BaseModel):
    note: str = Field(max_length=8)
    team: Literal["billing", "technical", "sales"]
    tags: list[bool] = Field(max_length=2)


class Picky(BaseModel):
    n: int = Field(ge=0, le=9)

    @field_validator("n")
    @classmethod
    def even(cls, n):
        if n == 7:
            raise KeyError("a slip of the validator's author")
        if n % 2:
            raise ValueError("odd")
        return n


PROMPTS = ["one", "two, which is longer", "3", "", "five five five", "six", "seven"]


def texts(results):
    return [r.text if isinstance(r, Generation) else type(r) for r in results]


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_each_value_is_what_its_prompt_gives_alone(batch_size, do_sample):
    lm = RandomLM(WORDS, 4)
    generator = Generator(Triage, lm, do_sample=do_sample, seed=9)
    values = generator.batch(PROMPTS, batch_size=batch_size)
    assert values == [generator(p, seed=9 + i) for i, p in enumerate(PROMPTS)]
    assert max(map(len, lm.chunks)) == min(batch_size, len(PROMPTS))


def test_rows_have_their_own_seeds_and_budgets():
    generator = Generator(Triage, RandomLM(WORDS), do_sample=True)
    seeds, budgets = [3, 1, 2], [60, 44, 300]
    values = generator.batch(PROMPTS[:3], seeds=seeds, max_new_tokens=budgets)
    for prompt, seed, budget, value in zip(PROMPTS, seeds, budgets, values, strict=False):
        assert generator(prompt, seed=seed, max_new_tokens=budget) == value


def test_results_come_as_they_finish():
    generator = Generator(Triage, RandomLM(WORDS), do_sample=True, seed=0)
    found = list(generator.as_completed(PROMPTS, batch_size=3))
    assert sorted(i for i, _ in found) == list(range(len(PROMPTS)))
    assert [i for i, _ in found] != list(range(len(PROMPTS)))
    assert all(r.value == generator(PROMPTS[i], seed=i) for i, r in found)
    assert all(r.usage.prompt_tokens > 0 for _, r in found)


def test_prompts_are_taken_when_there_is_room():
    taken = []

    def prompts():
        for i in itertools.count():
            taken.append(i)
            yield f"prompt {i}"

    results = Generator(Triage, RandomLM(WORDS)).as_completed(prompts(), batch_size=2)
    for _ in range(5):
        next(results)
    assert len(taken) <= 7
    results.close()


def test_a_failed_row_is_a_value_in_its_place():
    generator = Generator(Picky, RandomLM(WORDS, 5), do_sample=True, seed=1)
    prompts = ["ok", b"bytes", "x" * 3, *(f"p{i}" for i in range(12))]
    results = generator.batch(prompts, on_error="return", batch_size=4)
    assert isinstance(results[1], InvalidTextError)
    kinds = {type(r) for r in results}
    assert kinds == {Picky, InvalidTextError, ValidationFailedError, KeyError}
    for i, (prompt, result) in enumerate(zip(prompts, results, strict=True)):
        if isinstance(result, Picky):
            assert generator(prompt, seed=1 + i) == result


def test_the_first_error_is_raised_with_its_place():
    generator = Generator(Triage, RandomLM(WORDS))
    with pytest.raises(InvalidTextError) as caught:
        generator.batch(["fine", b"not"])
    assert caught.value.__notes__ == ["structgen: this was prompt 1 of the batch"]


def test_rows_are_tried_again_on_their_own():
    generator = Generator(Picky, RandomLM(WORDS, 5), do_sample=True, seed=1, retries=30)
    results = dict(generator.as_completed([f"p{i}" for i in range(8)], batch_size=3))
    good = [r for r in results.values() if isinstance(r, Generation)]
    assert any(r.usage.attempts > 1 for r in good)
    for i, result in results.items():
        if isinstance(result, Generation):
            assert generator.run(f"p{i}", seed=1 + i).text == result.text


def test_too_long_a_prompt_and_too_small_a_budget_are_rows_too():
    generator = Generator(Picky, RandomLM(WORDS, context_length=150))
    results = generator.batch(["a", "b" * 200, "c"], max_new_tokens=[40, 40, 1], on_error="return")
    assert [type(r) for r in results[1:]] == [PromptTooLongError, BudgetError]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("do_sample", [False, True])
def test_a_row_without_finite_logits_fails_alone(value, do_sample):
    class Broken(RandomLM):
        def logits(self, token_ids):
            logits = super().logits(token_ids)
            return logits * 0 + value if token_ids[0] == 1 else logits

    generator = Generator(Triage, Broken(WORDS), do_sample=do_sample, schema_prompt=False)
    results = generator.batch(["a", "\x01b", "c"], on_error="return")
    assert [type(r) for r in results] == [Triage, ModelError, Triage]


def test_a_schema_that_grows_too_ambiguous_fails_alone():
    option = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tangle = {"anyOf": [{**option, "maxProperties": n} for n in range(1, 700)]}
    nested = {"type": "array", "items": tangle, "minItems": 1}
    generator = Generator(nested, RandomLM(WORDS), limits=Limits(max_threads=1))
    assert all(isinstance(r, LimitError) for r in generator.batch(["a", "b"], on_error="return"))


def test_lists_of_options_must_match_iterators_too():
    generator = Generator(Triage, RandomLM(WORDS))
    for options in ({"seeds": [1, 2]}, {"max_new_tokens": [60]}, {"seeds": [1, 2, 3, 4]}):
        with pytest.raises(OptionError, match="match them"):
            generator.batch(iter(["a", "b", "c"]), **options)
    with pytest.raises(OptionError, match="one seed for each prompt"):
        generator.batch(["a"], seeds=5)


def test_no_prompts_give_no_values():
    generator = Generator(Triage, RandomLM(WORDS))
    assert generator.batch([]) == []
    assert generator.lm.chunks == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": True}, "batch_size=True"),
        ({"on_error": "ignore"}, "on_error='ignore'"),
        ({"progress": 1}, "progress=1"),
        ({"seeds": [1]}, "seeds has 1 entries for 2 prompts"),
        ({"max_new_tokens": [1, 2, 3]}, "max_new_tokens has 3 entries for 2"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    generator = Generator(Triage, RandomLM(WORDS))
    with pytest.raises(OptionError, match=message):
        generator.batch(["a", "b"], **options)
    assert generator.lm.chunks == []


@pytest.mark.parametrize("prompts", ["one prompt", b"bytes", 3])
def test_one_prompt_is_no_batch(prompts):
    with pytest.raises(OptionError, match="for one prompt call the generator itself"):
        Generator(Triage, RandomLM(WORDS)).batch(prompts)


def test_a_progress_bar_is_shown_where_it_is_asked_for(capsys):
    generator = Generator(Triage, RandomLM(WORDS))
    generator.batch(["a", "b"], progress=True)
    assert "2/2" in capsys.readouterr().err
    generator.batch(["a", "b"])
    assert capsys.readouterr().err == ""


# Several values of one prompt.


def test_candidates_are_drawn_as_single_runs_would_be():
    lm = RandomLM(WORDS)
    generator = Generator(Triage, lm, do_sample=True, seed=2)
    several = generator.candidates("who?", 5)
    assert len(lm.chunks[0]) == 1, "the prompt is read once"
    assert texts(several) == [generator.run("who?", seed=2 + i).text for i in range(5)]
    assert len({r.text for r in several}) > 1


def test_the_scores_of_tokens_add_up():
    [result] = Generator(Triage, RandomLM(WORDS), do_sample=True, seed=2).candidates("who?", 1)
    assert b"".join(t.text for t in result.tokens).decode() == result.text
    assert result.log_prob == sum(t.log_prob for t in result.tokens) < 0
    assert all(t.log_prob == 0 and t.valid_mass == 1 for t in result.tokens if t.forced)


def test_beams_find_values_at_least_as_probable_as_greedy():
    lm = RandomLM(WORDS, 1)
    greedy = Generator(Triage, lm).run("who?")
    best = Generator(Triage, lm, num_beams=6).run("who?")
    assert best.log_prob >= greedy.log_prob
    several = Generator(Triage, lm, num_beams=6).candidates("who?", 4)
    assert several[0].text == best.text
    assert [r.log_prob for r in several] == sorted((r.log_prob for r in several), reverse=True)
    assert len({r.text for r in several}) == 4
    assert best.usage.forward_passes > 0


def test_a_rejected_beam_gets_the_next_best():
    lm = RandomLM(WORDS, 3)

    class Odd(BaseModel):
        n: Literal[1, 2, 3, 4]

        @field_validator("n")
        @classmethod
        def odd(cls, n):
            if n % 2 == 0:
                raise ValueError("even")
            return n

    ranked = Generator(Odd, lm, num_beams=4)
    good = ranked.candidates("x", 4)
    assert {r.value.n for r in good} == {1, 3}
    result = Generator(Odd, lm, num_beams=4, retries=3).run("x")
    assert result.text == good[0].text
    assert result.usage.attempts == 1 + len(result.rejected)


def test_beams_work_in_batches_too():
    generator = Generator(Triage, RandomLM(WORDS), num_beams=2)
    assert generator.batch(PROMPTS[:3]) == [generator(p) for p in PROMPTS[:3]]
    assert isinstance(generator.batch(["a", b"b"], on_error="return")[1], InvalidTextError)


@pytest.mark.parametrize(
    ("made", "n", "message"),
    [
        ({}, 2, "would all be the same"),
        ({"num_beams": 2}, 3, "at most num_beams=2"),
        ({"do_sample": True}, 0, "num_return_sequences=0"),
        ({"do_sample": True}, "2", "num_return_sequences='2'"),
    ],
)
def test_impossible_numbers_of_candidates_are_refused(made, n, message):
    generator = Generator(Triage, RandomLM(WORDS), **made)
    with pytest.raises(OptionError, match=message):
        generator.candidates("x", n)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"num_beams": 0}, "num_beams=0"),
        ({"num_beams": 2, "do_sample": True}, "use one of them"),
        ({"num_beams": 2, "retries": 2}, "retries=2 must be less than num_beams=2"),
        ({"repetition_penalty": 0}, "repetition_penalty=0"),
        ({"repetition_penalty": None}, "repetition_penalty=None"),
    ],
)
def test_options_of_the_generator_are_checked(made, message):
    with pytest.raises(OptionError, match=message):
        Generator(Triage, RandomLM(WORDS), **made)
