"""Masks as they are kept: rows written from their parts, and reused under several budgets."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.compiler import compile  # noqa: A004
from structgen.errors import OptionError
from structgen.tokens.mask_rows import NONE, MaskRow, mask_row
from tests import strategies
from tests.strategies import examples, random_vocabulary
from tests.walks import allowed, compile_nodes, pick
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()


def dense_slowly(base: np.ndarray, extra: list[int], n_words: int) -> list[int]:
    words = [int(word) & 0xFFFFFFFF for word in base] or [0] * n_words
    for token in extra:
        words[token // 32] |= 1 << token % 32
    return words


@given(
    n_words=st.integers(1, 40),
    has_base=st.booleans(),
    n_extra=st.integers(0, 60),
    seed=st.integers(0, 1000),
)
def test_rows_are_their_parts_together(n_words, has_base, n_extra, seed):
    rng = np.random.default_rng(seed)
    base = rng.integers(-(2**31), 2**31, n_words).astype(np.int32) if has_base else NONE.copy()
    base.setflags(write=False)
    extra = rng.integers(0, 32 * n_words, n_extra).astype(np.int32)
    expected = dense_slowly(base, extra.tolist(), n_words)
    for row in (MaskRow(base.copy(), extra, n_words), mask_row(base, extra, n_words)):
        out = np.full(n_words, -1, np.int32)
        assert row.fill(out)
        assert out.view(np.uint32).tolist() == expected
        assert row.dense().view(np.uint32).tolist() == expected
        assert not row.dense().flags.writeable
        assert row.empty == (not any(expected))
        for token in range(32 * n_words):
            assert row.allows(token) == bool(expected[token // 32] >> token % 32 & 1)
    assert not base.flags.writeable


@pytest.mark.parametrize("size", [0, 8, 10])
def test_a_row_of_another_length_is_left_alone(size):
    session = compile(int, BYTES).session()
    row = np.full(size, 5, np.int32)
    with pytest.raises(OptionError, match=r"int32 of shape \(9,\)"):
        session.fill_mask(row)
    assert (row == 5).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint32])
def test_a_row_of_another_type_is_refused(dtype):
    with pytest.raises(OptionError, match=f"got {np.dtype(dtype)}"):
        compile(int, BYTES).session().fill_mask(np.zeros(9, dtype))


def test_rows_need_not_be_contiguous():
    session = compile(int, BYTES).session()
    rows = np.full((9, 3), 7, np.int32)
    session.fill_mask(rows[:, 1])
    assert np.array_equal(rows[:, 1], session.mask())
    assert (rows[:, ::2] == 7).all()


@examples(40)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_masks_are_right_for_every_budget_they_are_kept_for(schema, seed):
    """One table asked with many budgets, in any order, says what a new one says for each."""
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    shared = compile_nodes(schema, vocabulary)
    free = shared.session()
    taken: list[int] = []
    for _ in range(rng.randint(0, 6)):
        if free.complete:
            break
        token = pick(free, vocabulary, rng)
        free.advance(token)
        if free.finished:
            return
        taken.append(token)
    budgets = [len(taken) + free.tokens_to_finish + slack for slack in range(7)]
    for budget in rng.sample(budgets, len(budgets)):
        masks: list[list[int]] = []
        for compiled in (shared, compile_nodes(schema, vocabulary)):
            session = compiled.session(10_000)
            for token in taken:
                session.advance(token)
            session._max_tokens = budget
            session._left = budget - len(taken) - 1
            masks.append(allowed(session))
            assert masks[-1] == [t for t in range(vocabulary.width) if session.allows(t)]
        assert masks[0] == masks[1]


@pytest.mark.parametrize("name", ["nested", "tagged", "enum", "exact list", "validators"])
def test_forced_tokens_fit_every_budget(name, real_vocabulary):
    """What is forced under a budget is the part of what is forced anyway that it affords."""
    compiled = compile(ZOO[name], real_vocabulary)
    for slack in range(6):
        session = compiled.session(compiled.min_tokens + slack)
        free = compiled.session()
        rng = random.Random(slack)
        while not (session.complete or session.exhausted):
            forced = session.forced()
            twin = session.fork()
            affordable: list[int] = []
            for token in free.forced():
                if not twin.allows(token):
                    break
                twin.advance(token)
                affordable.append(token)
            assert forced == affordable
            for token in forced or [pick(session, real_vocabulary, rng)]:
                session.advance(token)
                if not session.finished:
                    free.advance(token)
            if session.finished:
                break
