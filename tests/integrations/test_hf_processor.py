from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from structgen.compiler import compile as compile_schema
from structgen.errors import BudgetError, GenerationError, ModelError, OptionError
from structgen.integrations.hf import StructgenLogitsProcessor, parse
from structgen.runtime.masking import unpack
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary
from tests.integrations.tiny import (
    PADDED,
    PROMPTS,
    Long,
    Person,
    Short,
    encode,
    model,
    tokenizer,
    vocabulary,
)

BUDGET = 60
VOCABULARY = vocabulary()
PERSON = compile_schema(Person, VOCABULARY)


def generate(processor, prompts=PROMPTS, **options):
    """Values and token ids of a call of `generate`."""
    inputs = encode(prompts)
    options = {"max_new_tokens": BUDGET, **options}
    ids = model().generate(**inputs, logits_processor=[processor], **options)
    return parse(processor, ids, inputs.input_ids.shape[1]), ids


MODES = {
    "greedy": {},
    "sampling": {"do_sample": True},
    "warm": {"do_sample": True, "temperature": 3.0, "top_k": 0},
    "nucleus": {"do_sample": True, "top_p": 0.3, "min_p": 0.05},
    "several": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 4},
    "several beams": {"num_beams": 4, "num_return_sequences": 4},
    "early": {"num_beams": 3, "early_stopping": True, "length_penalty": 0.1},
    "sampled beams": {"do_sample": True, "num_beams": 3, "num_return_sequences": 2},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 9},
    "no cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static", "disable_compile": True},
    "chunks": {"prefill_chunk_size": 2},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_value_is_valid_in_every_mode(mode):
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    values, ids = generate(processor, **MODES[mode])
    assert len(values) == len(ids) == 3 * MODES[mode].get("num_return_sequences", 1)
    assert all(isinstance(value, Person) for value in values)


class Spy(transformers.LogitsProcessor):
    """Notes what a processor was given and what it let through."""

    def __init__(self, processor):
        self.processor = processor
        self.calls = []

    def __call__(self, input_ids, scores):
        masked = self.processor(input_ids, scores)
        self.calls.append((input_ids.clone(), torch.isfinite(masked)))
        return masked


def legal_after(compiled, tokens, max_tokens=BUDGET):
    """What a fresh session allows after these tokens, bool [W]; None if they are no beginning."""
    session = compiled.session(max_tokens)
    for token in tokens:
        if not session.allows(token):
            return None
        session.advance(token)
    if session.finished:
        return None
    return unpack(torch.from_numpy(session.mask().copy())[None], compiled.vocabulary.width)[0]


@pytest.mark.parametrize("mode", ["greedy", "several", "beams", "sampled beams"])
def test_each_row_may_go_on_as_a_fresh_session_with_its_tokens_may(mode):
    spy = Spy(StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET))
    inputs = encode(PROMPTS)
    start = inputs.input_ids.shape[1]
    model().generate(**inputs, logits_processor=[spy], max_new_tokens=BUDGET, **MODES[mode])
    checked = 0
    for ids, allowed in spy.calls:
        for row, legal in zip(ids[:, start:].tolist(), allowed, strict=True):
            expected = legal_after(PERSON, row)
            if expected is not None:
                assert torch.equal(legal[: VOCABULARY.width], expected)
                checked += 1
            assert not legal[VOCABULARY.width :].any()
            assert legal.any()
    assert checked > 2 * len(spy.calls)


@given(st.data())
def test_rows_that_are_shuffled_and_doubled_keep_their_states(data):
    """The same over random beams: each row goes on from any row of the same prompt."""
    schemas = [PERSON, compile_schema(list[bool], VOCABULARY)]
    processor = StructgenLogitsProcessor(schemas, max_new_tokens=BUDGET)
    n_beams = data.draw(st.integers(1, 3))
    prompts = data.draw(st.lists(st.lists(st.integers(3, 9), min_size=2, max_size=2),
                                 min_size=2, max_size=2))  # fmt: skip
    rows = [list(prompt) for prompt in prompts for _ in range(n_beams)]
    for _ in range(data.draw(st.integers(1, 12))):
        out = processor(torch.tensor(rows), torch.zeros(len(rows), VOCABULARY.width))
        legal = [torch.isfinite(row).nonzero()[:, 0].tolist() for row in out]
        for index, row in enumerate(rows):
            expected = legal_after(schemas[index // n_beams], row[2:])
            assert legal[index] == expected.nonzero()[:, 0].tolist()
        parents = [
            index // n_beams * n_beams + data.draw(st.integers(0, n_beams - 1))
            for index in range(len(rows))
        ]
        going_on = [[t for t in legal[p] if t not in VOCABULARY.eos_token_ids] for p in parents]
        if not all(going_on):
            return
        rows = [
            rows[parent] + [data.draw(st.sampled_from(tokens))]
            for parent, tokens in zip(parents, going_on, strict=True)
        ]


@pytest.mark.parametrize("mode", ["greedy", "beams"])
def test_a_step_costs_as_much_after_many_tokens_as_after_few(mode, monkeypatch):
    taken = []
    advance = Session.advance
    monkeypatch.setattr(
        Session, "advance", lambda self, token: (taken.append(token), advance(self, token))
    )
    spy = Spy(StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET))
    inputs = encode(PROMPTS)
    model().generate(**inputs, logits_processor=[spy], max_new_tokens=BUDGET, **MODES[mode])
    assert len(spy.calls) > 15
    assert len(taken) <= sum(len(ids) for ids, _ in spy.calls)


def test_left_padding_changes_nothing():
    together, _ = generate(StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET))
    alone = [generate(StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET), [p])[0][0]
             for p in PROMPTS]  # fmt: skip
    assert together == alone


def test_finished_rows_go_on_to_arrive():
    processor = StructgenLogitsProcessor([Short, Long, Short], VOCABULARY, max_new_tokens=BUDGET)
    values, ids = generate(processor)
    assert [type(value) for value in values] == [Short, Long, Short]
    pads = (ids == tokenizer().pad_token_id).sum(dim=1)
    assert pads[0] > 10
    assert pads[2] > 10


@pytest.mark.parametrize("options", [MODES["beams"], MODES["several"]], ids=["beams", "several"])
def test_each_prompt_may_have_its_own_schema(options):
    processor = StructgenLogitsProcessor([Short, Person, Long], VOCABULARY, max_new_tokens=BUDGET)
    values, _ = generate(processor, **options)
    n = options.get("num_return_sequences", 1)
    assert [type(value) for value in values] == [Short] * n + [Person] * n + [Long] * n


def test_beams_of_equal_prompts_keep_to_their_schemas():
    processor = StructgenLogitsProcessor([Short, Long], VOCABULARY, max_new_tokens=BUDGET)
    values, _ = generate(processor, ["hello", "hello"], num_beams=3)
    assert [type(value) for value in values] == [Short, Long]


def test_a_number_of_schemas_that_fits_no_row_is_refused():
    processor = StructgenLogitsProcessor([Short, Long], VOCABULARY)
    with pytest.raises(OptionError, match="2 schemas for 3 rows"):
        generate(processor)


def test_one_processor_serves_many_calls_in_turn():
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    first = generate(processor)[0]
    assert generate(processor)[0] == first
    assert generate(processor, PROMPTS[:1])[0] == first[:1]
    assert len(generate(processor, ["x"] * 5, num_beams=2)[0]) == 5
    assert generate(processor, PROMPTS[::-1])[0] == first[::-1]


def test_a_prompt_may_begin_with_the_one_before_it():
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    for length in (1, 2, 3, 2, 1):
        inputs = torch.tensor([[70, 71, 72][:length]])
        out = model().generate(
            input_ids=inputs,
            attention_mask=torch.ones_like(inputs),
            logits_processor=[processor],
            max_new_tokens=BUDGET,
        )
        assert parse(processor, out, length)


@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS])
def test_an_output_may_be_the_next_prompt(prompts):
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    ids = encode(prompts).input_ids
    for _ in range(3):
        start = ids.shape[1]
        ids = model().generate(
            input_ids=ids,
            attention_mask=(ids != tokenizer().pad_token_id).long(),
            logits_processor=[processor],
            max_new_tokens=BUDGET,
        )
        assert len(parse(processor, ids, start)) == len(prompts)


def test_a_value_that_was_cut_off_is_gone_on_with():
    inputs = encode(PROMPTS)
    processor = StructgenLogitsProcessor(PERSON)
    whole = model().generate(**inputs, logits_processor=[processor], max_new_tokens=BUDGET)
    ids, mask = inputs.input_ids, inputs.attention_mask
    while ids.shape[1] < whole.shape[1]:
        ids = model().generate(
            input_ids=ids, attention_mask=mask, logits_processor=[processor], max_new_tokens=1
        )
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
    start = inputs.input_ids.shape[1]
    assert parse(processor, ids, start) == parse(processor, whole, start)


def test_the_prompt_may_hold_the_beginning_of_a_value():
    begun = encode('say it: {"name": "Ann", ')
    start = encode("say it: ").input_ids.shape[1]
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET, prompt_length=start)
    for _ in range(2):
        ids = model().generate(**begun, logits_processor=[processor], max_new_tokens=BUDGET - 9)
        assert parse(processor, ids, start)[0].name == "Ann"
    with pytest.raises(OptionError, match="prompt_length"):
        generate(processor, "x")


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "temperature": 5.0}, {"num_beams": 3}])
def test_a_value_is_finished_within_its_budget(options):
    for budget in range(PERSON.min_tokens, PERSON.min_tokens + 6):
        processor = StructgenLogitsProcessor(PERSON, max_new_tokens=budget)
        values, ids = generate(processor, max_new_tokens=budget, **options)
        assert len(values) == 3
        assert ids.shape[1] - encode(PROMPTS).input_ids.shape[1] <= budget


def test_a_number_is_finished_where_its_budget_ends():
    compiled = compile_schema(int, VOCABULARY)
    processor = StructgenLogitsProcessor(compiled, max_new_tokens=2)
    values, ids = generate(processor, max_new_tokens=2)
    assert any(ids[:, -1] != tokenizer().eos_token_id), "at least one was not ended by the model"
    assert all(isinstance(value, int) for value in values)


def again(processor, ids, config):
    """The values of a second call, whose prompt is all that the first one returned."""
    more = model().generate(
        input_ids=ids,
        attention_mask=(ids != tokenizer().pad_token_id).long(),
        logits_processor=[processor],
        generation_config=config,
    )
    return parse(processor, more, ids.shape[1])


@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS])
def test_the_prompt_may_be_an_output_that_its_budget_ended(prompts):
    names = tokenizer()
    config = transformers.GenerationConfig(
        max_new_tokens=2, eos_token_id=names.eos_token_id, pad_token_id=names.pad_token_id
    )
    unbound = StructgenLogitsProcessor(compile_schema(Annotated[int, Field(ge=10)], VOCABULARY))
    inputs = encode(prompts)
    processor = unbound.bind(config)
    ids = model().generate(**inputs, logits_processor=[processor], generation_config=config)
    assert (ids[:, -1] != names.eos_token_id).all(), "the budget ended all of them"
    values = parse(processor, ids, inputs.input_ids.shape[1])
    assert all(value >= 10 for value in values)
    assert all(value >= 10 for value in again(processor, ids, config))
    told = StructgenLogitsProcessor(unbound.compiled, max_new_tokens=2, prompt_length=ids.shape[1])
    assert all(value >= 10 for value in again(told, ids, config))


def test_behind_a_budget_that_is_less_than_that_of_generate_the_end_is_all():
    compiled = compile_schema(Annotated[int, Field(ge=10)], VOCABULARY)
    values, ids = generate(StructgenLogitsProcessor(compiled, max_new_tokens=2), max_new_tokens=5)
    assert all(value >= 10 for value in values)
    assert (ids[:, -1] == tokenizer().eos_token_id).all()
    assert ids.shape[1] == encode(PROMPTS).input_ids.shape[1] + 3


def test_a_budget_that_holds_no_value_is_refused_at_once():
    with pytest.raises(BudgetError):
        StructgenLogitsProcessor(PERSON, max_new_tokens=PERSON.min_tokens - 1)


def test_without_a_budget_an_unfinished_value_is_no_value():
    with pytest.raises(GenerationError, match="row 0: the value of Person is not finished"):
        generate(StructgenLogitsProcessor(PERSON), max_new_tokens=5)


def test_a_processor_is_bound_to_the_length_of_a_config():
    processor = StructgenLogitsProcessor(PERSON)
    n_prompt = encode(PROMPTS).input_ids.shape[1]
    for length in ({"max_new_tokens": 25}, {"max_length": n_prompt + 25}):
        config = transformers.GenerationConfig(
            **length, eos_token_id=tokenizer().eos_token_id, pad_token_id=tokenizer().pad_token_id
        )
        inputs = encode(PROMPTS)
        bound = processor.bind(config)
        ids = model().generate(**inputs, logits_processor=[bound], generation_config=config)
        assert len(parse(bound, ids, n_prompt)) == 3
    with pytest.raises(OptionError, match="neither max_new_tokens nor max_length"):
        processor.bind(transformers.GenerationConfig())


def test_a_bound_processor_ends_where_generate_stops():
    names = tokenizer()
    wide = names.convert_tokens_to_ids(["<end>", "<bos>"])
    both = Vocabulary.from_tokenizer(names, eos_token_ids=wide, cache=False)
    processor = StructgenLogitsProcessor(Short, both)
    for stop in wide:
        config = transformers.GenerationConfig(
            max_new_tokens=30, eos_token_id=stop, pad_token_id=names.pad_token_id
        )
        bound = processor.bind(config)
        inputs = encode("hello")
        ids = model().generate(**inputs, logits_processor=[bound], generation_config=config)
        assert ids[0, -1] == stop
    with pytest.raises(OptionError, match="stops at 7"):
        processor.bind(transformers.GenerationConfig(max_new_tokens=30, eos_token_id=7))


def test_an_end_token_that_generate_does_not_know_leaves_the_value_as_it_is():
    processor = StructgenLogitsProcessor(Short, VOCABULARY)
    _, plain = generate(processor, "hello")
    values, ids = generate(processor, "hello", eos_token_id=5, max_new_tokens=40)
    assert values == parse(processor, plain, encode("hello").input_ids.shape[1])
    assert ids.shape[1] > plain.shape[1]


@pytest.mark.parametrize("do_sample", [False, True])
def test_assisted_decoding_with_a_second_model(do_sample):
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    values, ids = generate(processor, "hello", assistant_model=model(seed=1), do_sample=do_sample)
    assert isinstance(values[0], Person)
    if not do_sample:
        plain = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
        assert torch.equal(ids, generate(plain, "hello")[1])


@pytest.mark.parametrize("do_sample", [False, True])
def test_assisted_decoding_with_drafts_from_the_prompt(do_sample):
    prompt = '{"name": "Ann", "age": 34, "job": "nurse"} {"name": "Bob", "name": "Ann" x'
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    options = {"prompt_lookup_num_tokens": 4, "do_sample": do_sample}
    values, ids = generate(processor, prompt, **options)
    assert isinstance(values[0], Person)
    if not do_sample:
        plain = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
        assert torch.equal(ids, generate(plain, prompt)[1])


def test_a_refused_draft_is_forgotten():
    """A draft with an illegal token, then the decoder goes on from before it."""
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    prompt = [5, 6, 7]
    value = VOCABULARY.encode('{"name": "Ann", "age": 3')
    zeros = torch.zeros(1, VOCABULARY.width)

    def legal(tokens):
        return torch.isfinite(processor(torch.tensor([prompt + tokens]), zeros.clone()))[0]

    for n in range(4):
        legal(value[:n])
    wrong = VOCABULARY.encode("]")
    legal(value[:3] + wrong)
    legal(value[:3] + wrong + wrong)
    for n in range(4, len(value)):
        assert torch.equal(legal(value[:n]), legal_after(PERSON, value[:n]))


def test_groups_of_beams_that_arrive_in_turn_need_the_length_of_the_prompt():
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET, prompt_length=3)
    values = ['{"name": "Ann", "age"', '{"name": "Bo", "age"']
    first, second = (VOCABULARY.encode(value) for value in values)
    for n in range(min(len(first), len(second))):
        for tokens in (first[:n], second[:n]):
            out = processor(torch.tensor([[5, 6, 7, *tokens]]), torch.zeros(1, VOCABULARY.width))
            assert torch.equal(torch.isfinite(out)[0], legal_after(PERSON, tokens))


def test_in_a_pipeline():
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    run = transformers.pipeline("text-generation", model=model(), tokenizer=tokenizer())
    options = {"logits_processor": [processor], "max_new_tokens": BUDGET}
    for batch_size in (1, 2):
        found = run(PROMPTS, return_full_text=False, batch_size=batch_size, **options)
        for outputs in found:
            Person.model_validate_json(outputs[0]["generated_text"])


def test_a_prompt_of_embeddings_has_no_tokens():
    inputs = encode(PROMPTS)
    embeddings = model().get_input_embeddings()(inputs.input_ids)
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    for _ in range(2):
        ids = model().generate(
            inputs_embeds=embeddings,
            attention_mask=inputs.attention_mask,
            logits_processor=[processor],
            max_new_tokens=BUDGET,
        )
        assert len(parse(processor, ids, 0)) == 3


def test_the_logits_that_generate_returns_are_left_alone():
    inputs = encode(PROMPTS)
    out = model().generate(
        **inputs,
        logits_processor=[StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)],
        max_new_tokens=BUDGET,
        return_dict_in_generate=True,
        output_logits=True,
        output_scores=True,
    )
    assert all(torch.isfinite(step).all() for step in out.logits)
    assert not any(torch.isfinite(step).all() for step in out.scores)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_scores_of_any_float_type_keep_it(dtype):
    processor = StructgenLogitsProcessor(PERSON)
    out = processor(torch.tensor([[5]]), torch.zeros(1, VOCABULARY.width + PADDED, dtype=dtype))
    assert out.dtype == dtype
    assert torch.equal(torch.isfinite(out[0])[: VOCABULARY.width], legal_after(PERSON, [], None))


def test_logits_that_are_too_narrow_are_named():
    processor = StructgenLogitsProcessor(PERSON)
    with pytest.raises(ModelError, match=f"10 logits, but the vocabulary has {VOCABULARY.width}"):
        processor(torch.tensor([[5]]), torch.zeros(1, 10))


def test_shapes_that_generate_does_not_have_are_refused():
    processor = StructgenLogitsProcessor(PERSON)
    with pytest.raises(OptionError, match="continuous batching"):
        processor(torch.tensor([5, 6]), torch.zeros(1, 2, VOCABULARY.width))


@pytest.mark.parametrize("options", [{"min_new_tokens": 50}, {"suppress_tokens": [0]}])
def test_options_that_forbid_all_that_is_legal_are_named(options):
    processor = StructgenLogitsProcessor(Short, VOCABULARY, max_new_tokens=BUDGET)
    with pytest.raises(GenerationError, match=r"row \d: every token .* min_new_tokens"):
        generate(processor, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Person,), "needs the model's tokenizer"),
        (([], VOCABULARY), "list of schemas is empty"),
        (
            ([PERSON, compile_schema(Short, VOCABULARY.restricted(banned=[9]))],),
            "different vocabularies",
        ),
    ],
)
def test_what_cannot_be_compiled_is_refused(arguments, message):
    with pytest.raises(OptionError, match=message):
        StructgenLogitsProcessor(*arguments)


@pytest.mark.parametrize("option", ["max_new_tokens", "prompt_length"])
def test_an_option_out_of_its_range_is_refused(option):
    for value in (-1, 1.5, True, "3"):
        with pytest.raises(OptionError, match=option):
            StructgenLogitsProcessor(PERSON, **{option: value})


def test_many_calls_leave_nothing_behind():
    processor = StructgenLogitsProcessor(Short, VOCABULARY, max_new_tokens=BUDGET)
    scores = torch.zeros(2, VOCABULARY.width)
    rng = np.random.default_rng(0)
    for _ in range(200):
        processor(torch.tensor(rng.integers(3, 200, (2, int(rng.integers(1, 9))))), scores)
    assert len(processor._runs._runs) <= 32
    processor(torch.tensor([[3] * 40, [4] * 40]), scores)
    assert len(processor._runs._runs) == 1
