"""The classifier, on models whose every probability is known."""

from __future__ import annotations

import math

import pytest

from structgen.classification.classifier import Classifier
from structgen.classification.search import Found
from structgen.testing import RandomLM
from tests.classification import brute_force
from tests.classification.examples import LABELS, TREE, VOCABULARY, alone


def test_probabilities_are_those_of_each_label_alone(lm):
    classifier = Classifier(LABELS, lm, ending="end")
    found = classifier("Twice charged!")
    each = {label: alone(lm, classifier, "Twice charged!", label) for label in LABELS}
    whole = sum(map(math.exp, each.values()))
    assert found.exact
    assert found.proven
    assert found.valid_mass == pytest.approx(whole, rel=1e-4)
    assert sum(one.probability for one in found.ranking) == pytest.approx(1, abs=1e-9)
    for one in found.ranking:
        assert one.log_prob == pytest.approx(each[one.label], abs=1e-4)
        assert one.probability == pytest.approx(math.exp(each[one.label]) / whole, abs=1e-5)
    assert found.label == max(each, key=lambda label: each[label])
    assert [one.probability for one in found.ranking] == sorted(
        (one.probability for one in found.ranking), reverse=True
    )
    assert found.bounds == (found.probability, found.probability)
    assert 0 <= found.entropy <= math.log(len(LABELS)) + 1e-9


def test_many_gives_what_each_text_gives_alone(lm):
    texts = ["one", "another", "a third, which is longer", "", "one"]
    together = Classifier(LABELS, lm).many(texts, batch_size=2)
    for text, found in zip(texts, together, strict=True):
        single = Classifier(LABELS, lm)(text)
        assert found.label == single.label
        assert found.valid_mass == pytest.approx(single.valid_mass, rel=1e-4)
    assert Classifier(LABELS, lm).many([]) == []


def test_a_search_finds_what_the_full_walk_finds(lm):
    full = Classifier(LABELS, lm)("x")
    searched = Classifier(LABELS, lm, strategy="search", top_k=2)("x")
    assert [one.label for one in searched.ranking] == [one.label for one in full.ranking[:2]]
    assert searched.proven
    low, high = searched.bounds
    assert low - 1e-9 <= full.probability <= high + 1e-9


def test_any_tokenization_is_at_least_the_canonical_one(lm):
    canonical = Classifier(LABELS, lm, ending="end")("x")
    summed = Classifier(LABELS, lm, tokenization="any", max_open_mass=0.0, max_passes=500)("x")
    assert summed.exact
    assert summed.valid_mass >= canonical.valid_mass - 1e-9


def test_levels_sum_over_what_is_below(lm):
    found = Classifier(TREE, lm)("x")
    shares = {one.label: one.probability for one in found.ranking}
    first = found.levels[0]
    below = [label for label in TREE.labels if label.startswith(first.path[0])]
    assert first.probability == pytest.approx(sum(shares[label] for label in below))
    assert found.levels[-1].path == TREE.path(found.ranking[0].label)
    assert Classifier(LABELS, lm)("x").levels == ()


def test_the_default_model_agrees_with_scoring_every_label(smollm2):
    """Tree attention, a shared prompt and a batch against one row for each label."""
    labels = ["card_arrival", "card_linking", "card", "lost_or_stolen_card", "exchange_rate"]
    texts = ["Where is my card?", "What do I get for 100 dollars in euro, please tell me?"]
    assert smollm2.vocabulary.encode is not None
    classifier = Classifier(labels, smollm2, ending="end")
    for text, found in zip(texts, classifier.many(texts), strict=True):
        ids = smollm2.encode_prompt(classifier.render(text))
        each = {
            label: brute_force.log_prob(smollm2, ids, smollm2.vocabulary.encode(label), end=True)
            for label in labels
        }
        whole = math.fsum(map(math.exp, each.values()))
        for one in found.ranking:
            assert one.probability == pytest.approx(math.exp(each[one.label]) / whole, abs=1e-4)
        assert sum(one.probability for one in found.ranking) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("options", [{"strategy": "search"}, {"tokenization": "any"}])
def test_labels_of_next_to_no_probability_can_be_searched(options):
    class Unwilling(RandomLM):
        def logits(self, token_ids):
            logits = super().logits(token_ids)
            if bytes(t for t in token_ids if t < 256).endswith(b":"):
                logits[:] = 0.0
                assert VOCABULARY.encode is not None
                for label in LABELS:
                    logits[VOCABULARY.encode(label)[0]] = -1e4
                    logits[ord(label[0])] = -1e4
            return logits

    lm = Unwilling(VOCABULARY, 3)
    found = Classifier(LABELS, lm, max_passes=100, **options)("x")
    assert found.proven
    assert not math.isnan(found.probability)
    if "strategy" in options:
        assert found.label == Classifier(LABELS, lm)("x").label
    low, high = found.bounds
    assert low <= high


def test_the_sum_over_segmentations_is_proven_by_what_is_open():
    found = Found({0: math.log(0.3), 1: math.log(0.29)}, log_open=math.log(0.05), summed=True)
    assert not found.proven(1)
    found.log_open = math.log(0.005)
    assert found.proven(1)
