"""Padding takes no part in linear layers, and nothing else changes by that."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Lfm2Config, Lfm2ForCausalLM

from structgen.runtime import hf, packing, upcast
from structgen.runtime.hf import HFModel
from structgen.runtime.packing import packed_products
from tests.runtime.fakes import tiny_model, tiny_tokenizer

CLOSE = {"atol": 2e-4, "rtol": 1e-3}
CHUNKS = st.lists(st.lists(st.integers(0, 250), min_size=1, max_size=9), min_size=1, max_size=5)
KINDS = [{}, {"attention_bias": True, "mlp_bias": True}]


@pytest.fixture(scope="module", params=KINDS, ids=["plain", "biases"])
def lm(request):
    return HFModel(tiny_model(**request.param), tiny_tokenizer())


@pytest.fixture
def always(monkeypatch):
    """A token of padding is enough."""
    monkeypatch.setattr(packing, "MIN_PADDING", 1)


def real_mask(lengths):
    return hf.left_pad([[1] * n for n in lengths], torch.device("cpu"))[1]


class Products(TorchDispatchMode):
    """Notes how many vectors each matrix product takes."""

    def __init__(self):
        super().__init__()
        self.vectors = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.vectors.add(args[-2].shape[0])
        return func(*args, **(kwargs or {}))


@given(turns=st.lists(CHUNKS, min_size=1, max_size=4))
@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_packed_rows_read_as_if_they_were_alone(lm, always, turns):
    n_rows = min(map(len, turns))
    rows = [list(chunk) for chunk in turns[0][:n_rows]]
    cache, logits = lm.prefill(rows)
    for chunks in turns[1:]:
        logits = lm.extend(cache, chunks[:n_rows])
        rows = [row + chunk for row, chunk in zip(rows, chunks, strict=False)]
    for row, got in zip(rows, logits, strict=True):
        torch.testing.assert_close(got, lm.prefill([row])[1][0], **CLOSE)


def test_all_of_the_last_logits_are_the_rows_own(lm, always):
    cache, _ = lm.prefill([[1, 2, 3], [4]])
    behind = lm.extend_last(cache, [[5, 6, 7, 8, 9, 10], [11, 12]], 2)
    for row, got in zip([[1, 2, 3, 5, 6, 7, 8, 9, 10], [4, 11, 12]], behind, strict=True):
        for place, n_tokens in enumerate((len(row) - 1, len(row))):
            alone = lm.prefill([row[:n_tokens]])[1][0]
            torch.testing.assert_close(got[place], alone, **CLOSE)


def test_layers_see_real_tokens_alone(lm):
    run, one = [7] * packing.MIN_PADDING, [7]
    cache, _ = lm.prefill([[1]] * 3)
    with Products() as seen:
        lm.extend(cache, [run, one, one])
    assert seen.vectors == {len(run) + 2, 3}  # the head has one for each row


@pytest.mark.parametrize(
    ("lengths", "pays"),
    [([1, 1, 1], False), ([2, 1, 1], False), ([40, 1], True), ([300, 280], False)],
)
def test_packing_is_left_alone_where_it_saves_little(lengths, pays):
    with packed_products(real_mask(lengths), sum(lengths)) as active:
        assert (active is not None) == pays


def test_accelerators_pad():
    with packed_products(real_mask([40, 1]).to("meta"), 41) as active:
        assert active is None


def test_packed_products_of_16_bits_are_computed_in_float32(always, monkeypatch):
    monkeypatch.setattr(upcast, "_has_native", lambda dtype: False)
    used = []
    inner = upcast._linear

    def counted(inputs, *rest):
        used.append(inputs.numel() // inputs.shape[-1])
        return inner(inputs, *rest)

    monkeypatch.setattr(upcast, "_linear", counted)
    lm = hf.load((tiny_model(), tiny_tokenizer()), dtype=torch.bfloat16)
    cache, _ = lm.prefill([[1], [2], [3]])
    lm.extend(cache, [[4], [5] * upcast.MIN_VECTORS, [6]])
    assert set(used) == {upcast.MIN_VECTORS + 2}


@torch.no_grad()
def test_layers_that_read_their_neighbours_see_no_other_row(always):
    """A convolution reads padding too, which must not hold the vectors of another row."""
    torch.manual_seed(0)
    config = Lfm2Config(
        vocab_size=300, hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=1, intermediate_size=32, full_attn_idxs=[1],
    )  # fmt: skip
    lm = HFModel(Lfm2ForCausalLM(config), tiny_tokenizer())
    prompts = [list(range(5, 45)), [7, 9, 11], list(range(100, 130))]
    _, together = lm.prefill(prompts)
    for prompt, logits in zip(prompts, together, strict=True):
        _, alone = lm.prefill([prompt])
        torch.testing.assert_close(logits, alone[0], atol=1e-5, rtol=1e-4)
