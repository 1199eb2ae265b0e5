"""`Generator` from prompt to validated value, on models that are made up."""

from __future__ import annotations

import json
import threading
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator

from structgen.errors import (
    BudgetError,
    InvalidTextError,
    ModelError,
    OptionError,
    PromptTooLongError,
    UnsupportedSchemaError,
    ValidationFailedError,
)
from structgen.generator import Generator
from structgen.results import Generation
from structgen.runtime.events import Finished, Step
from structgen.runtime.loop import decode_requests
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary, small_vocabulary

WORDS = ['{"', '":', " true", " false", '", "', "billing", "bill", "ing", "reasoning", "team", ", "]


class Triage(BaseModel):
    reasoning: str = Field(max_length=12)
    team: Literal["billing", "technical", "sales"]
    urgent: bool
    order: int | None = Field(ge=1000, le=99999999)
    tags: list[Annotated[str, Field(min_length=2, max_length=20)]] = Field(max_length=3)


class Small(BaseModel):
    text: str = Field(min_length=1, max_length=8)
    number: float
    more: list[bool] = []


class Tree(BaseModel):
    name: str = Field(max_length=3)
    kids: list[Tree] = Field(max_length=3)


SCRIPT = (
    '{"reasoning": "double", "team": "billing", "urgent": true, "order": 48213, "tags": ["card"]}'
)


@pytest.fixture(scope="module")
def vocabulary():
    return small_vocabulary(WORDS)


def test_a_call_returns_an_instance(vocabulary):
    value = Generator(Triage, ScriptedLM(vocabulary, SCRIPT))("My card was charged twice.")
    assert value == Triage(
        reasoning="double", team="billing", urgent=True, order=48213, tags=["card"]
    )


def test_the_fields_of_a_result_agree_with_each_other(vocabulary):
    lm = ScriptedLM(vocabulary, SCRIPT)
    generator = Generator(Triage, lm)
    result = generator.run("My card was charged twice.")
    assert isinstance(result, Generation)
    assert result.text == SCRIPT
    assert vocabulary.decode(result.token_ids).decode() == result.text
    assert result.value == Triage.model_validate_json(result.text)
    usage, timings = result.usage, result.timings
    assert usage.completion_tokens == len(result.token_ids)
    assert usage.sampled_tokens + usage.forced_tokens == usage.completion_tokens
    assert usage.forced_tokens > 0
    assert usage.forward_passes == len(lm.chunks) <= usage.sampled_tokens + 1
    prompt_ids = lm.encode_prompt(generator.render("My card was charged twice."))
    assert usage.prompt_tokens == len(prompt_ids)
    assert lm.chunks[0][0][: len(prompt_ids)] == prompt_ids
    assert result.finish_reason == "complete"
    assert 0 <= timings.forward_s <= timings.total_s
    assert 0 <= timings.mask_s <= timings.total_s
    assert timings.first_mask_s > 0


def test_every_token_was_given_to_the_model_once_or_was_the_last(vocabulary):
    lm = ScriptedLM(vocabulary, SCRIPT)
    generator = Generator(Triage, lm)
    result = generator.run("Hello")
    fed = [token for chunk in lm.chunks for token in chunk[0]]
    expected = [*lm.encode_prompt(generator.render("Hello")), *result.token_ids]
    assert fed == expected[: len(fed)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("schema", [Triage, Small, Tree, bool, list[int], dict[str, bool], float])
def test_a_random_model_writes_valid_values_too(vocabulary, schema, seed):
    generator = Generator(schema, RandomLM(vocabulary, seed), max_new_tokens=150)
    result = generator.run("Hello")
    assert TypeAdapter(schema).validate_json(result.text) == result.value
    assert result.usage.completion_tokens <= 150


@pytest.mark.parametrize("schema", [Triage, Small, Tree, int, list[str]])
def test_any_budget_from_the_shortest_value_on_gives_a_valid_value(vocabulary, schema):
    shortest = Generator(schema, RandomLM(vocabulary)).compiled.min_tokens
    for budget in range(shortest, shortest + 31):
        lm = RandomLM(vocabulary, seed=budget)
        result = Generator(schema, lm, max_new_tokens=budget).run("Hello")
        assert TypeAdapter(schema).validate_json(result.text) == result.value
        assert result.usage.completion_tokens <= budget


@pytest.mark.parametrize("schema", [Triage, Small, Tree, bool])
def test_a_budget_below_the_shortest_value_is_refused_before_the_model_runs(vocabulary, schema):
    lm = RandomLM(vocabulary)
    shortest = Generator(schema, lm).compiled.min_tokens
    with pytest.raises(BudgetError, match="raise max_new_tokens") as caught:
        Generator(schema, lm, max_new_tokens=shortest - 1)
    assert (caught.value.budget, caught.value.needed) == (shortest - 1, shortest)
    with pytest.raises(BudgetError):
        Generator(schema, lm).run("Hello", max_new_tokens=shortest - 1)
    assert lm.chunks == []


def test_a_call_may_have_its_own_budget(vocabulary):
    generator = Generator(list[bool], RandomLM(vocabulary, 3), max_new_tokens=200)
    for budget in (2, 3, 7, 30):
        assert generator.run("Hello", max_new_tokens=budget).usage.completion_tokens <= budget


def test_a_value_that_could_go_on_stops(vocabulary):
    lm = ScriptedLM(vocabulary, "42")
    result = Generator(int, lm, schema_prompt=False).run("Hello")
    assert (result.value, result.finish_reason) == (42, "stop")
    assert result.token_ids == (ord("4"), ord("2"))


def test_the_context_cuts_the_budget(vocabulary):
    lm = RandomLM(vocabulary, context_length=40)
    generator = Generator(list[int], lm, schema_prompt=False, max_new_tokens=500)
    result = generator.run("x" * 30)
    assert result.usage.prompt_tokens == 30
    assert result.usage.completion_tokens <= 10


def test_a_prompt_that_leaves_no_room_is_refused_before_the_model_runs(vocabulary):
    lm = RandomLM(vocabulary, context_length=40)
    generator = Generator(Literal["yes", "no"], lm, schema_prompt=False)
    needed = generator.compiled.min_tokens
    with pytest.raises(PromptTooLongError, match="shorten the prompt") as caught:
        generator("x" * (41 - needed))
    assert (caught.value.prompt_tokens, caught.value.context_length) == (41 - needed, 40)
    assert caught.value.needed == needed
    assert lm.chunks == []
    assert generator("x" * (40 - needed)) in ("yes", "no")


def test_sampling_is_reproducible_with_a_seed_and_varied_without(vocabulary):
    def run(seed, lm_seed=0):
        lm = RandomLM(vocabulary, lm_seed)
        generator = Generator(
            Small, lm, do_sample=True, temperature=1.3, seed=seed, max_new_tokens=80
        )
        return generator.run("Hello").text

    assert run(7) == run(7)
    assert len({run(seed) for seed in range(6)}) > 1


def test_one_generator_gives_the_same_for_the_same_seed_again(vocabulary):
    generator = Generator(
        Small, RandomLM(vocabulary), do_sample=True, temperature=2.0, seed=1, max_new_tokens=80
    )
    assert len({generator.run("Hello").text for _ in range(3)}) == 1


def test_greedy_decoding_ignores_the_seed(vocabulary):
    texts = {
        Generator(Small, RandomLM(vocabulary), seed=seed, max_new_tokens=80).run("Hello").text
        for seed in (None, 1, 2)
    }
    assert len(texts) == 1


def test_temperature_flattens_the_choice(vocabulary):
    def team(temperature, seed):
        lm = ScriptedLM(vocabulary, "billing")
        generator = Generator(
            Literal["billing", "technical", "sales"], lm, do_sample=True,
            temperature=temperature, seed=seed, schema_prompt=False,
        )  # fmt: skip
        return generator("Hello")

    assert {team(0.5, seed) for seed in range(20)} == {"billing"}
    assert len({team(100.0, seed) for seed in range(20)}) == 3


def test_threads_share_a_generator(vocabulary):
    generator = Generator(Small, RandomLM(vocabulary), max_new_tokens=80)
    prompts = [f"Hello {i}" for i in range(4)]
    expected = [generator.run(prompt).text for prompt in prompts]
    found: dict[int, str] = {}

    def work(i):
        found[i] = generator.run(prompts[i]).text

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(4)] == expected


@pytest.mark.parametrize("layout", ["spaced", "compact", "flexible"])
def test_layouts(vocabulary, layout):
    lm = ScriptedLM(vocabulary, '{"name":"a","kids":[]}' if layout != "spaced" else "")
    generator = Generator(Tree, lm, layout=layout, max_new_tokens=60)
    text = generator.run("Hello").text
    assert Tree.model_validate_json(text)
    if layout == "compact":
        assert text == '{"name":"a","kids":[]}'


def test_require_all_writes_what_has_a_default(vocabulary):
    lm = ScriptedLM(vocabulary, '{"text": "a", "number": 1}')
    left_out = Generator(Small, lm, schema_prompt=False).run("Hello").text
    assert left_out == '{"text": "a", "number": 1}'
    written = Generator(Small, lm, schema_prompt=False, require_all=True, max_new_tokens=120)
    assert '"more": [' in written.run("Hello").text


class Even(BaseModel):
    number: int = Field(ge=0, le=99)

    @field_validator("number")
    @classmethod
    def must_be_even(cls, number):
        if number % 2:
            raise ValueError("the number is odd")
        return number


def test_a_rejecting_validator_is_an_error_that_carries_the_text(vocabulary):
    generator = Generator(Even, ScriptedLM(vocabulary, '{"number": 7}'), schema_prompt=False)
    with pytest.raises(ValidationFailedError, match="the number is odd") as caught:
        generator("Hello")
    assert caught.value.text == '{"number": 7}'
    assert generator.compiled.validators == ("$.number",)


def test_an_accepting_validator_is_no_news(vocabulary):
    generator = Generator(Even, ScriptedLM(vocabulary, '{"number": 8}'), schema_prompt=False)
    assert generator("Hello") == Even(number=8)


def test_a_model_without_finite_logits_is_told_apart(vocabulary):
    class Broken(RandomLM):
        def logits(self, token_ids):
            return super().logits(token_ids) * float("nan")

    with pytest.raises(ModelError, match="no finite logit"):
        Generator(bool, Broken(vocabulary)).run("Hello")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
        ({"max_new_tokens": True}, "max_new_tokens=True"),
        ({"max_new_tokens": 3.5}, "max_new_tokens=3.5"),
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": -1}, "temperature=-1"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_k": 0}, "top_k=0"),
        ({"min_p": 0.0}, "min_p=0.0"),
        ({"do_sample": 1}, "do_sample=1"),
        ({"seed": -1}, "seed=-1"),
        ({"layout": "pretty"}, "layout='pretty'"),
        ({"schema_prompt": 3}, "schema_prompt=3"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": True}, "retries=True"),
        ({"retries": 1.0}, r"retries=1\.0"),
        ({"retries": 1, "top_k": 1}, "retries=1 with top_k=1"),
        ({"limits": {"max_depth": 3}}, "must be a structgen.Limits"),
    ],
)
def test_an_option_out_of_range_is_refused(vocabulary, options, message):
    with pytest.raises(OptionError, match=message):
        Generator(bool, RandomLM(vocabulary), **options)


@pytest.mark.parametrize("budget", [0, -1, True, "5"])
def test_a_calls_own_budget_is_checked_too(vocabulary, budget):
    with pytest.raises(OptionError, match="max_new_tokens"):
        Generator(bool, RandomLM(vocabulary)).run("Hello", max_new_tokens=budget)


def test_bytes_are_no_prompt(vocabulary):
    with pytest.raises(InvalidTextError, match=r"decode it: prompt\.decode\(\)"):
        Generator(bool, RandomLM(vocabulary)).run(b"Hello")  # type: ignore[arg-type]


def test_a_schema_that_cannot_be_enforced_is_refused_with_its_path(vocabulary):
    class Meeting(BaseModel):
        when: complex

    with pytest.raises(UnsupportedSchemaError, match=r"\$\.when"):
        Generator(Meeting, RandomLM(vocabulary))


def test_a_generator_says_what_it_is(vocabulary):
    generator = Generator(Triage, RandomLM(vocabulary))
    assert repr(generator) == "<Generator Triage on random>"
    assert generator.lm.name == "random"


def test_a_vocabulary_of_single_bytes_is_enough():
    assert Generator(Triage, ScriptedLM(byte_vocabulary(), SCRIPT)).run("Hi").text == SCRIPT


def rejecting(vocabulary, **options):
    """A generator of even numbers whose model prefers an odd one, but not by much."""
    lm = ScriptedLM(vocabulary, '{"number": 7}')
    options = {"schema_prompt": False, "temperature": 12.0, "seed": 6, **options}
    return Generator(Even, lm, **options), lm


def test_a_rejected_value_is_an_error_with_all_there_is_to_know(vocabulary):
    generator, lm = rejecting(vocabulary)
    with pytest.raises(ValidationFailedError) as caught:
        generator("Hello")
    error = caught.value
    assert error.value == {"number": 7}
    assert error.cause is error.__cause__
    assert isinstance(error.cause, ValidationError)
    assert error.cause.errors()[0]["loc"] == ("number",)
    assert (error.attempts, error.texts) == (1, ('{"number": 7}',))
    assert lm.chunks[0][0][:5] == list(b"Hello")


def test_retries_sample_until_validation_is_content(vocabulary):
    generator, lm = rejecting(vocabulary, retries=50)
    result = generator.run("Hello")
    assert result.value.number % 2 == 0
    assert result.text not in result.rejected
    assert result.rejected[0] == '{"number": 7}'
    assert len(set(result.rejected)) > 1, "retries differ from each other"
    usage = result.usage
    assert usage.attempts == len(result.rejected) + 1
    assert usage.completion_tokens == usage.sampled_tokens + usage.forced_tokens
    assert usage.completion_tokens > len(result.token_ids)
    assert usage.forward_passes == len(lm.chunks)
    assert usage.prompt_tokens == len(lm.encode_prompt("Hello"))
    assert result.timings.forward_s <= result.timings.total_s


def test_tokens_of_all_attempts_are_counted(vocabulary, monkeypatch):
    events = []

    def recorded(*args, **options):
        for event in decode_requests(*args, **options):
            events.append(event)
            yield event

    monkeypatch.setattr("structgen.jobs.decode_requests", recorded)
    usage = rejecting(vocabulary, retries=50)[0].run("Hello").usage
    steps = [event for event in events if isinstance(event, Step) and not event.end]
    ends = [event for event in events if isinstance(event, Finished)]
    assert usage.completion_tokens == len(steps)
    assert usage.forced_tokens == sum(step.forced for step in steps)
    assert usage.forward_passes == sum(end.forward_passes for end in ends)
    assert usage.attempts == len(ends) > 1


def test_no_retry_is_made_where_none_is_needed(vocabulary):
    lm = ScriptedLM(vocabulary, '{"number": 8}')
    once = Generator(Even, lm, schema_prompt=False).run("Hello")
    more = Generator(Even, lm, schema_prompt=False, retries=9).run("Hello")
    assert (more.text, more.token_ids, more.rejected) == (once.text, once.token_ids, ())
    assert more.usage == once.usage
    assert more.usage.attempts == 1


@pytest.mark.parametrize("do_sample", [False, True])
def test_every_attempt_follows_from_the_seed(vocabulary, do_sample):
    def texts(seed):
        result = rejecting(vocabulary, retries=50, seed=seed, do_sample=do_sample)[0].run("Hello")
        return [*result.rejected, result.text]

    assert texts(6) == texts(6)
    assert len({tuple(texts(seed)) for seed in range(6)}) > 1
    first = [texts(seed)[0] for seed in range(6)]
    assert (len(set(first)) > 1) == do_sample


def test_an_attempt_can_be_made_again_alone(vocabulary):
    result = rejecting(vocabulary, retries=50)[0].run("Hello")
    seed = 6 + len(result.rejected) * 1_000_003
    alone = rejecting(vocabulary, seed=seed, do_sample=True)[0].run("Hello")
    assert alone.text == result.text


class Never(BaseModel):
    number: int = Field(ge=0, le=99)

    @field_validator("number")
    @classmethod
    def reject(cls, number):
        raise ValueError("no number will do")


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_retries_end_with_an_error_that_has_every_text(vocabulary, retries):
    lm = RandomLM(vocabulary)
    generator = Generator(Never, lm, retries=retries, seed=1, max_new_tokens=30)
    with pytest.raises(ValidationFailedError, match="no number will do") as caught:
        generator("Hello")
    error = caught.value
    assert error.attempts == len(error.texts) == retries + 1
    assert error.texts[-1] == error.text
    assert error.value == json.loads(error.text)
    prefills = [chunk for chunk in lm.chunks if len(chunk[0]) > 30]
    assert len(prefills) == retries + 1
    assert all(text in str(error) for text in error.texts)
    assert (f"in each of {retries + 1} attempts" in str(error)) == (retries > 0)


def test_every_attempt_stays_within_the_budget(vocabulary):
    class Long(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def reject(cls, text):
            raise ValueError("never")

    lm = RandomLM(vocabulary)
    with pytest.raises(ValidationFailedError) as caught:
        Generator(Long, lm, retries=3, max_new_tokens=24, temperature=5.0, seed=5).run("Hello")
    assert len(caught.value.texts) == 4
    assert len(set(caught.value.texts)) > 1
    assert all(isinstance(json.loads(text)["text"], str) for text in caught.value.texts)
    assert len(lm.chunks) <= 4 * 24


def test_what_a_validator_raises_by_mistake_is_no_rejection(vocabulary):
    class Broken(BaseModel):
        number: int = Field(ge=0, le=9)

        @field_validator("number")
        @classmethod
        def reject(cls, number):
            raise KeyError("a bug")

    lm = RandomLM(vocabulary)
    with pytest.raises(KeyError, match="a bug"):
        Generator(Broken, lm, retries=5, schema_prompt=False)("Hello")
