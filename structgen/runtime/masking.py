"""Applying packed masks to logits, for a whole batch in one call.

Letters of shapes: B rows, W columns of the logits, N = ceil(W / 32) words of a mask. Bit
`i % 32` of word `i // 32`, counted from the lowest, is 1 where token i is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structgen.errors import UsageError
from structgen.runtime.mask_kernels import Bits, address_of, keep_table
from structgen.runtime.mask_store import NEVER, MaskStore, forbid_unset, unpack
from structgen.runtime.mask_team import forbid_together
from structgen.runtime.sessions import MaskSource
from structgen.tokens.mask_rows import MaskRow

__all__ = ["Masker", "apply_masks", "masker_for", "n_words", "unpack"]

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types whose kernels blend the bits of floating types of the same size."""

INT32 = np.dtype(np.int32)


def n_words(width: int) -> int:
    """Words of 32 bits that hold a bit per column, e.g. `33 -> 2`."""
    return (width + 31) // 32


def apply_masks(logits: Tensor, packed: NDArray[np.int32] | Tensor) -> NDArray[np.bool_] | None:
    """Set the logits of forbidden tokens to -inf, in place.

    Args:
        logits: floating point [B, W], on any device; changed.
        packed: int32 [B, N]; an array, or a tensor on any device. Bits past W are ignored.

    Returns bool [B], True where a mask allows nothing, if that is known without asking a device.
    """
    shape = logits.shape
    if len(shape) != 2 or packed.shape != (shape[0], (shape[1] + 31) // 32):
        raise ValueError(
            f"masks of shape {tuple(packed.shape)} do not fit logits of shape "
            f"{tuple(logits.shape)}; a row takes {n_words(logits.shape[-1])} words"
        )
    if logits.is_cpu and (constants := _constants(logits.dtype)) is not None:
        return _apply_on_cpu(logits, packed, *constants)
    words = packed if isinstance(packed, Tensor) else torch.from_numpy(packed)
    forbid_unset(logits, words.to(logits.device))
    return None


def _apply_on_cpu(
    logits: Tensor, packed: NDArray[np.int32] | Tensor, keep: Bits, never: int
) -> NDArray[np.bool_]:
    # Behind a forward pass each step of this is a miss in the caches: it may take as long as rows.
    rows, width = logits.shape
    if not rows or not width:
        return np.ones(rows, np.bool_)
    stride = width
    if not logits.is_contiguous():
        stride = logits.stride(0)
        if logits.stride(1) != 1 or stride < width:
            plain = logits.contiguous()
            empty = _apply_on_cpu(plain, packed, keep, never)
            logits.copy_(plain)
            return empty
    packed = _plain(packed)
    masks = address_of(packed) if isinstance(packed, np.ndarray) else packed.data_ptr()
    empty = np.empty(rows, np.bool_)
    forbid_together(logits.data_ptr(), stride, width, masks, keep, never, empty)
    return empty


def _plain(packed: NDArray[np.int32] | Tensor) -> NDArray[np.int32] | Tensor:
    """The same masks as int32 side by side in the memory of the host, mostly themselves."""
    if isinstance(packed, np.ndarray):  # asked first: tensors are slow to tell what is none
        plain = packed.dtype is INT32 and packed.flags.carray
        return packed if plain else np.require(packed, INT32, ["C", "A"])
    if packed.is_cpu and packed.dtype is torch.int32 and packed.is_contiguous():
        return packed
    return packed.to("cpu", torch.int32).contiguous()


@cache
def _constants(dtype: torch.dtype) -> tuple[Bits, int] | None:
    """The table for a floating type, and the bits of its -inf; None where there is no kernel."""
    if dtype.itemsize not in INTEGERS:
        return None
    never = torch.tensor([NEVER], dtype=dtype).view(INTEGERS[dtype.itemsize])
    return keep_table(dtype.itemsize), never.numpy()[0]


Masks = NDArray[np.int32] | list[MaskRow]
"""The masks of a batch as one device takes them."""


class Masker:
    """Masks the logits of one model, on the device where they are.

    On a CPU the masks of a step are written side by side and applied by one kernel. On other
    devices the rows that were seen before are there already (see `MaskStore`).

    Example:
        masks = masker.collect(sessions)  # on the host, while the device still computes logits
        empty = masker.apply(logits, masks)
    """

    def __init__(
        self, width: int, device: torch.device | str, *, capacity_bytes: int = 64 * 2**20
    ) -> None:
        self.width = width
        self.device = torch.device(device)
        on_cpu = self.device.type == "cpu"
        self.store = None if on_cpu else MaskStore(width, self.device, capacity_bytes)

    def collect(self, sessions: Sequence[MaskSource]) -> Masks:
        """The masks of all sessions, for `apply`; work of the host alone."""
        if self.store is not None:
            return [session.mask_row() for session in sessions]
        packed = np.empty((len(sessions), n_words(self.width)), np.int32)
        for session, row in zip(sessions, packed, strict=True):
            session.fill_mask(row)
        return packed

    def apply(self, logits: Tensor, masks: Masks) -> list[int]:
        """Set the logits [B, W] of forbidden tokens to -inf, in place.

        Returns the rows whose masks allow nothing, which is an error of their sessions; usually
        none. The device is not waited for.
        """
        if isinstance(masks, list):
            if self.store is None:
                raise UsageError("these masks were collected for another device than the CPU")
            return self.store.apply(logits, masks)
        empty = apply_masks(logits, masks)
        if empty is None:
            empty = ~masks.any(axis=1)
        return np.flatnonzero(empty).tolist()

    def memory_bytes(self) -> int:
        """Bytes of masks that stay on the device."""
        return self.store.memory_bytes() if self.store is not None else 0


@lru_cache(maxsize=8)
def masker_for(width: int, device: torch.device) -> Masker:
    """The masker that all models of this width on this device share."""
    return Masker(width, device)
