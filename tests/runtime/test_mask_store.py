"""Masks that stay on a device: the same code on the CPU, and on CUDA where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structgen.runtime.mask_store import MaskStore, unpack
from structgen.runtime.masking import Masker
from structgen.tokens.mask_rows import NONE, MaskRow

NEVER = float("-inf")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device on this machine"
))]  # fmt: skip


def masks_of(width: int, count: int, seed: int = 0) -> list[MaskRow]:
    """Masks of random density; every fifth allows nothing."""
    random = np.random.default_rng(seed)
    words = (width + 31) // 32
    masks: list[MaskRow] = []
    for index in range(count):
        bits = random.random(width) < (index % 5) / 4
        base = np.packbits(np.pad(bits, (0, words * 32 - width)), bitorder="little").view(np.int32)
        extra = random.integers(0, width, index % 3 if bits.any() else 0).astype(np.int32)
        masks.append(MaskRow(base if index % 5 else NONE, extra, words))
    return masks


def masked(logits: torch.Tensor, masks: list[MaskRow]) -> torch.Tensor:
    rows = torch.from_numpy(np.stack([mask.dense() for mask in masks])).to(logits.device)
    return logits.masked_fill(~unpack(rows, logits.shape[1]), NEVER)


def check(store: MaskStore, masks: list[MaskRow], dtype: torch.dtype = torch.float32) -> None:
    logits = torch.randn(len(masks), store.width, device=store.device).to(dtype)
    expected = masked(logits, masks)
    empty = store.apply(logits, masks)
    assert torch.equal(logits, expected)
    assert empty == [row for row, mask in enumerate(masks) if not mask.dense().any()]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [1, 31, 32, 33, 100, 5000])
def test_logits_are_masked_by_the_rows_named(device, dtype, width):
    store = MaskStore(width, device)
    masks = masks_of(width, 10)
    check(store, masks, dtype)
    check(store, [masks[3], masks[3], masks[0]], dtype)


@pytest.mark.parametrize("device", DEVICES)
@given(
    batches=st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=6), max_size=12),
    capacity=st.integers(1, 9),
)
def test_what_is_evicted_comes_back(device, batches, capacity):
    """Any order of masks, more than there is space for, gives what applying each does."""
    store = MaskStore(50, device, capacity_bytes=capacity * 8)
    masks = masks_of(50, 12)
    seen: list[int] = []
    for batch in batches:
        before = store.n_misses
        check(store, [masks[i] for i in batch])
        recent = dict.fromkeys(reversed(seen))
        kept = set(list(recent)[:capacity])
        assert store.n_misses - before <= len(set(batch) - kept)
        seen += list(dict.fromkeys(batch))
    assert store.memory_bytes() <= 8 * max([capacity, *(len(set(batch)) for batch in batches)])


def test_a_row_is_sent_once(monkeypatch):
    store = MaskStore(100, "cpu")
    masks = masks_of(100, 8)
    sent: list[int] = []
    send = store._send
    monkeypatch.setattr(
        store, "_send", lambda new, slots: (sent.append(len(new)), send(new, slots))
    )
    for _ in range(5):
        check(store, masks)
        check(store, masks[::-1])
    assert sent == [8]
    assert (store.n_misses, store.n_hits) == (8, 72)
    store.clear()
    assert store.memory_bytes() == 0
    check(store, masks)
    assert sent == [8, 8]


def test_masks_that_are_gone_leave_no_trace():
    """A mask's identity is not given to another one while the store knows it."""
    store = MaskStore(64, "cpu", capacity_bytes=8 * 4)
    for seed in range(200):
        check(store, masks_of(64, 3, seed))
    assert store.memory_bytes() <= 8 * 4


def test_threads_share_a_store():
    store = MaskStore(200, "cpu", capacity_bytes=28 * 6)
    masks = masks_of(200, 20)

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(40):
            check(store, [masks[i] for i in random.integers(0, 20, 4)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_logits_that_do_not_fit_are_refused():
    store = MaskStore(40, "cpu")
    with pytest.raises(ValueError, match=r"shape \(2, 41\).*2 masks of width 40"):
        store.apply(torch.zeros(2, 41), masks_of(40, 2))
    assert store.apply(torch.zeros(0, 40), []) == []


@pytest.mark.parametrize("device", DEVICES[1:])
def test_a_masker_keeps_rows_on_the_device(device):
    class Kept:
        def __init__(self, mask: MaskRow) -> None:
            self.mask_row = lambda: mask
            self.fill_mask = mask.fill

    masker = Masker(100, device)
    sessions = [Kept(mask) for mask in masks_of(100, 6)]
    for _ in range(3):
        logits = torch.randn(6, 100, device=device)
        expected = masked(logits, [session.mask_row() for session in sessions])
        assert masker.apply(logits, masker.collect(sessions)) == [0, 5]
        assert torch.equal(logits, expected)
    assert masker.store is not None
    assert masker.store.n_misses == 6


TRITON = """
import sys, torch
from structgen.runtime.mask_store import unpack
from structgen.runtime import mask_triton

torch.manual_seed(0)
for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
    for width in (1, 33, 64, 5000):
        rows = torch.randint(-2**31, 2**31 - 1, (5, (width + 31) // 32), dtype=torch.int32)
        slots = torch.tensor([4, 0, 4], dtype=torch.int32)
        for whole in (torch.randn(3, 2, width)[:, 1], torch.randn(width, 3).T):
            logits = whole.to(dtype)
            unset = ~unpack(rows[slots.long()], width)
            expected = logits.masked_fill(unset, float("-inf"))
            mask_triton.forbid(logits, rows, slots)
            assert torch.equal(logits, expected), (dtype, width)
"""


def test_the_cuda_kernel_in_tritons_interpreter():
    """The kernel's own source, run on the CPU; the mode is read when triton is imported."""
    pytest.importorskip("triton", reason="triton, which brings the interpreter, is not installed")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", TRITON], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
