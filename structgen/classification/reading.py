"""Reads prompts that begin alike: what they share is read once and kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import reduce

from torch import Tensor

from structgen.errors import PromptTooLongError
from structgen.runtime.lm import Cache, LanguageModel

LEAST_SHARED = 16
"""Tokens from which on it pays to keep a beginning."""
MORE_SHARED = 64
"""Tokens by which a beginning has to be longer than the one that is kept, to replace it."""


class PromptReader:
    """Reads prompts with one model; shared between threads.

    Example: `reader.read([[1, 2, 3], [1, 2, 4, 5]]) -> (cache, logits [2, W], 2)`
    """

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm
        self._lock = threading.Lock()
        self._last: list[int] = []
        self._shared: tuple[list[int], Cache] | None = None

    def read(self, prompts: Sequence[list[int]]) -> tuple[Cache, Tensor, int]:
        """(a cache of the prompts' rows, logits [B, W] behind them, forward passes)."""
        with self._lock:
            shared, n_passes = self._common(prompts)
            kept = None if shared is None else (len(shared[0]), self._lm.fork(shared[1]))
        if kept is None:
            cache, logits = self._lm.prefill(prompts)
            return cache, logits, n_passes + 1
        cache = self._lm.select(kept[1], [0] * len(prompts))
        logits = self._lm.extend(cache, [ids[kept[0] :] for ids in prompts])
        return cache, logits, n_passes + 1

    def _common(self, prompts: Sequence[list[int]]) -> tuple[tuple[list[int], Cache] | None, int]:
        """What all prompts begin with, and the passes that it took to read it now."""
        before, self._last = self._last, prompts[-1]
        # Of a single prompt, the one before tells what the next ones are likely to share too.
        others = prompts[1:] or [before or prompts[0]]
        common = reduce(shared_beginning, others, prompts[0])
        common = common[: min(map(len, prompts)) - 1]
        known = self._shared
        fits = known is not None and all(_goes_on(ids, known[0]) for ids in prompts)
        if known is not None and fits and len(common) < len(known[0]) + MORE_SHARED:
            return known, 0
        if len(common) < LEAST_SHARED or len(prompts) + bool(before) < 2:
            return None, 0
        cache, _ = self._lm.prefill([common])
        self._shared = common, cache
        return self._shared, 1


def shared_beginning(one: list[int], other: list[int]) -> list[int]:
    """The longest list that both begin with."""
    pairs = zip(one, other, strict=False)
    length = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    return one[:length]


def _goes_on(ids: list[int], beginning: list[int]) -> bool:
    return len(ids) > len(beginning) and ids[: len(beginning)] == beginning


def check_room(lm: LanguageModel, prompt_ids: Sequence[int], needed: int) -> None:
    """Raise PromptTooLongError where labels do not fit behind a prompt."""
    limit = lm.context_length
    if limit is not None and len(prompt_ids) + needed > limit:
        raise PromptTooLongError(len(prompt_ids), limit, needed)
