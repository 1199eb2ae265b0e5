"""What is known of a tokenizer before and after it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Encoder = Callable[[str], list[int]]
Family = Literal["byte-level", "sentencepiece"]
Json = dict[str, Any]

SUPPORTED = (
    "byte-level BPE (GPT-2's byte alphabet: Llama 3, Qwen, SmolLM2, DeepSeek) and SentencePiece "
    "with byte fallback (Llama 2, Mistral, Gemma)"
)


DAMAGE = (KeyError, IndexError, TypeError, AttributeError, ValueError)


@dataclass(frozen=True, slots=True)
class TokenizerData:
    """A tokenizer's own data, and what its wrapper says about it."""

    kind: Literal["json", "proto"]
    content: bytes
    """The text of a `tokenizer.json`, or a serialised SentencePiece model."""
    digest: str
    """SHA-256 of the content, without a `tokenizer.json`'s padding and truncation settings."""
    eos_token_ids: tuple[int, ...]
    """As the wrapper, the model or the files beside it say; may be empty."""
    special_ids: tuple[int, ...] = ()
    """Ids that the wrapper uses as special tokens, flagged or not."""
    backend: Any = None
    """The live `tokenizers.Tokenizer`, if there is one: an encoder shares its model."""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """What `read_tokens` found."""

    tokens: Sequence[bytes | None]
    """Bytes by id, None where an id must never be part of a value."""
    family: Family
    normalizer: str | None
    """Names of the steps that may change a prompt's text before it is encoded, e.g. `NFC`."""
    settings: Json
    """JSON-able; all that `make_encoder` has to know about the content."""


def as_ids(ids: int | Iterable[int] | None) -> tuple[int, ...]:
    """One id, several or none, as a sorted tuple: `[2, 0, 2]` -> `(0, 2)`."""
    if ids is None:
        return ()
    return tuple(sorted({int(i) for i in ids})) if isinstance(ids, Iterable) else (int(ids),)
