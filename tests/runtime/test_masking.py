from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.runtime import mask_team
from structgen.runtime.mask_kernels import BLOCK
from structgen.runtime.masking import Masker, apply_masks, n_words, unpack
from tests.runtime.fakes import pack

NEVER = float("-inf")


def apply_slowly(logits: torch.Tensor, bits: np.ndarray) -> torch.Tensor:
    masked = logits.clone()
    for row in range(logits.shape[0]):
        for column in range(logits.shape[1]):
            if not bits[row, column]:
                masked[row, column] = NEVER
    return masked


def packed_rows(bits: np.ndarray, junk: bool) -> np.ndarray:
    """Packed masks; with `junk` the unused bits of the last word are ones."""
    unused = -bits.shape[1] % 32
    padded = np.pad(bits, ((0, 0), (0, unused)), constant_values=junk)
    return np.array([pack(row) for row in padded], np.int32).reshape(
        len(bits), n_words(bits.shape[1])
    )


def layouts(logits: torch.Tensor, layout: str) -> torch.Tensor:
    """The same logits, laid out otherwise in memory."""
    n_rows, width = logits.shape
    if layout == "slice of rows":
        whole = logits.new_zeros((n_rows, 3, width + 5))
        view = whole[:, 1, 2 : 2 + width]
    elif layout == "columns first":
        view = logits.new_zeros((width, n_rows)).T
    elif layout == "every other":
        view = logits.new_zeros((n_rows, 2 * width))[:, ::2]
    else:
        return logits
    view.copy_(logits)
    return view


@settings(deadline=None)  # the first example of a type compiles its kernel
@given(
    n_rows=st.integers(0, 3),
    width=st.sampled_from([0, 1, 31, 32, 33, 63, 64, 65, 100, 200, 600]),
    density=st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 1.0]),
    seed=st.integers(0, 1000),
    junk=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]),
    layout=st.sampled_from(["plain", "slice of rows", "columns first", "every other"]),
)
def test_masks_agree_with_a_loop_over_bits(n_rows, width, density, seed, junk, dtype, layout):
    random = np.random.default_rng(seed)
    bits = random.random((n_rows, width)) < density
    # Whole words of ones and zeros beside mixed ones, for the paths that skip and overwrite.
    for start in range(0, width, 32):
        if random.random() < 0.5:
            bits[:, start : start + 32] = random.random() < 0.5
    values = torch.from_numpy(random.standard_normal((n_rows, width))).to(dtype)
    values[values > 1.5] = float("nan")
    values[values < -1.5] = float("inf")
    logits = layouts(values, layout)
    expected = apply_slowly(logits, bits)
    packed = packed_rows(bits, junk)
    empty = apply_masks(logits, packed)
    assert torch.equal(logits.isnan(), expected.isnan())
    assert torch.equal(logits.nan_to_num(7), expected.nan_to_num(7))
    assert empty.tolist() == [not row.any() for row in bits]
    if width:
        assert np.array_equal(unpack(torch.from_numpy(packed), width).numpy(), bits)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@settings(deadline=None, max_examples=40)
@given(
    n_rows=st.integers(1, 40),
    width=st.sampled_from([1, 33, 600]),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_a_team_of_threads_masks_as_one_does(n_threads, n_rows, width, seed, dtype):
    random = np.random.default_rng(seed)
    bits = random.random((n_rows, width)) < random.random((n_rows, 1)).round(1)
    values = torch.from_numpy(random.standard_normal((n_rows, width))).to(dtype)
    alone, together = values.clone(), values.clone()
    packed = packed_rows(bits, junk=False)
    empty = apply_masks(alone, packed)
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mask_team, "MOST_ALONE", 0)
            found = apply_masks(together, packed)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(together, alone)
    assert found.tolist() == empty.tolist() == [not row.any() for row in bits]


@pytest.mark.skipif(sys.platform != "linux", reason="torch is linked with GNU OpenMP on Linux only")
def test_the_team_is_found_on_linux():
    assert mask_team._team() is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_masks_alone():
    code = """
import os, signal, sys, numpy as np, torch
from structgen.runtime import mask_team
from structgen.runtime.masking import apply_masks
torch.set_num_threads(2)
mask_team.MOST_ALONE = 0
apply_masks(torch.zeros((8, 64)), np.zeros((8, 2), np.int32))
child = os.fork()
if not child:
    signal.alarm(20)
    apply_masks(torch.zeros((8, 64)), np.zeros((8, 2), np.int32))
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0


def test_without_a_team_one_thread_masks_a_large_batch(monkeypatch):
    monkeypatch.setattr(mask_team, "MOST_ALONE", 0)
    monkeypatch.setattr(mask_team, "_team", lambda: None)
    logits = torch.zeros((5, 40))
    apply_masks(logits, np.zeros((5, 2), np.int32))
    assert logits.eq(NEVER).all()


@settings(deadline=None, max_examples=40)
@given(
    width=st.integers(32 * BLOCK - 3, 96 * BLOCK + 70),
    zeros=st.lists(st.integers(0, 96 * BLOCK + 69), max_size=40),
    runs=st.lists(st.tuples(st.integers(0, 96 * BLOCK), st.integers(1, 40_000)), max_size=3),
    ones=st.booleans(),
)
def test_wide_masks_with_few_zeros_or_long_runs(width, zeros, runs, ones):
    bits = np.full(96 * BLOCK + 70, ones)
    for start, length in runs:
        bits[start : start + length] ^= True
    bits[zeros] ^= True
    bits = bits[None, :width]
    values = torch.arange(width, dtype=torch.float32)[None]
    expected = values.masked_fill(~torch.from_numpy(bits), NEVER)
    empty = apply_masks(values, packed_rows(bits, junk=False))
    assert torch.equal(values, expected)
    assert empty.tolist() == [not bits.any()]


def test_what_surrounds_the_logits_is_not_touched():
    whole = torch.ones(4, 3, 50)
    apply_masks(whole[1:3, 1, 5:45], np.zeros((2, 2), np.int32))
    assert (whole[1:3, 1, 5:45] == NEVER).all()
    assert int((whole == NEVER).sum()) == 80


def test_masks_that_may_not_be_written():
    packed = np.full((2, 2), 6, np.int32)
    packed.setflags(write=False)
    for words in (
        packed,
        np.broadcast_to(packed[:1], (2, 2)),
        torch.tensor([[6, 6], [6, 6]]).int(),
    ):
        logits = torch.ones(2, 40)
        apply_masks(logits, words)
        assert torch.isfinite(logits).nonzero()[:, 1].tolist() == [1, 2, 33, 34] * 2


def test_a_slice_of_a_larger_tensor_is_masked_in_place():
    whole = torch.ones(2, 5, 40)
    apply_masks(whole[:, -1], torch.zeros(2, 2, dtype=torch.int32))
    assert (whole[:, -1] == NEVER).all()
    assert (whole[:, :-1] == 1).all()


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 3), (2,)])
def test_masks_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="a row takes 2 words"):
        apply_masks(torch.zeros(2, 40), np.zeros(shape, dtype=np.int32))


def test_words_are_counted_up():
    assert [n_words(width) for width in (1, 31, 32, 33, 64, 65)] == [1, 1, 1, 2, 2, 3]


def test_a_masker_on_the_cpu_takes_any_session():
    class Fixed:
        def __init__(self, token_ids: list[int]) -> None:
            self.token_ids = token_ids

        def fill_mask(self, row: np.ndarray) -> None:
            row[:] = pack([i in self.token_ids for i in range(64)])

    masker = Masker(40, "cpu")
    logits = torch.zeros(3, 40)
    masks = masker.collect([Fixed([1, 33]), Fixed([]), Fixed([5, 50])])
    assert masker.apply(logits, masks) == [1]
    assert torch.isfinite(logits).nonzero().tolist() == [[0, 1], [0, 33], [2, 5]]
    assert masker.memory_bytes() == 0
    logits = torch.zeros(1, 40)
    assert masker.apply(logits, masker.collect([Fixed([50])])) == [0], "past the width"
