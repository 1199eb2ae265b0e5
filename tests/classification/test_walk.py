"""Label probabilities against scoring every label on its own."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.classification.label_trie import label_trie, written_behind
from structgen.classification.search import best_labels
from structgen.classification.segmentations import sum_segmentations
from structgen.classification.walk import walk
from structgen.compiler import compile  # noqa: A004
from structgen.errors import ModelError, OptionError, VocabularyError
from structgen.runtime.trees import ROOT, RowTree, TreeSource
from structgen.schema.roots import OneOf
from structgen.testing import RandomLM, byte_vocabulary, small_vocabulary
from structgen.tokens.vocabulary import Vocabulary
from tests.classification import brute_force
from tests.strategies import examples

VOCABULARY = small_vocabulary(["ab", "abc", "ba", "cab", "bb"])
WORDS = st.text("abc", min_size=1, max_size=5)
LABELS = st.lists(WORDS, min_size=1, max_size=8, unique=True)
PROMPT = [7, 8, 9]


def opened(lm, prompts, max_pass_tokens=4096):
    cache, logits = lm.prefill([list(ids) for ids in prompts])
    return TreeSource(lm, cache, list(map(len, prompts)), max_pass_tokens), logits


def canonical(label: str) -> list[int]:
    assert VOCABULARY.encode is not None
    return VOCABULARY.encode(label)


@examples(60)
@given(LABELS, st.integers(0, 99), st.sampled_from(["end", "open"]), st.integers(1, 60))
def test_the_walk_gives_what_each_label_gives_alone(labels, seed, ending, most):
    lm = RandomLM(VOCABULARY, seed)
    ids = [canonical(label) for label in labels]
    prompts = [PROMPT, [1, 2]]
    trees, first = opened(lm, prompts, most)
    found = walk(trees, first, label_trie(ids), VOCABULARY.eos_token_ids, ending)
    for row, prompt in enumerate(prompts):
        for index, one in enumerate(ids):
            if ending == "end":
                expected = brute_force.log_prob(lm, prompt, one, end=True)
            else:
                expected = brute_force.open_log_prob(lm, prompt, one, ids)
            assert found.log_probs[row, index] == pytest.approx(expected, abs=1e-4)
    assert (np.exp(found.log_probs).sum(1) <= 1 + 1e-6).all()


@examples(60)
@given(
    LABELS,
    st.integers(0, 99),
    st.sampled_from(["end", "open"]),
    st.integers(1, 4),
    st.sampled_from([1, 2, 3, 5, 100]),
)
def test_the_search_finds_the_best_labels_and_proves_it(labels, seed, ending, k, most):
    lm = RandomLM(VOCABULARY, seed)
    trie = label_trie([canonical(label) for label in labels])
    trees, first = opened(lm, [PROMPT])
    exact = walk(trees, first, trie, VOCABULARY.eos_token_ids, ending).log_probs[0]
    trees, first = opened(lm, [PROMPT])
    lm.chunks.clear()
    found = best_labels(
        trees.open(), first, trie, VOCABULARY.eos_token_ids, ending, k=k, max_nodes=most
    )
    assert found.forward_passes == len(lm.chunks)
    assert all(len(chunk) <= most for chunk in lm.chunks)
    assert found.proven(k)
    best = sorted(exact, reverse=True)[:k]
    assert [exact[label] for label in found.ranked()[:k]] == pytest.approx(best, abs=1e-4)
    for label, log_prob in found.log_probs.items():
        assert log_prob == pytest.approx(exact[label], abs=1e-4)
    missing = [p for label, p in enumerate(exact) if label not in found.log_probs]
    assert np.exp(missing).sum() <= found.open_mass + 1e-6


class Narrow(RandomLM):
    """Reads trees by itself, and tells how many nodes each pass had."""

    def __init__(self) -> None:
        super().__init__(VOCABULARY, 5)
        self.passes: list[int] = []

    def open_tree(self, cache):
        lm = self

        class Counted(RowTree):
            def read(self, token_ids, parents):
                lm.passes.append(len(token_ids))
                return super().read(token_ids, parents)

        return Counted(self, cache, [len(row) for row in cache.rows])


@pytest.mark.parametrize("most", [1, 7, 16, 50, 4096])
def test_a_pass_holds_no_more_nodes_than_it_may(most):
    ids = [canonical(a + b + c + d) for a in "abc" for b in "abc" for c in "abc" for d in "ab"]
    random.Random(1).shuffle(ids)
    trie, lm = label_trie(ids), Narrow()
    whole = walk(*opened(lm, [PROMPT, PROMPT]), trie, VOCABULARY.eos_token_ids, "end")
    lm.passes.clear()
    trees, first = opened(lm, [PROMPT, PROMPT], most)
    found = walk(trees, first, trie, VOCABULARY.eos_token_ids, "end")
    np.testing.assert_allclose(found.log_probs, whole.log_probs, atol=1e-5)
    longest = int(trie.depths.max()) + 1
    assert max(lm.passes) <= max(most // 2, longest)  # of two rows; one way has to fit
    assert found.forward_passes == len(lm.passes)
    if most // 2 > longest:
        # Only the way to where a pass begins is read again.
        assert sum(lm.passes) <= len(trie) + (len(lm.passes) - 1) * (longest - 1)


def test_a_search_that_runs_out_of_passes_says_so():
    lm = RandomLM(VOCABULARY, 1)
    trie = label_trie([canonical(a + b + c) for a in "abc" for b in "abc" for c in "ab"])
    trees, first = opened(lm, [PROMPT])
    found = best_labels(
        trees.open(), first, trie, VOCABULARY.eos_token_ids, "end", k=3, max_passes=1
    )
    assert found.forward_passes == 1
    assert not found.proven(3)
    assert found.open_mass > 0


@examples(25)
@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=4, unique=True),
       st.integers(0, 99))  # fmt: skip
def test_all_segmentations_are_summed(labels, seed):
    lm = RandomLM(VOCABULARY, seed)
    session = compile(OneOf(labels), VOCABULARY).session()
    trees, first = opened(lm, [PROMPT])
    found = sum_segmentations(
        trees.open(), first, session, VOCABULARY, {text: i for i, text in enumerate(labels)},
        k=1, max_passes=500, max_open_mass=0.0,
    )  # fmt: skip
    assert found.open_mass == 0.0
    for index, label in enumerate(labels):
        expected = brute_force.summed(lm, PROMPT, label.encode())
        assert found.log_probs[index] == pytest.approx(expected, abs=1e-4)


@examples(25)
@given(st.lists(st.text("abc", min_size=1, max_size=5), min_size=2, max_size=5, unique=True),
       st.integers(0, 99), st.integers(1, 3))  # fmt: skip
def test_what_is_not_summed_is_a_bound(labels, seed, max_passes):
    lm = RandomLM(VOCABULARY, seed)
    session = compile(OneOf(labels), VOCABULARY).session()
    trees, first = opened(lm, [PROMPT])
    found = sum_segmentations(
        trees.open(), first, session, VOCABULARY, {text: i for i, text in enumerate(labels)},
        k=1, max_passes=max_passes, max_open_mass=1.0,
    )  # fmt: skip
    missing = 0.0
    for index, label in enumerate(labels):
        exact = np.exp(brute_force.summed(lm, PROMPT, label.encode()))
        low = np.exp(found.log_probs.get(index, -np.inf))
        assert low <= exact + 1e-6
        missing += exact - low
    assert missing <= found.open_mass + 1e-6


def test_a_model_without_finite_logits_is_an_error():
    class Broken(RandomLM):
        def logits(self, token_ids):
            return super().logits(token_ids) * float("nan")

    trees, first = opened(Broken(VOCABULARY), [PROMPT])
    with pytest.raises(ModelError, match="finite"):
        walk(trees, first, label_trie([[97]]), VOCABULARY.eos_token_ids, "end")


def test_a_node_cannot_follow_a_later_one():
    lm = RandomLM(VOCABULARY)
    cache, _ = lm.prefill([PROMPT])
    with pytest.raises(OptionError, match="node 0"):
        RowTree(lm, cache, [3]).read([1, 2], [1, ROOT])


@examples(40)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=12,
                unique_by=tuple))  # fmt: skip
def test_the_trie_holds_each_beginning_once(sequences):
    trie = label_trie(sequences)
    beginnings = {tuple(ids[:n]) for ids in sequences for n in range(1, len(ids) + 1)}
    paths = []
    for node in range(len(trie)):
        assert trie.parents[node] < node
        above = int(trie.parents[node])
        paths.append((*(paths[above] if above != ROOT else ()), int(trie.token_ids[node])))
        assert node in trie.children_of(above)
    assert set(paths) == beginnings
    assert len(paths) == len(beginnings)
    assert [paths[node] for node in trie.label_nodes] == [tuple(ids) for ids in sequences]


def test_labels_are_written_as_a_continuation(real_vocabulary):
    """Behind "Category: " the space belongs to the label's first token, as in running text."""
    assert real_vocabulary.encode is not None
    labels = ("billing", "sales")
    alone = written_behind(real_vocabulary, b"", b"", labels)
    behind = written_behind(real_vocabulary, b":", b" ", labels)
    first = [real_vocabulary.bytes_of(int(trie.token_ids[0])) for trie in (alone, behind)]
    assert first[0] is not None
    assert not first[0].startswith(b" ")
    assert first[1] is not None
    assert first[1].startswith(b" ")


def test_unwritable_labels_are_named():
    no_c = Vocabulary.from_bytes([b"a", b"b"], eos_token_ids=2, encode=lambda text: [0] * len(text))
    with pytest.raises(VocabularyError, match=r"2 of 3 labels.*'ab'"):
        written_behind(no_c, b"", b"", ("aa", "ab", "ba"))
    with pytest.raises(VocabularyError, match="no encoder"):
        written_behind(Vocabulary.from_bytes([b"a"], eos_token_ids=1), b"", b"", ("a",))
    assert len(written_behind(byte_vocabulary(), b"", b"", ("a", "b"))) == 2
