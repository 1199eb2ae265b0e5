"""Real `generate()` calls on the default model."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
import transformers
from pydantic import BaseModel, Field

from structgen.compiler import compile as compile_schema
from structgen.integrations.hf import (
    StructgenGenerate,
    StructgenLogitsProcessor,
    parse,
    prefix_allowed_tokens_fn,
)

BUDGET = 40
PROMPTS = ["Maria is a nurse, 34 years old. As JSON: ", "Bob: "]


class Person(BaseModel):
    name: str = Field(max_length=10)
    age: int = Field(ge=0, le=120)
    job: Literal["nurse", "teacher", "engineer"]


@pytest.fixture(scope="module")
def compiled(smollm2):
    return compile_schema(Person, smollm2.vocabulary)


@pytest.fixture(scope="module")
def inputs(smollm2):
    return smollm2.tokenizer(PROMPTS, return_tensors="pt", padding=True, padding_side="left")


def check(source, smollm2, inputs, **options):
    """The values of a call of `generate`, and its token ids."""
    ids = smollm2.model.generate(**inputs, max_new_tokens=BUDGET, **options)
    values = parse(source, ids, inputs.input_ids.shape[1])
    assert all(isinstance(value, Person) for value in values)
    return values, ids


@pytest.fixture(scope="module")
def greedy(smollm2, compiled, inputs):
    processor = StructgenLogitsProcessor(compiled, max_new_tokens=BUDGET)
    return check(processor, smollm2, inputs, logits_processor=[processor])


def test_the_processor(greedy):
    values, ids = greedy
    assert len(values) == len(ids) == 2
    assert values[0].job == "nurse"


@pytest.mark.parametrize(
    "options",
    [{"do_sample": True, "top_p": 0.9}, {"num_beams": 3}],
    ids=["sampling", "beams"],
)
def test_the_processor_with_several_returned(smollm2, compiled, inputs, options):
    processor = StructgenLogitsProcessor(compiled, max_new_tokens=BUDGET)
    options = {"logits_processor": [processor], "num_return_sequences": 2, **options}
    values, _ = check(processor, smollm2, inputs, **options)
    assert len(values) == 4


def test_prefix_allowed_tokens_fn(smollm2, compiled, inputs, greedy):
    allowed = prefix_allowed_tokens_fn(compiled, max_new_tokens=BUDGET)
    _, ids = check(compiled, smollm2, inputs, prefix_allowed_tokens_fn=allowed)
    assert torch.equal(ids, greedy[1])


def test_custom_generate_takes_fewer_passes(smollm2, compiled, inputs):
    write = StructgenGenerate(compiled)
    ids = smollm2.model.generate(
        **inputs, custom_generate=write, max_new_tokens=BUDGET, return_dict_in_generate=True
    )
    values = parse(write, ids, inputs.input_ids.shape[1])
    assert values[0].job == "nurse"
    n_written = ids.sequences.shape[1] - inputs.input_ids.shape[1]
    assert ids.forward_passes <= 0.6 * n_written
    check(write, smollm2, inputs, custom_generate=write, do_sample=True, top_p=0.9)


def test_a_batch_gives_what_its_rows_give_alone(smollm2, compiled, inputs):
    write = StructgenGenerate(compiled)
    together, _ = check(write, smollm2, inputs, custom_generate=write)
    for prompt, value in zip(PROMPTS, together, strict=True):
        alone = smollm2.tokenizer(prompt, return_tensors="pt")
        assert check(write, smollm2, alone, custom_generate=write)[0] == [value]


def test_in_a_pipeline(smollm2, compiled):
    run = transformers.pipeline("text-generation", model=smollm2.model, tokenizer=smollm2.tokenizer)
    chat = [{"role": "user", "content": "Who is Maria? She is 34, and a nurse."}]
    for options in (
        {"logits_processor": [StructgenLogitsProcessor(compiled, max_new_tokens=BUDGET)]},
        {"custom_generate": StructgenGenerate(compiled)},
    ):
        found = run(chat, return_full_text=False, max_new_tokens=BUDGET, **options)
        assert compiled.validate(found[0]["generated_text"]).job == "nurse"
