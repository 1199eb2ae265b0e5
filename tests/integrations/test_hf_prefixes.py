from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structgen.compiler import compile as compile_schema
from structgen.errors import BudgetError, OptionError
from structgen.integrations.hf import StructgenLogitsProcessor, parse, prefix_allowed_tokens_fn
from structgen.integrations.hf.prefixes import token_ids
from tests.integrations.tiny import (
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


def generate(allowed, prompts=PROMPTS, **options):
    options = {"max_new_tokens": BUDGET, **options}
    return model().generate(**encode(prompts), prefix_allowed_tokens_fn=allowed, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_beams": 4, "num_return_sequences": 3}, {"do_sample": True}],
    ids=["greedy", "beams", "sampling"],
)
def test_it_generates_what_the_processor_does(options):
    processor = StructgenLogitsProcessor(PERSON, max_new_tokens=BUDGET)
    allowed = prefix_allowed_tokens_fn(PERSON, max_new_tokens=BUDGET)
    inputs = encode(PROMPTS)
    for _ in range(2):
        torch.manual_seed(3)
        ids = generate(allowed, **options)
        torch.manual_seed(3)
        others = model().generate(
            **inputs, logits_processor=[processor], max_new_tokens=BUDGET, **options
        )
        assert torch.equal(ids, others)
        assert len(parse(processor, ids, inputs.input_ids.shape[1])) == len(ids)


def test_more_beams_than_there_are_values():
    compiled = compile_schema(Short, VOCABULARY)
    allowed = prefix_allowed_tokens_fn(compiled, max_new_tokens=BUDGET)
    for prompts in (PROMPTS, PROMPTS[:1]):
        ids = generate(allowed, prompts, num_beams=6)
        assert len(parse(compiled, ids, encode(prompts).input_ids.shape[1])) == len(prompts)


def test_schemas_are_looked_up_by_the_index_of_the_prompt():
    start = encode(PROMPTS).input_ids.shape[1]
    schemas = [compile_schema(one, VOCABULARY) for one in (Short, Long, Short)]
    allowed = prefix_allowed_tokens_fn(schemas, max_new_tokens=BUDGET)
    for options in ({}, {"num_beams": 3}):
        ids = generate(allowed, **options)
        for row, compiled in zip(ids, schemas, strict=True):
            parse(compiled, row[None], start)
    with pytest.raises(OptionError, match="repeat each num_return_sequences times"):
        generate(allowed, do_sample=True, num_return_sequences=2)


def test_one_function_serves_many_calls_in_turn():
    allowed = prefix_allowed_tokens_fn(PERSON, max_new_tokens=BUDGET)
    first = generate(allowed)
    assert torch.equal(generate(allowed), first)
    ids, start = first, encode(PROMPTS).input_ids.shape[1]
    for _ in range(2):
        parse(PERSON, ids, start)
        start = ids.shape[1]
        mask = (ids != tokenizer().pad_token_id).long()
        ids = model().generate(
            input_ids=ids,
            attention_mask=mask,
            prefix_allowed_tokens_fn=allowed,
            max_new_tokens=BUDGET,
        )
    parse(PERSON, ids, start)


def test_assisted_decoding():
    allowed = prefix_allowed_tokens_fn(PERSON, max_new_tokens=BUDGET)
    plain = prefix_allowed_tokens_fn(PERSON, max_new_tokens=BUDGET)
    ids = generate(allowed, "hello", assistant_model=model(seed=1))
    assert torch.equal(ids, generate(plain, "hello"))


def test_the_prompt_may_hold_the_beginning_of_a_value():
    start = encode("say it: ").input_ids.shape[1]
    allowed = prefix_allowed_tokens_fn(PERSON, max_new_tokens=BUDGET, prompt_length=start)
    ids = generate(allowed, 'say it: {"name": "Ann", ')
    assert parse(PERSON, ids, start)[0].name == "Ann"


def test_a_budget_that_holds_no_value_is_refused_at_once():
    with pytest.raises(BudgetError):
        prefix_allowed_tokens_fn(PERSON, max_new_tokens=2)


@given(st.lists(st.integers(0, 95)), st.integers(1, 3))
def test_ids_are_read_from_words(ids, n_words):
    words = np.zeros(n_words, np.uint32)
    ids = sorted({i for i in ids if i < 32 * n_words})
    for i in ids:
        words[i // 32] |= np.uint32(1 << i % 32)
    assert token_ids(words.view(np.int32)) == ids


def test_the_list_is_never_empty_and_kept_for_masks_that_come_again():
    allowed = prefix_allowed_tokens_fn(str, VOCABULARY)
    prompt, value = [70], VOCABULARY.encode('"abc')
    lists = [allowed(0, torch.tensor(prompt + value[:n])) for n in range(len(value) + 1)]
    assert all(lists)
    end = VOCABULARY.encode('"')
    assert allowed(0, torch.tensor(prompt + value + end)) == list(VOCABULARY.eos_token_ids)
    longer = VOCABULARY.encode('"abcabc')
    for n in range(len(longer)):
        allowed(1, torch.tensor(prompt + longer[:n]))
    assert allowed(1, torch.tensor(prompt + longer)) is lists[-1]
