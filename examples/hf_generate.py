"""Structured values from transformers' own `generate`: with its beams, and with fewer passes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

import structgen as sg
from structgen.integrations.hf import StructgenGenerate, StructgenLogitsProcessor, parse

TEXTS = [
    "Maria Silva is a nurse and 34 years old. The person as JSON: ",
    "Bob, 51, has been teaching at our school for years. The person as JSON: ",
]


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)
    job: Literal["nurse", "teacher", "engineer"]


def main() -> None:
    """Print what beam search finds, and how few passes it takes if certain tokens need none."""
    lm = sg.default_lm()
    model: Any = lm.model
    inputs = lm.tokenizer(TEXTS, return_tensors="pt", padding=True, padding_side="left")
    start = inputs.input_ids.shape[1]

    processor = StructgenLogitsProcessor(Person, lm.tokenizer, max_new_tokens=60)
    ids = model.generate(**inputs, logits_processor=[processor], max_new_tokens=60, num_beams=3)
    for person in parse(processor, ids, start):
        print(f"with beams: {person}")

    write = StructgenGenerate(Person, lm.tokenizer)
    output = model.generate(
        **inputs, custom_generate=write, max_new_tokens=60, return_dict_in_generate=True
    )
    for person in parse(write, output, start):
        print(f"fewer passes: {person}")
    print(f"{output.sequences.shape[1] - start} tokens in {output.forward_passes} forward passes")


if __name__ == "__main__":
    main()
