"""What a model says after the beginnings of a value: each is read once, and kept.

Letters of shapes: W columns of the logits, L legal tokens, N words of a packed mask.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structgen.errors import ModelError
from structgen.runtime.lm import Cache, LanguageModel
from structgen.runtime.loop import wait_for
from structgen.runtime.masking import n_words
from structgen.runtime.sessions import ForkingSession

CAPACITY_BYTES = 256 * 2**20
"""Of readings that are kept for one prompt; inside a free string one takes 8 bytes a token."""
NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Reading:
    """The model's probabilities of the legal next tokens after a prefix."""

    token_ids: NDArray[np.int32]
    """[L], ascending."""
    log_probs: NDArray[np.float32]
    """[L], under the model's own distribution over all tokens, without a temperature."""
    log_mass: float
    """Of all legal tokens together, without a temperature."""
    log_normaliser: float
    """What `log_probs / temperature` exceeds the log-probabilities at the temperature by."""

    @property
    def size_bytes(self) -> int:
        return self.token_ids.nbytes + self.log_probs.nbytes

    def at(self, temperature: float) -> NDArray[np.float64]:
        """Log-probabilities [L] at the temperature that the reading was made for; a new array."""
        return self.log_probs.astype(np.float64) / temperature - self.log_normaliser

    def place(self, token_id: int) -> int:
        """Where a legal token stands."""
        return int(np.searchsorted(self.token_ids, token_id))


class Prefixes:
    """One model after one prompt: what it says about beginnings of the value.

    What was read before costs no forward pass again, unless it had to make room.

    Example: `Prefixes(lm, prompt, 1.0).read((), [5], session) -> [Reading(...), Reading(...)]`
    """

    def __init__(
        self,
        lm: LanguageModel,
        prompt: Sequence[int],
        temperature: float,
        *,
        capacity_bytes: int = CAPACITY_BYTES,
    ) -> None:
        self._lm = lm
        self._prompt = list(prompt)
        self._temperature = temperature
        self._capacity_bytes = capacity_bytes
        self._known: OrderedDict[tuple[int, ...], Reading] = OrderedDict()
        self._size_bytes = 0
        self._prompt_cache: Cache = None
        self._first: Tensor | None = None  # [1, W], the logits behind the prompt
        self._tip: tuple[tuple[int, ...], Cache] | None = None
        self.forward_passes = 0
        self.forward_s = 0.0

    def memory_bytes(self) -> int:
        """Bytes of the readings that are kept."""
        return self._size_bytes

    def read(
        self, prefix: tuple[int, ...], ahead: Sequence[int], session: ForkingSession
    ) -> list[Reading]:
        """What the model says after a prefix, and after each of some further tokens.

        All of it takes one forward pass, or none.

        Args:
            ahead: tokens that are likely to come next.
            session: at the prefix; left as it is.
        """
        keys = [prefix + tuple(ahead[:n]) for n in range(len(ahead) + 1)]
        found = [self._known.get(key) for key in keys]
        readings = [reading for reading in found if reading is not None]
        if len(readings) < len(keys):
            readings = self._new(prefix, list(ahead), session)
        for key, reading in zip(keys, readings, strict=True):
            self._keep(key, reading)
        return readings

    def _keep(self, key: tuple[int, ...], reading: Reading) -> None:
        """The reading as the one used last; the one not used for longest makes room."""
        before = self._known.pop(key, None)
        self._size_bytes += reading.size_bytes - (before.size_bytes if before else 0)
        self._known[key] = reading
        while self._size_bytes > self._capacity_bytes and len(self._known) > 1:
            self._size_bytes -= self._known.popitem(last=False)[1].size_bytes

    def _new(
        self, prefix: tuple[int, ...], ahead: list[int], session: ForkingSession
    ) -> list[Reading]:
        started = time.perf_counter()
        logits = self._logits(prefix, ahead)  # [1 + ahead, W]
        wait_for(logits.device)
        self.forward_s += time.perf_counter() - started
        width = self._lm.vocabulary.width
        if logits.shape != (len(ahead) + 1, width):
            raise ModelError(
                f"{self._lm.name} returned logits of shape {tuple(logits.shape)} where "
                f"{(len(ahead) + 1, width)} was asked for"
            )
        twin = session.fork()
        readings: list[Reading] = []
        for row, token_id in zip(logits, [*ahead, None], strict=True):
            readings.append(self._reading(row, legal_tokens(twin, width)))
            if token_id is not None:
                twin.advance(token_id)
        return readings

    @torch.inference_mode()
    def _logits(self, prefix: tuple[int, ...], ahead: list[int]) -> Tensor:
        """Logits [1 + ahead, W] behind the prefix and behind each token ahead."""
        if self._first is None:
            self._prompt_cache, self._first = self._lm.prefill([self._prompt])
            self.forward_passes += 1
        tokens = (*prefix, *ahead)
        if not tokens:
            return self._first
        known, cache = self._cache_before(prefix)
        new = list(tokens[len(known) :])
        behind = self._lm.extend_last(cache, [new], min(len(ahead) + 1, len(new)))[0]
        self.forward_passes += 1
        self._tip = tokens, cache
        return behind if prefix else torch.cat([self._first, behind])

    def _cache_before(self, prefix: tuple[int, ...]) -> tuple[tuple[int, ...], Cache]:
        """A cache that a part of the prefix, but not all, was read into, and that part."""
        tip, self._tip = self._tip, None
        if tip is not None and len(tip[0]) < len(prefix) and prefix[: len(tip[0])] == tip[0]:
            return tip
        return (), self._lm.fork(self._prompt_cache)

    def _reading(self, row: Tensor, legal: NDArray[np.int32]) -> Reading:
        logits = row.float().cpu().numpy().astype(np.float64)  # [W]
        total = log_sum(logits)
        if not np.isfinite(total):
            raise ModelError(
                f"{self._lm.name} gave logits that are not finite; a model in a 16-bit type may "
                "overflow: load it with dtype='float32'"
            )
        logits -= total
        at_one = self._temperature == 1
        log_probs = logits[legal]
        return Reading(
            token_ids=legal,
            log_probs=log_probs.astype(np.float32),
            log_mass=log_sum(log_probs),
            log_normaliser=0.0 if at_one else log_sum(logits / self._temperature),
        )


def legal_tokens(session: ForkingSession, width: int) -> NDArray[np.int32]:
    """The ids [L] of the tokens that a session allows next, ascending."""
    packed = np.zeros(n_words(width), np.int32)
    session.fill_mask(packed)
    bits = np.unpackbits(packed.astype("<i4", copy=False).view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[:width]).astype(np.int32)


def log_sum(log_values: NDArray[np.floating[Any]]) -> float:
    """The logarithm of the sum of what these are the logarithms of; of none, -inf."""
    if not log_values.size:
        return NEVER
    most = float(log_values.max())
    if not np.isfinite(most):
        return most
    return most + float(np.log(np.exp(log_values - most).sum()))
