from __future__ import annotations

import pytest
import torch
from pydantic import BaseModel, field_validator

from structgen.compiler import compile as compile_schema
from structgen.errors import GenerationError, OptionError, ValidationFailedError
from structgen.integrations.hf import StructgenGenerate, StructgenLogitsProcessor, parse
from tests.integrations.tiny import Person, Short, tokenizer, vocabulary

VOCABULARY = vocabulary()
PERSON = compile_schema(Person, VOCABULARY)
SHORT = compile_schema(Short, VOCABULARY)
END, PAD = tokenizer().eos_token_id, tokenizer().pad_token_id
ANN = '{"name": "Ann", "age": 34, "job": "nurse"}'


def row(text: str, *after: int) -> list[int]:
    return [70, 71, *VOCABULARY.encode(text), *after]


def test_values_are_read_up_to_their_ends():
    assert parse(PERSON, [row(ANN, END, PAD, PAD)], 2) == [Person(name="Ann", age=34, job="nurse")]
    assert parse(PERSON, torch.tensor([row(ANN)]), 2)[0].age == 34
    assert parse(PERSON, [row(ANN, 80, 81)], 2)[0].age == 34


def test_an_output_object_has_the_sequences():
    output = type("Output", (), {"sequences": torch.tensor([row(ANN, END)])})()
    assert parse(PERSON, output, 2)[0].name == "Ann"


def test_rows_have_the_schemas_of_their_prompts():
    processor = StructgenLogitsProcessor([PERSON, SHORT])
    ok = '{"ok": true}'
    values = parse(processor, [row(ANN), row(ANN), row(ok), row(ok)], 2)
    assert [type(value) for value in values] == [Person, Person, Short, Short]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (row(ANN[:20]), r"row 0: the value of Person is not finished after \d+ tokens: b'{\"name"),
        (row(""), "not finished after 0 tokens"),
        (row(ANN[:20], PAD), rf"row 0: token {PAD} cannot follow b'{{\"name"),
        (row("x" + ANN), r"cannot follow b''"),
    ],
)
def test_what_is_no_value_is_never_returned(ids, message):
    with pytest.raises(GenerationError, match=message):
        parse(PERSON, [ids], 2)


def test_the_wrong_place_for_the_end_of_the_prompt_shows():
    for wrong in (0, 1, 3):
        with pytest.raises(GenerationError, match="prompt_length"):
            parse(PERSON, [row(ANN)], wrong)


def test_a_value_that_could_go_on_needs_an_end_or_a_budget():
    number = compile_schema(int, VOCABULARY)
    assert parse(number, [row("12", END)], 2) == [12]
    with pytest.raises(GenerationError, match="not finished"):
        parse(number, [row("12")], 2)
    n_tokens = len(row("12")) - 2
    assert parse(StructgenLogitsProcessor(number, max_new_tokens=n_tokens), [row("12")], 2) == [12]
    with pytest.raises(GenerationError, match="not finished"):
        parse(StructgenLogitsProcessor(number, max_new_tokens=n_tokens + 1), [row("12")], 2)
    assert parse(StructgenGenerate(number), [row("12")], 2) == [12]


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


def test_a_validators_objection_carries_the_text():
    even = compile_schema(Even, VOCABULARY)
    assert parse(even, [row('{"n": 12}')], 2) == [Even(n=12)]
    with pytest.raises(ValidationFailedError, match="odd") as caught:
        parse(even, [row('{"n": 13}')], 2)
    assert caught.value.text == '{"n": 13}'


@pytest.mark.parametrize("sequences", ["text", None, [1, 2]])
def test_what_generate_never_returns_is_refused(sequences):
    with pytest.raises(OptionError, match="token ids of shape"):
        parse(PERSON, sequences, 2)
