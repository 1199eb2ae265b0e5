"""Rows of a real (tiny) model that leave, enter and are packed read on as if they were alone."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.runtime.hf import HFModel
from structgen.runtime.kv_cache import SPARE
from structgen.runtime.kv_layer import ROOM, GrowingLayer
from tests.runtime.fakes import tiny_model, tiny_tokenizer

TOKENS = st.lists(st.integers(0, 250), min_size=1, max_size=7)
CLOSE = {"atol": 2e-4, "rtol": 1e-3}


@pytest.fixture(scope="module")
def lm():
    return HFModel(tiny_model(), tiny_tokenizer())


def alone(lm, token_ids):
    return lm.prefill([token_ids])[1][0]


# What happens to a batch: rows enter, go on by a chunk each, or some of them stay.
ENTER = st.tuples(st.just("enter"), st.lists(TOKENS, min_size=1, max_size=3))
EXTEND = st.tuples(st.just("extend"), st.lists(TOKENS, min_size=6, max_size=6))
SELECT = st.tuples(st.just("select"), st.lists(st.integers(0, 5), min_size=1, max_size=6))


@given(st.lists(TOKENS, min_size=1, max_size=3), st.lists(ENTER | EXTEND | SELECT, max_size=8))
@settings(deadline=None, max_examples=60)
def test_rows_read_on_as_if_they_were_alone(lm, prompts, happenings):
    cache, logits = lm.prefill(prompts)
    rows = list(prompts)
    for kind, what in happenings:
        if kind == "extend":
            chunks = [what[i % len(what)] for i in range(len(rows))]
            logits = lm.extend(cache, chunks)
            rows = [row + chunk for row, chunk in zip(rows, chunks, strict=True)]
        elif kind == "select":
            chosen = [i % len(rows) for i in what]
            cache, logits = lm.select(cache, chosen), logits[chosen]
            rows = [rows[i] for i in chosen]
        elif len(rows) + len(what) <= 6:
            assert lm.can_join(cache)
            fresh, more = lm.prefill(what)
            cache, logits = lm.join(cache, fresh), torch.cat([logits, more])
            rows = rows + what
    assert cache.lengths == [len(row) for row in rows]
    for row, got in zip(rows, logits, strict=True):
        torch.testing.assert_close(got, alone(lm, row), **CLOSE)


def test_padding_is_packed_away(lm):
    cache, _ = lm.prefill([[1], [2, 3]])
    for turn in range(40):
        long, short = [4, 5, 6, 7, 8, 9], [10]
        logits = lm.extend(cache, [long, short] if turn % 2 else [short, long])
    columns, longest = cache.mask.shape[1], max(cache.lengths)
    assert longest == 142
    assert columns - longest <= max(SPARE, columns // 3) + 6
    assert cache.kv.layers[0].keys.shape[2] == columns
    rows = [[1], [2, 3]]
    for turn in range(40):
        for i, row in enumerate(rows):
            row += [4, 5, 6, 7, 8, 9] if (turn % 2 == 1) == (i == 0) else [10]
    for row, got in zip(rows, logits, strict=True):
        torch.testing.assert_close(got, alone(lm, row), **CLOSE)


def columns(cache):
    """Where the first layer's keys begin in memory."""
    return cache.kv.layers[0].keys.data_ptr()


def test_a_cache_grows_in_place(lm):
    cache, _ = lm.prefill([[1, 2], [3]])
    lm.extend(cache, [[4], [5]])
    begun, rows = columns(cache), [[1, 2, 4], [3, 5]]
    for token in range(ROOM - 2):
        logits = lm.extend(cache, [[token], [token]])
        rows = [[*row, token] for row in rows]
    assert columns(cache) == begun
    for row, got in zip(rows, logits, strict=True):
        torch.testing.assert_close(got, alone(lm, row), **CLOSE)
    lm.extend(cache, [[6, 7, 8], [9]])
    assert columns(cache) != begun


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), TOKENS), max_size=10))
@settings(deadline=None, max_examples=40)
def test_twins_grow_on_their_own(lm, happenings):
    caches, rows = [lm.prefill([[1, 2, 3]])[0]], [[1, 2, 3]]
    for which, forks, chunk in happenings:
        place = which % len(caches)
        if forks:
            caches.append(lm.fork(caches[place]))
            rows.append(list(rows[place]))
        [logits] = lm.extend(caches[place], [chunk])
        rows[place] += chunk
        torch.testing.assert_close(logits, alone(lm, rows[place]), **CLOSE)
    for cache, row in zip(caches, rows, strict=True):
        [logits] = lm.extend(cache, [[9]])
        torch.testing.assert_close(logits, alone(lm, [*row, 9]), **CLOSE)


def test_a_cache_may_leave_inference_mode_and_come_back(lm):
    with torch.inference_mode():
        cache, _ = lm.prefill([[1, 2]])
        lm.extend(cache, [[3]])
    lm.extend(cache, [[4]])
    with torch.inference_mode():
        [logits] = lm.extend(cache, [[5]])
    torch.testing.assert_close(logits, alone(lm, [1, 2, 3, 4, 5]), **CLOSE)


def test_a_cropped_cache_goes_on_from_there(lm):
    cache, _ = lm.prefill([[1, 2]])
    lm.extend(cache, [[3, 4, 5]])
    cache.kv.crop(-2)
    cache.mask, cache.lengths = cache.mask[:, :-2], [3]
    [logits] = lm.extend(cache, [[6]])
    torch.testing.assert_close(logits, alone(lm, [1, 2, 3, 6]), **CLOSE)


def test_windows_cannot_be_joined():
    config = transformers.MistralConfig(
        vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, sliding_window=8, bos_token_id=None,
        eos_token_id=255, pad_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        lm = HFModel(transformers.MistralForCausalLM(config), tiny_tokenizer())
    cache, _ = lm.prefill([[1, 2, 3], [4, 5, 6]])
    assert not lm.can_join(cache)
    logits = lm.extend(lm.select(cache, [1]), [[7]])
    torch.testing.assert_close(logits[0], alone(lm, [4, 5, 6, 7]), **CLOSE)


def test_a_cropped_layer_leaves_its_twin_alone():
    def columns(count: int, value: int) -> torch.Tensor:
        return torch.full((1, 1, count, 2), float(value))

    layer = GrowingLayer()
    for count, value in ((3, 1), (2, 2)):
        layer.update(columns(count, value), columns(count, value))
    twin = copy.copy(layer)
    layer.crop(-2)
    layer.update(columns(2, 9), columns(2, 9))
    assert twin.keys[0, 0, :, 0].tolist() == [1, 1, 1, 2, 2]
    assert layer.keys[0, 0, :, 0].tolist() == [1, 1, 1, 9, 9]


def test_states_of_another_type_are_promoted_as_they_are_by_transformers():
    layers = [GrowingLayer(), transformers.cache_utils.DynamicLayer()]
    kinds = [torch.bfloat16, torch.bfloat16, torch.float32, torch.bfloat16]
    states = [torch.full((1, 1, 2, 4), 1 / 3 + i).to(kind) for i, kind in enumerate(kinds)]
    for part in states:
        (keys, values), (expected, _) = (layer.update(part, part.float()) for layer in layers)
        assert (keys.dtype, values.dtype) == (expected.dtype, torch.float32)
        assert torch.equal(keys, expected)
    with pytest.raises(RuntimeError):  # no silent move from one device to another
        layers[0].update(states[2].to("meta"), states[2].to("meta"))
