"""Sessions that need no compiler, and a tiny transformers model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from structgen.errors import IllegalTokenError
from structgen.tokens.vocabulary import Vocabulary


class ChoiceSession:
    """The value is one of a few texts, some of which may be prefixes of others."""

    def __init__(
        self, vocabulary: Vocabulary, texts: Sequence[str], *, forcing: bool = True
    ) -> None:
        self.vocabulary = vocabulary
        self.texts = [text.encode() for text in texts]
        self.forcing = forcing
        self.written = b""
        self.taken: list[int] = []
        self.finished = False
        self.exhausted = False

    @property
    def accepting(self) -> bool:
        return self.written in self.texts

    @property
    def complete(self) -> bool:
        return self._continuations() == [b""]

    def forced(self) -> list[int]:
        rest = self._continuations()
        if not self.forcing or b"" in rest:
            return []
        common = b""
        while len({text[: len(common) + 1] for text in rest}) == 1 and len(common) < len(rest[0]):
            common = rest[0][: len(common) + 1]
        return self.vocabulary.encode(common.decode())

    def allows(self, token_id: int) -> bool:
        if token_id in self.vocabulary.eos_token_ids:
            return self.accepting
        token = self.vocabulary.bytes_of(token_id)
        return bool(token) and any(text.startswith(token) for text in self._continuations())

    def fill_mask(self, row: np.ndarray) -> None:
        row[:] = pack([self.allows(i) for i in range(self.vocabulary.width)])

    def advance(self, token_id: int) -> None:
        if not self.allows(token_id):
            raise IllegalTokenError(token_id, f"after {self.written!r}")
        self.taken.append(token_id)
        if token_id in self.vocabulary.eos_token_ids:
            self.finished = True
        else:
            self.written += self.vocabulary.bytes_of(token_id)

    def _continuations(self) -> list[bytes]:
        started = [text for text in self.texts if text.startswith(self.written)]
        return [text[len(self.written) :] for text in started]


class FreeSession:
    """Any tokens of a fixed set, at most `max_tokens` of them; the end is allowed at any time."""

    def __init__(self, vocabulary: Vocabulary, legal: Sequence[int], max_tokens: int) -> None:
        bits = np.zeros(vocabulary.width, dtype=bool)
        bits[[*legal, *vocabulary.eos_token_ids]] = True
        self.packed = pack(bits)
        self.eos = vocabulary.eos_token_ids
        self.max_tokens = max_tokens
        self.taken: list[int] = []
        self.finished = False
        self.complete = False
        self.accepting = True

    @property
    def exhausted(self) -> bool:
        return len(self.taken) >= self.max_tokens

    def forced(self) -> list[int]:
        return []

    def fill_mask(self, row: np.ndarray) -> None:
        row[:] = self.packed

    def advance(self, token_id: int) -> None:
        assert self.packed[token_id // 32] >> (token_id % 32) & 1
        self.finished = token_id in self.eos
        if not self.finished:
            self.taken.append(token_id)


def pack(bits: Sequence[bool]) -> np.ndarray:
    """Bools of W tokens as int32 words, bit by bit."""
    words = [0] * ((len(bits) + 31) // 32)
    for i, bit in enumerate(bits):
        words[i // 32] |= int(bit) << (i % 32)
    return np.array(words, dtype=np.uint32).view(np.int32)


CHAT = (
    "{% for m in messages %}{% if m.role == 'evil' %}{{ raise_exception('no such role') }}"
    "{% endif %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tiny_tokenizer(chat_template: str | None = None) -> transformers.PreTrainedTokenizerFast:
    """Ids 0 to 255 are bytes in the order of GPT-2's alphabet, 256 is the end token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    wrapped.chat_template = chat_template
    return wrapped


def tiny_model(**overrides: object) -> transformers.LlamaForCausalLM:
    """Two layers of random weights, with 300 columns of logits where the tokenizer has 257 ids."""
    config = transformers.LlamaConfig(
        **{
            "vocab_size": 300,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "bos_token_id": None,
            "eos_token_id": 255,
            "initializer_range": 0.5,
            **overrides,
        }
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(config)
