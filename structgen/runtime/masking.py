"""Applying packed masks to logits, for a whole batch in one call.

Letters of shapes: B rows, W columns of the logits, N = ceil(W / 32) words of a mask. Bit
`i % 32` of word `i // 32`, counted from the lowest, is 1 where token i is allowed.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

NEVER = float("-inf")


def n_words(width: int) -> int:
    """Words of 32 bits that hold a bit per column, e.g. `33 -> 2`."""
    return (width + 31) // 32


def apply_masks(logits: Tensor, packed: NDArray[np.int32] | Tensor) -> None:
    """Set the logits of forbidden tokens to -inf, in place.

    Args:
        logits: floating point [B, W], on any device; changed.
        packed: int32 [B, N]; an array, or a tensor on any device. Bits past W are ignored.
    """
    if logits.dim() != 2 or packed.shape != (logits.shape[0], n_words(logits.shape[1])):
        raise ValueError(
            f"masks of shape {tuple(packed.shape)} do not fit logits of shape "
            f"{tuple(logits.shape)}; a row takes {n_words(logits.shape[-1])} words"
        )
    words = packed if isinstance(packed, Tensor) else torch.from_numpy(packed)
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        _forbid(logits.numpy(), words.cpu().numpy())
    else:
        logits.masked_fill_(~unpack(words.to(logits.device), logits.shape[1]), NEVER)


def unpack(words: Tensor, width: int) -> Tensor:
    """Bool [B, W] of packed int32 masks [B, N], on their device.

    Example: `unpack(tensor([[5]]), 3) -> [[True, False, True]]`
    """
    shifts = torch.arange(32, dtype=torch.int32, device=words.device)  # [32]
    bits = (words.unsqueeze(-1) >> shifts) & 1  # [B, N, 32]
    return bits.bool().flatten(1)[:, :width]


@njit("void(float32[:, :], int32[:, :])", cache=True, nogil=True)
def _forbid(logits: NDArray[np.float32], packed: NDArray[np.int32]) -> None:
    """Write -inf over each logit [B, W] whose bit in `packed` [B, N] is 0."""
    n_rows, width = logits.shape
    for row in range(n_rows):
        for word_index in range(packed.shape[1]):
            word = packed[row, word_index]
            if word == -1:  # all 32 are allowed
                continue
            first = word_index * 32
            for column in range(first, min(first + 32, width)):
                if not (word >> (column - first)) & 1:
                    logits[row, column] = NEVER
