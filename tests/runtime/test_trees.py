"""Tree attention against reading every branch on its own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.runtime.hf import HFModel
from structgen.runtime.hf_tree import HFTree
from structgen.runtime.trees import ROOT, RowTree, open_tree
from tests.runtime.fakes import tiny_model, tiny_tokenizer

TOKENS = st.lists(st.integers(0, 250), min_size=1, max_size=7)
CLOSE = {"atol": 2e-4, "rtol": 1e-3}


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def lm(request):
    return HFModel(tiny_model(attn_implementation=request.param), tiny_tokenizer())


@st.composite
def passes(draw):
    """Some passes of (tokens, parents)."""
    found, n_nodes = [], 0
    for _ in range(draw(st.integers(1, 3))):
        tokens = draw(st.lists(st.integers(0, 250), min_size=1, max_size=5))
        parents = [draw(st.integers(ROOT, n_nodes + i - 1)) for i in range(len(tokens))]
        found.append((tokens, parents))
        n_nodes += len(tokens)
    return found


@given(st.lists(TOKENS, min_size=1, max_size=3), passes())
@settings(deadline=None, max_examples=40)
def test_a_node_is_read_as_if_its_branch_were_alone(lm, prompts, parts):
    tree = open_tree(lm, lm.prefill(prompts)[0], len(prompts))
    assert isinstance(tree, HFTree)
    rows = RowTree(lm, lm.prefill(prompts)[0], len(prompts))
    paths: list[list[int]] = []
    for tokens, parents in parts:
        logits = tree.read(tokens, parents)
        torch.testing.assert_close(logits, rows.read(tokens, parents), **CLOSE)
        for place, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
            paths.append([*([] if parent == ROOT else paths[parent]), token])
            for row, prompt in enumerate(prompts):
                alone = lm.prefill([[*prompt, *paths[-1]]])[1][0]
                torch.testing.assert_close(logits[row, place], alone, **CLOSE)
    assert tree.n_nodes == rows.n_nodes == len(paths)


def test_models_whose_attention_takes_no_mask_get_rows(lm, monkeypatch):
    monkeypatch.setattr("structgen.runtime.hf.reads_trees", lambda _: False)
    cache, _ = lm.prefill([[1, 2, 3]])
    assert isinstance(open_tree(lm, cache, 1), RowTree)
