from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structgen.runtime.masking import apply_masks, n_words, unpack
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
    return np.stack([pack(row) for row in padded]).reshape(len(bits), -1)


@given(
    n_rows=st.integers(1, 3),
    width=st.sampled_from([1, 31, 32, 33, 63, 64, 65, 100, 200]),
    density=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    seed=st.integers(0, 1000),
    junk=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]),
)
def test_masks_agree_with_a_loop_over_bits(n_rows, width, density, seed, junk, dtype):
    random = np.random.default_rng(seed)
    bits = random.random((n_rows, width)) < density
    logits = torch.from_numpy(random.standard_normal((n_rows, width))).to(dtype)
    expected = apply_slowly(logits, bits)
    apply_masks(logits, packed_rows(bits, junk))
    assert torch.equal(logits, expected)
    assert np.array_equal(unpack(torch.from_numpy(packed_rows(bits, junk)), width).numpy(), bits)


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
