"""The CUDA kernel that masks a batch; imported only where logits are on such a device."""

# Triton comes with torch's CUDA builds alone, so a type checker may or may not know it.
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportIndexIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048
"""Columns that one program of the kernel looks at."""


@triton.jit
def _forbid(
    logits: Any,
    rows: Any,
    slots: Any,
    row_stride: Any,
    column_stride: Any,
    n_words: Any,
    width: Any,
    block: tl.constexpr,
) -> None:
    """Store -inf where a bit is 0; logits that are allowed are neither read nor written."""
    row = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * block + tl.arange(0, block)
    inside = columns < width
    slot = tl.load(slots + row).to(tl.int64)
    words = tl.load(rows + slot * n_words + (columns >> 5), mask=inside, other=-1)
    unset = ((words >> (columns & 31)) & 1) == 0
    places = logits + row * row_stride + columns.to(tl.int64) * column_stride
    tl.store(places, float("-inf"), mask=inside & unset)


def forbid(logits: Tensor, rows: Tensor, slots: Tensor) -> None:
    """Set logits to -inf, in place, where the row of packed masks that a slot names has 0.

    Args:
        logits: floating point [B, W], of any strides.
        rows: int32 [S, N], contiguous, on the same device.
        slots: int32 [B], on the same device: the row of `rows` for each row of the logits.
    """
    n_rows, width = logits.shape
    if not n_rows or not width:
        return
    grid = (triton.cdiv(width, BLOCK), n_rows)
    with torch.cuda.device_of(logits):
        _forbid[grid](
            logits, rows, slots, logits.stride(0), logits.stride(1), rows.shape[1], width,
            block=BLOCK,
        )  # fmt: skip
