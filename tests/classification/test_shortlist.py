"""Narrowing many labels to a few."""

from __future__ import annotations

import pytest

from structgen.classification.classifier import Classifier
from structgen.classification.shortlist import BM25, Nearest
from structgen.errors import OptionError, UsageError
from structgen.taxonomy import Taxonomy
from tests.classification.examples import LABELS


def test_a_shortlist_narrows_the_labels_and_has_a_way_out(lm):
    def two(text: str, k: int) -> list[str]:
        return ["sales", "billing"][:k]

    found = Classifier(LABELS, lm, shortlist=two, shortlist_size=2)("x")
    assert {one.label for one in found.ranking} == {"sales", "billing", "none of these"}
    found = Classifier(LABELS, lm, shortlist=two, none_of_these=False)("x")
    assert {one.label for one in found.ranking} == {"sales", "billing"}
    with pytest.raises(UsageError, match="no labels"):
        Classifier(LABELS, lm, shortlist=lambda text, k: [])("x")
    with pytest.raises(OptionError, match="1 names"):
        Classifier(LABELS, lm, shortlist=lambda text, k: ["what?"])("x")


def test_nearest_finds_by_the_angle():
    vectors = {"billing": [1, 0], "sales": [0, 1], "technical": [1, 1], "bill": [-1, 0]}

    def embed(texts: list[str]) -> list[list[float]]:
        return [vectors.get(text, [3, 0.1]) for text in texts]

    assert Nearest(Taxonomy(LABELS), embed)("q", 2) == ["billing", "technical"]
    with pytest.raises(OptionError, match="shape"):
        Nearest(Taxonomy(LABELS), lambda texts: [0.0])


def test_bm25_finds_by_words():
    pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")
    found = BM25(Taxonomy(["Dog Leashes", "Cat Food", "Garden Hoses"]))("a leash for dog walks", 3)
    assert found == ["Dog Leashes"]
    assert BM25(Taxonomy(["C", "R", "Go"]))("written in C", 2)[0] == "C"
    with pytest.raises(OptionError, match="no words"):
        BM25(Taxonomy(["?", "!"]))


def test_bm25_takes_names_apart():
    pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")
    find = BM25(Taxonomy(["card_arrival", "exchangeRate", "ATM fee", "top_up_by_card_charge"]))
    assert find("When does my card come?", 4) == ["card_arrival", "top_up_by_card_charge"]
    assert find("What is the rate?", 4) == ["exchangeRate"]
    assert find("fees at an atm", 4) == ["ATM fee"]
