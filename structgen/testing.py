"""Fakes for tests, yours too: small vocabularies and language models that need no download.

Example:
    lm = RandomLM(byte_vocabulary(), seed=1)
    list(decode(lm, [lm.encode_prompt("Hello")], [session]))
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from structgen.runtime.lm import Prompt
from structgen.tokens.vocabulary import Vocabulary


def byte_vocabulary() -> Vocabulary:
    """256 tokens of one byte each, id = byte, and the end token 256."""
    return small_vocabulary([])


def small_vocabulary(extra_tokens: Iterable[str | bytes]) -> Vocabulary:
    """All single bytes (ids 0 to 255), the extra tokens from 256 on, and the end token last.

    Example: `small_vocabulary(["true"]).bytes_of(256)` -> `b"true"`

    It encodes a text greedily: the longest token that fits, from the left.
    """
    extra = [token.encode() if isinstance(token, str) else token for token in extra_tokens]
    tokens = [bytes([byte]) for byte in range(256)] + extra
    ids = {token: i for i, token in reversed(list(enumerate(tokens)))}
    return Vocabulary.from_bytes(
        tokens, eos_token_ids=len(tokens), encode=lambda text: _encode_greedily(text.encode(), ids)
    )


def _encode_greedily(text: bytes, ids: dict[bytes, int]) -> list[int]:
    longest = max(map(len, ids))
    found: list[int] = []
    while text:
        token = next(text[:n] for n in range(min(longest, len(text)), 0, -1) if text[:n] in ids)
        found.append(ids[token])
        text = text[len(token) :]
    return found


@dataclass(slots=True)
class _History:
    """The tokens of each row so far: all that a fake model remembers."""

    rows: list[list[int]]


class FakeLM(ABC):
    """A model on the CPU whose logits are a function of a row's tokens alone, see `logits`."""

    name = "fake"

    def __init__(self, vocabulary: Vocabulary, *, context_length: int | None = None) -> None:
        self.vocabulary = vocabulary
        self.context_length = context_length
        self.device = torch.device("cpu")
        self.chunks: list[list[list[int]]] = []
        """What each forward pass was given: a list of tokens for each row."""

    @abstractmethod
    def logits(self, token_ids: Sequence[int]) -> Tensor:
        """Float32 logits [W] that follow a row's tokens."""

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """The prompt's text as the vocabulary encodes it, or one zero byte if it has none."""
        text = prompt if isinstance(prompt, str) else "\n".join(str(m["content"]) for m in prompt)
        encode = self.vocabulary.encode
        return (encode(text) if encode else []) or [0]

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[_History, Tensor]:
        cache = _History([[] for _ in prompts])
        return cache, self.extend(cache, prompts)

    def extend(self, cache: _History, chunks: Sequence[Sequence[int]]) -> Tensor:
        self.chunks.append([list(chunk) for chunk in chunks])
        for row, chunk in zip(cache.rows, chunks, strict=True):
            row.extend(chunk)
        return torch.stack([self.logits(row) for row in cache.rows])  # [B, W]

    def extend_last(self, cache: _History, chunks: Sequence[Sequence[int]], n_last: int) -> Tensor:
        before = [list(row) for row in cache.rows]
        self.extend(cache, chunks)
        behind: list[Tensor] = []
        for row, chunk in zip(before, chunks, strict=True):
            ends = range(len(chunk) - n_last + 1, len(chunk) + 1)
            behind.append(torch.stack([self.logits([*row, *chunk[:end]]) for end in ends]))
        return torch.stack(behind)  # [B, n_last, W]

    def fork(self, cache: _History) -> _History:
        return _History([list(row) for row in cache.rows])

    def select(self, cache: _History, rows: Sequence[int]) -> _History:
        return _History([list(cache.rows[i]) for i in rows])

    def can_join(self, cache: _History) -> bool:  # noqa: ARG002  # always, here
        return True

    def join(self, first: _History, second: _History) -> _History:
        return _History(first.rows + second.rows)


class RandomLM(FakeLM):
    """Pseudo-random logits that depend only on the seed and on a row's own tokens."""

    name = "random"

    def __init__(
        self, vocabulary: Vocabulary, seed: int = 0, *, context_length: int | None = None
    ) -> None:
        super().__init__(vocabulary, context_length=context_length)
        self.seed = seed

    def logits(self, token_ids: Sequence[int]) -> Tensor:
        digest = hashlib.sha256(repr((self.seed, *token_ids)).encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        return torch.randn(self.vocabulary.width, generator=generator) * 3


class ScriptedLM(FakeLM):
    """Prefers to write one text, in the longest tokens that fit, and then to end.

    It has written as much of the text as the row ends with; where a schema leads off the text, it
    starts over. The preferred token gets a logit of 20, shorter ones that fit a little less, all
    others 0.
    """

    name = "scripted"

    def __init__(
        self, vocabulary: Vocabulary, text: str | bytes, *, context_length: int | None = None
    ) -> None:
        super().__init__(vocabulary, context_length=context_length)
        self.text = text.encode() if isinstance(text, str) else text
        tokens = ((i, vocabulary.bytes_of(i)) for i in range(vocabulary.width))
        self._tokens = [(i, token) for i, token in tokens if token]

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """The prompt and a zero byte, lest the end of the prompt be taken for the text."""
        zero = next(i for i, token in self._tokens if token == b"\0")
        return [*super().encode_prompt(prompt), zero]

    def logits(self, token_ids: Sequence[int]) -> Tensor:
        rest = self.text[self._written(token_ids) :]
        fitting = [(len(token), i) for i, token in self._tokens if rest.startswith(token)]
        logits = torch.zeros(self.vocabulary.width)
        for place, (_, i) in enumerate(sorted(fitting, reverse=True)):
            logits[i] = 20.0 - place
        if not rest:
            logits[list(self.vocabulary.eos_token_ids)] = 20.0
        return logits

    def _written(self, token_ids: Sequence[int]) -> int:
        """Bytes of the text that the row ends with."""
        row = b"".join(self.vocabulary.bytes_of(i) or b"" for i in token_ids)
        lengths = range(min(len(self.text), len(row)), -1, -1)
        return next(n for n in lengths if row.endswith(self.text[:n]))
