"""Tiny models of random weights, a tokenizer with merges, and schemas for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import torch
import transformers
from pydantic import BaseModel, Field
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from structgen.tokens.vocabulary import Vocabulary

PADDED = 37
"""Columns of the logits that no token has."""


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)
    job: Literal["nurse", "teacher", "engineer"]


class Short(BaseModel):
    ok: bool


class Long(BaseModel):
    names: list[Literal["Ann", "Bob", "Cleo"]] = Field(min_length=4, max_length=6)


CORPUS = [
    '{"name": "Ann", "age": 34, "job": "nurse"}',
    '{"name": "Bob", "age": 51, "job": "teacher"}',
    '{"names": ["Ann", "Bob", "Cleo"], "ok": true, "ok": false}',
    "the engineer said hello to the nurse",
] * 4


@lru_cache(maxsize=1)
def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE with some merges; `<pad>` is not the end token, and stands on the left."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=["<end>", "<pad>", "<bos>"],
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<end>",
        pad_token="<pad>",
        bos_token="<bos>",
        padding_side="left",
    )


def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer(), cache=False)


@lru_cache(maxsize=4)
def model(seed: int = 0, padded: int = PADDED) -> transformers.LlamaForCausalLM:
    """Two layers of random weights, which prefer nothing that a schema allows."""
    ids = tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(ids) + padded,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=ids.bos_token_id,
        eos_token_id=ids.eos_token_id,
        pad_token_id=ids.pad_token_id,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = transformers.LlamaForCausalLM(config).eval()
    made.generation_config = transformers.GenerationConfig(
        eos_token_id=ids.eos_token_id, pad_token_id=ids.pad_token_id, bos_token_id=ids.bos_token_id
    )
    return made


PROMPTS = ["hello", "the engineer said hello to the nurse", "a b"]


def encode(prompts: list[str] | str) -> transformers.BatchEncoding:
    """Ids and mask, padded on the left."""
    texts = [prompts] if isinstance(prompts, str) else prompts
    return tokenizer()(texts, return_tensors="pt", padding=True)
