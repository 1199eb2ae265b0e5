"""Tree attention against reading every branch on its own."""

from __future__ import annotations

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.runtime.hf import HFModel
from structgen.runtime.hf_tree import HFTree
from structgen.runtime.trees import ROOT, RowTree, TreeSource
from structgen.testing import RandomLM, small_vocabulary
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


@given(st.lists(TOKENS, min_size=1, max_size=3), passes(), st.sampled_from([1, 30, 4096]))
@settings(deadline=None, max_examples=40)
def test_a_node_is_read_as_if_its_branch_were_alone(lm, prompts, parts, most):
    lengths = list(map(len, prompts))
    tree = TreeSource(lm, lm.prefill(prompts)[0], lengths).open()
    assert isinstance(tree, HFTree)
    rows = RowTree(lm, lm.prefill(prompts)[0], lengths, most)
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
    assert tree.forward_passes == len(parts) <= rows.forward_passes


def test_models_whose_attention_takes_no_mask_get_rows(lm, monkeypatch):
    monkeypatch.setattr("structgen.runtime.hf.reads_trees", lambda _: False)
    cache, _ = lm.prefill([[1, 2, 3]])
    assert isinstance(TreeSource(lm, cache, [3]).open(), RowTree)


def test_a_tree_that_is_not_the_last_leaves_the_prompts_as_they_are(lm):
    trees = TreeSource(lm, lm.prefill([[1, 2, 3], [4]])[0], [3, 1])
    first = trees.open(last=False).read([5, 6], [ROOT, 0])
    torch.testing.assert_close(trees.open().read([5, 6], [ROOT, 0]), first)


@pytest.mark.parametrize("most", [1, 6, 20, 1000])
def test_rows_are_read_some_at_a_time(most):
    lm = RandomLM(small_vocabulary([]), 2)
    prompts = [[1, 2, 3], [4, 5]]
    token_ids, parents = [7, 8, 9, 7], [ROOT, 0, 1, ROOT]
    rows = RowTree(lm, lm.prefill(prompts)[0], [3, 2], most)
    lm.chunks.clear()
    logits = rows.read(token_ids, parents)
    assert rows.forward_passes == len(lm.chunks)
    assert all(len(chunk) * (3 + 3) <= max(most, 6) for chunk in lm.chunks)
    for row, prompt in enumerate(prompts):
        for place, path in enumerate([[7], [7, 8], [7, 8, 9], [7]]):
            assert torch.equal(logits[row, place], lm.logits([*prompt, *path]))


WINDOW = 5
SIZES = {
    "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": 255,
    "pad_token_id": None, "initializer_range": 0.5, "sliding_window": WINDOW,
}  # fmt: skip


def sliding(kind: str, attention: str) -> HFModel:
    """A tiny model that sees the last few tokens only, in all of its layers or in some."""
    more: dict[str, object] = {}
    if kind == "qwen2":
        more |= {"use_sliding_window": True, "max_window_layers": 1}
    if kind == "gemma3_text":
        more |= {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
    config = transformers.AutoConfig.for_model(kind, **SIZES, **more)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return HFModel(model, tiny_tokenizer())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", ["mistral", "qwen2", "gemma3_text"])
def test_a_sliding_window_is_kept_to(kind, attention):
    """A mask of ours would let a node see more than the window: such models get rows."""
    lm = sliding(kind, attention)
    prompt = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    assert len(prompt) > WINDOW
    token_ids, parents = [10, 11, 12, 13, 14], [ROOT, 0, 1, ROOT, 3]
    paths = [[10], [10, 11], [10, 11, 12], [13], [13, 14]]
    trees = TreeSource(lm, lm.prefill([prompt])[0], [len(prompt)])
    for last in (False, True):
        tree = trees.open(last=last)
        assert isinstance(tree, RowTree)
        logits = torch.cat(
            [tree.read(token_ids[:2], parents[:2]), tree.read(token_ids[2:], parents[2:])], dim=1
        )
        for place, path in enumerate(paths):
            alone = lm.model(torch.tensor([[*prompt, *path]])).logits[0, -1]
            torch.testing.assert_close(logits[0, place], alone, **CLOSE)


def test_a_window_that_is_not_used_is_none():
    config = transformers.AutoConfig.for_model("qwen2", **{**SIZES, "use_sliding_window": False})
    model = transformers.AutoModelForCausalLM.from_config(config)
    lm = HFModel(model, tiny_tokenizer())
    cache, _ = lm.prefill([[1, 2, 3]])
    assert isinstance(TreeSource(lm, cache, [3]).open(), HFTree)
