"""Structured values from `model.generate(...)` of transformers.

Example:
    processor = StructgenLogitsProcessor(Person, tokenizer, max_new_tokens=200)
    ids = model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)
    person = parse(processor, ids, inputs.input_ids.shape[1])[0]

`StructgenLogitsProcessor` goes with everything that `generate` does, beams included.
`StructgenGenerate`, for `custom_generate=`, is faster, since it skips the model where the schema
leaves no choice. `prefix_allowed_tokens_fn` is for code that takes nothing else.
"""

from __future__ import annotations

from structgen.integrations.hf.generating import StructgenGenerate, StructgenOutput
from structgen.integrations.hf.prefixes import prefix_allowed_tokens_fn
from structgen.integrations.hf.processor import StructgenLogitsProcessor
from structgen.integrations.hf.values import parse

__all__ = [
    "StructgenGenerate",
    "StructgenLogitsProcessor",
    "StructgenOutput",
    "parse",
    "prefix_allowed_tokens_fn",
]
