"""Generation by chance: a language model that only has moods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.compiler import CompiledSchema
from structgen.testing import small_vocabulary
from structgen.tokens.vocabulary import Vocabulary

GLUED = (
    '{"', '": ', '": "', '", "', '"}', "}]", "]}", '["', '"]', '[{"', "}, {", ", ", '":', ' "',
    "true", "false", "null", "0.", "e+", "10", "-1", "1e5", "12", "ab", "abc", "the", " of",
    "\\u", "\\ud83d", "\\n", '\\"', "é", "€", "http://", "://", "2020-", "T00:", ".com", "id",
    "name", "type",
)  # fmt: skip
"""Pieces of JSON that cross the borders of its tokens."""

Logits = npt.NDArray[np.float64]


def glued_vocabulary() -> Vocabulary:
    """The 256 bytes and some pieces of JSON: small, but every border is crossed by some token."""
    return small_vocabulary(GLUED)


@dataclass(frozen=True)
class Moods:
    """Biases of a vocabulary's tokens: what a model prefers, whatever the schema says."""

    vocabulary: Vocabulary

    @cached_property
    def biases(self) -> dict[str, Logits]:
        """float64[W] for each mood."""
        closing = self._where(lambda token: any(byte in token for byte in b'"}]'))
        inside = self._where(lambda token: set(token) <= set(b'{}[]":,-0123456789.eE \\'))
        few = self._where(lambda token: token in (b"a", b"b", b"0", b"1"))
        long = self._where(lambda token: len(token) > 1)
        ends = np.zeros(self.vocabulary.width)
        ends[list(self.vocabulary.eos_token_ids)] = 1
        return {
            "none": 0 * ends,
            "stays open": -20 * closing - 20 * ends,
            "closes soon": 4 * closing + 4 * ends,
            "never ends": -50 * ends,
            "repeats itself": 9 * few + 6 * closing,
            "loves punctuation": 8 * inside - 50 * ends,
            "long tokens": 6 * long,
        }

    def _where(self, holds: Any) -> Logits:
        tokens = (self.vocabulary.bytes_of(i) for i in range(self.vocabulary.width))
        return np.array([float(bool(token and holds(token))) for token in tokens])


def generated(
    compiled: CompiledSchema[Any], bias: Logits, rng: np.random.Generator, max_tokens: int
) -> bytes:
    """The text of the highest random logits under the masks.

    Raises:
        AssertionError: nothing is allowed, or the budget ended before the value.
    """
    session = compiled.session(max_tokens)
    while not (session.complete or session.exhausted):
        bits = np.unpackbits(session.mask().view(np.uint8), bitorder="little")[: len(bias)]
        logits = np.where(bits, bias + 3 * rng.standard_normal(len(bias)), -np.inf)
        token = int(logits.argmax())
        assert bits[token], ("a dead end", session.token_ids)
        session.advance(token)
        if session.finished:
            break
    assert session.accepting, ("not finished within the budget", session.token_ids)
    return compiled.vocabulary.decode(session.token_ids)
