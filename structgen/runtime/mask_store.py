"""Mask rows that stay on the logits' device, so that each of them crosses the bus once.

A step sends one small array, the slot of each row's mask, and the rows that were not seen before.
Then one kernel reads the slots and masks all logits.

Letters of shapes: B rows, W columns of the logits, N = ceil(W / 32) words of a mask, S slots.
"""

from __future__ import annotations

import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from structgen.tokens.mask_rows import MaskRow

NEVER = float("-inf")
FIRST_SLOTS = 64
"""Slots that a store begins with; it doubles them up to its capacity."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A mask on the device; the reference to it keeps its identity from being given away."""

    mask: MaskRow
    slot: int
    empty: bool
    """It allows nothing."""


class MaskStore:
    """Rows of masks on one device, up to a number of bytes; the longest unused go first.

    Masks are told apart by identity: a session hands out the same `MaskRow` wherever the same
    state allows the same. One that was made for a single call is not met again and soon goes.

    All calls must come from one stream of the device, the default unless it was changed; several
    threads may share it.
    """

    def __init__(
        self, width: int, device: torch.device | str, capacity_bytes: int = 64 * 2**20
    ) -> None:
        self.width = width
        self.device = torch.device(device)
        n_words = (width + 31) // 32
        self.capacity = max(capacity_bytes // (4 * n_words), 1)
        """Rows that are kept; more only if a single batch needs them."""
        self.n_hits = self.n_misses = self.n_evictions = 0
        self._rows = torch.zeros((0, n_words), dtype=torch.int32, device=self.device)  # [S, N]
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        """By the mask's identity, the longest unused first."""
        self._free: list[int] = []
        self._lock = threading.Lock()

    def memory_bytes(self) -> int:
        """Bytes of the rows on the device."""
        return self._rows.nbytes

    def clear(self) -> None:
        """Forget every row."""
        with self._lock:
            self._kept.clear()
            self._free.clear()
            self._rows = self._rows[:0].clone()

    def apply(self, logits: Tensor, masks: Sequence[MaskRow]) -> list[int]:
        """Set the logits [B, W] of tokens that row i of `masks` forbids to -inf, in place.

        Returns the rows whose masks allow nothing, without waiting for the device.
        """
        expected = (len(masks), self.width)
        if logits.shape != expected or logits.device.type != self.device.type:
            raise ValueError(
                f"logits of shape {tuple(logits.shape)} on {logits.device} do not fit "
                f"{len(masks)} masks of width {self.width} on {self.device}"
            )
        if not masks:
            return []
        with self._lock:
            kept = self._place(masks)
            slots = self._to_device(torch.tensor([entry.slot for entry in kept], dtype=torch.int32))
            _forbid_slots(logits, self._rows, slots)
        return [row for row, entry in enumerate(kept) if entry.empty]

    def _place(self, masks: Sequence[MaskRow]) -> list[_Kept]:
        """The masks' entries; those that are new get a slot and are sent."""
        distinct = {id(mask): mask for mask in masks}
        new = [mask for key, mask in distinct.items() if key not in self._kept]
        self.n_misses += len(new)
        self.n_hits += len(masks) - len(new)
        self._touch(key for key in distinct if key in self._kept)
        if new:
            self._make_room(len(new), len(distinct))
            slots = [self._free.pop() for _ in new]
            for mask, slot in zip(new, slots, strict=True):
                self._kept[id(mask)] = _Kept(mask, slot, mask.empty)
            self._send(new, slots)
            self._touch(distinct)
        return [self._kept[id(mask)] for mask in masks]

    def _touch(self, keys: Iterable[int]) -> None:
        """Make these the ones used last, in their order."""
        for key in keys:
            self._kept.move_to_end(key)

    def _make_room(self, count: int, in_use: int) -> None:
        """Free so many slots, while the rows used last, `in_use` with the new ones, stay."""
        n_slots = len(self._rows)
        lacking = count - len(self._free)
        most = max(self.capacity, in_use)
        if lacking > 0 and n_slots < most:
            more = min(max(lacking, n_slots, FIRST_SLOTS), most - n_slots)
            self._rows = torch.cat([self._rows, self._rows.new_zeros(more, self._rows.shape[1])])
            self._free.extend(range(n_slots, n_slots + more))
        while len(self._free) < count:
            self._free.append(self._kept.popitem(last=False)[1].slot)
            self.n_evictions += 1

    def _send(self, masks: Sequence[MaskRow], slots: Sequence[int]) -> None:
        """Copy new rows to their slots, all at once."""
        rows = torch.empty((len(masks), self._rows.shape[1]), dtype=torch.int32)
        for mask, row in zip(masks, rows.numpy(), strict=True):
            mask.fill(row)
        places = self._to_device(torch.tensor(slots, dtype=torch.int64))
        self._rows.index_copy_(0, places, self._to_device(rows))

    def _to_device(self, tensor: Tensor) -> Tensor:
        """A copy on the device that the host does not wait for."""
        if self.device.type == "cuda":
            # torch hands out pinned memory again only when the copies from it are done.
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)


def unpack(words: Tensor, width: int) -> Tensor:
    """Bool [B, W] of packed int32 masks [B, N], on their device.

    Example: `unpack(tensor([[5]]), 3) -> [[True, False, True]]`
    """
    return ~_unset(words, width)


def forbid_unset(logits: Tensor, words: Tensor) -> None:
    """Set logits [B, W] to -inf, in place, where packed masks [B, N] on their device have 0."""
    logits.masked_fill_(_unset(words, logits.shape[1]), NEVER)


def _unset(words: Tensor, width: int) -> Tensor:
    """Bool [B, W]: the bits that are 0, with no more than a byte for each along the way."""
    octets = words.contiguous().view(torch.uint8).unsqueeze(-1)  # [B, 4N, 1], lowest bits first
    return ((octets & _octet_bits(words.device)) == 0).flatten(1)[:, :width]


@cache
def _octet_bits(device: torch.device) -> Tensor:
    return torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=device)


def _forbid_slots(logits: Tensor, rows: Tensor, slots: Tensor) -> None:
    """Set logits [B, W] to -inf where row `slots[i]` of `rows` [S, N] has 0."""
    if logits.is_cuda and _has_triton():
        from structgen.runtime import mask_triton

        mask_triton.forbid(logits, rows, slots)
    else:
        forbid_unset(logits, rows.index_select(0, slots))


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
