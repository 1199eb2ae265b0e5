"""What a transformers model remembers of a batch whose rows differ in length.

Each row's tokens stand at the right end, chunk by chunk, with padding in front of each chunk that
is shorter than its neighbours'. Letters of shapes: B rows, K tokens of a chunk, T columns of the
cache, padding included.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from structgen.runtime.kv_layer import GrowingLayer

_PLAIN = (DynamicLayer, GrowingLayer)
SPARE = 64
"""Columns of padding that are left alone before a cache is packed anew."""


@dataclass(slots=True)
class KVCache:
    """A model's own cache and which of its columns are real."""

    kv: Any
    """The model's own; None before its first pass, which may change it as a side effect."""
    mask: Tensor
    """int64 [B, T], 1 for real tokens, 0 for padding."""
    lengths: list[int]
    """Real tokens of each row."""
    padded: bool
    """Whether there is a 0 in the mask; if not, models take a faster way without a mask."""

    @classmethod
    def empty(cls, n_rows: int, device: torch.device) -> KVCache:
        """Of rows that have read nothing."""
        mask = torch.empty((n_rows, 0), dtype=torch.int64, device=device)
        return cls(None, mask, [0] * n_rows, padded=False)

    @property
    def is_plain(self) -> bool:
        """Whether every layer keeps keys and values [B, heads, T, size] of all columns.

        Only such caches can be packed and joined; sliding windows and recurrent states cannot.
        """
        kv = self.kv
        return type(kv) is DynamicCache and all(type(layer) in _PLAIN for layer in kv.layers)

    def append(self, real: Tensor, lengths: Sequence[int]) -> None:
        """Count a chunk, mask `real` int64 [B, K], that the model is about to read."""
        self.mask = torch.cat([self.mask, real], dim=1)
        self.padded = self.padded or len(set(lengths)) > 1
        self.lengths = [a + b for a, b in zip(self.lengths, lengths, strict=True)]

    def let_grow(self) -> None:
        """After the first pass: plain layers grow in place from now on, and keep no room yet."""
        if self.is_plain:
            self.kv.layers = [GrowingLayer.of(layer) for layer in self.kv.layers]

    def tidy(self) -> None:
        """Pack the rows if a third of the columns, and more than a few, is padding in all rows.

        Attention costs as much for padding as for tokens.
        """
        columns, longest = self.mask.shape[1], max(self.lengths)
        if columns - longest > max(SPARE, columns // 3) and self.is_plain:
            self.pack()

    def pack(self, columns: int | None = None) -> None:
        """Move each row's tokens to the right end of as few columns as hold them, or of `columns`.

        Keys carry their positions with them, so that their place in the cache is free.
        """
        longest = max(self.lengths)
        if self.padded:
            order = self.mask.argsort(dim=1, stable=True)[:, -longest:]  # [B, T]: padding first
            self.mask = self.mask.gather(1, order)
            self._change(lambda part: _gather(part, order))
        missing = (longest if columns is None else columns) - longest
        if missing:
            self.mask = torch.nn.functional.pad(self.mask, (missing, 0))
            self._change(lambda part: torch.nn.functional.pad(part, (0, 0, missing, 0)))
        self.padded = missing > 0 or min(self.lengths) < longest

    def fork(self) -> KVCache:
        """A copy that grows on its own."""
        if not self.is_plain:
            return KVCache(copy.deepcopy(self.kv), self.mask, self.lengths, self.padded)
        kv = copy.copy(self.kv)
        kv.layers = [copy.copy(layer) for layer in kv.layers]  # plain layers replace their tensors
        return KVCache(kv, self.mask, self.lengths, self.padded)

    def select(self, rows: Sequence[int]) -> KVCache:
        """The rows with these indices; the cache itself is used up."""
        index = torch.tensor(rows, dtype=torch.int64, device=self.mask.device)
        self.kv.batch_select_indices(index)
        lengths = [self.lengths[row] for row in rows]
        chosen = KVCache(self.kv, self.mask[index], lengths, self.padded)
        chosen.let_grow()
        chosen.tidy()
        return chosen

    def join(self, other: KVCache) -> KVCache:
        """The rows of both; both are used up, and must be plain."""
        columns = max(*self.lengths, *other.lengths)
        for part in (self, other):
            part.pack(columns)
        for mine, theirs in zip(self.kv.layers, other.kv.layers, strict=True):
            mine.keys = torch.cat([mine.keys, theirs.keys])
            mine.values = torch.cat([mine.values, theirs.values])
        mask = torch.cat([self.mask, other.mask])
        return KVCache(self.kv, mask, self.lengths + other.lengths, self.padded or other.padded)

    def _change(self, function: Callable[[Tensor], Tensor]) -> None:
        for number, layer in enumerate(self.kv.layers):
            layer.keys, layer.values = function(layer.keys), function(layer.values)
            self.kv.layers[number] = GrowingLayer.of(layer)


def _gather(part: Tensor, order: Tensor) -> Tensor:
    """The columns `order` [B, T] of each row of keys or values [B, heads, T, size]."""
    n_rows, n_heads, _, size = part.shape
    return part.gather(2, order[:, None, :, None].expand(n_rows, n_heads, -1, size))


def left_pad(chunks: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids and a mask, both int64 [B, K], with zeros before the shorter chunks."""
    longest = max(len(chunk) for chunk in chunks)
    token_ids = [[0] * (longest - len(chunk)) + list(chunk) for chunk in chunks]
    real = [[0] * (longest - len(chunk)) + [1] * len(chunk) for chunk in chunks]
    both = torch.tensor([token_ids, real], dtype=torch.int64, device=device)  # [2, B, K]
    return both[0], both[1]
