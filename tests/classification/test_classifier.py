"""The classifier and its options, on models whose every probability is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from structgen.classification.classifier import Classifier
from structgen.classification.evaluation import evaluate
from structgen.classification.fields import classify_fields
from structgen.classification.multi import MultiLabelClassifier
from structgen.classification.search import Found
from structgen.classification.shortlist import Nearest
from structgen.errors import InvalidTextError, OptionError, PromptTooLongError
from structgen.generator import Generator
from structgen.taxonomy import Taxonomy
from structgen.testing import RandomLM, small_vocabulary
from tests.classification import brute_force

VOCABULARY = small_vocabulary(["bill", "ing", "sales", "yes", "no", "tech", "nical", " > "])
LABELS = ["billing", "sales", "technical", "bill"]
TREE = Taxonomy(["pets > cats", "pets > dogs", "pets > dogs > small", "cars > old", "cars > new"])


@pytest.fixture
def lm() -> RandomLM:
    return RandomLM(VOCABULARY, 3)


def alone(lm: RandomLM, classifier: Classifier, text: str, label: str, end: bool = True) -> float:
    ids = lm.encode_prompt(classifier.render(text))
    assert VOCABULARY.encode is not None
    return brute_force.log_prob(lm, ids, VOCABULARY.encode(label), end)


def test_probabilities_are_those_of_each_label_alone(lm):
    classifier = Classifier(LABELS, lm)
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
    canonical = Classifier(LABELS, lm)("x")
    summed = Classifier(LABELS, lm, tokenization="any", max_open_mass=0.0, max_passes=500)("x")
    assert summed.exact
    assert summed.valid_mass >= canonical.valid_mass - 1e-9


def test_length_and_calibration_change_the_scores_as_they_say(lm):
    classifier = Classifier(LABELS, lm, length="mean")
    assert VOCABULARY.encode is not None
    found = classifier("x")
    each = {t: alone(lm, classifier, "x", t) / len(VOCABULARY.encode(t)) for t in LABELS}
    assert [one.label for one in found.ranking] == sorted(each, key=lambda t: -each[t])

    plain = {one.label: one.probability for one in Classifier(LABELS, lm)("x").ranking}
    prior = {one.label: one.probability for one in Classifier(LABELS, lm)("nothing").ranking}
    shares = {label: plain[label] / prior[label] for label in LABELS}
    calibrated = Classifier(LABELS, lm, calibrate=["nothing"])("x")
    for one in calibrated.ranking:
        assert one.probability == pytest.approx(shares[one.label] / sum(shares.values()), abs=1e-6)


def test_batch_calibration_takes_the_mean_of_all_texts_away(lm):
    texts = ["a", "b", "c"]
    plain = Classifier(LABELS, lm).many(texts)
    shares = [{one.label: one.probability for one in found.ranking} for found in plain]
    mean = {label: np.mean([row[label] for row in shares]) for label in LABELS}
    for found, row in zip(
        Classifier(LABELS, lm, calibrate="batch").many(texts, batch_size=2), shares, strict=True
    ):
        whole = sum(row[label] / mean[label] for label in LABELS)
        for one in found.ranking:
            assert one.probability == pytest.approx(row[one.label] / mean[one.label] / whole)


@pytest.mark.parametrize("calibrate", ["content_free", "pmi"])
def test_a_text_that_says_nothing_is_undecided_after_calibration(lm, calibrate):
    found = Classifier(LABELS, lm, calibrate=calibrate)("My card")
    assert sum(one.probability for one in found.ranking) == pytest.approx(1)
    assert found.exact


def test_levels_sum_over_what_is_below(lm):
    found = Classifier(TREE, lm)("x")
    shares = {one.label: one.probability for one in found.ranking}
    first = found.levels[0]
    below = [label for label in TREE.labels if label.startswith(first.path[0])]
    assert first.probability == pytest.approx(sum(shares[label] for label in below))
    assert found.levels[-1].path == TREE.path(found.ranking[0].label)
    assert Classifier(LABELS, lm)("x").levels == ()


def test_drilling_down_multiplies_the_levels(lm):
    everything = Classifier(TREE, lm, strategy="drill", beam=100)("x")
    assert sum(one.probability for one in everything.ranking) == pytest.approx(1)
    assert {one.label for one in everything.ranking} == set(TREE.labels)
    best = Classifier(TREE, lm, strategy="drill", beam=1)("x")
    assert best.label in TREE.labels
    assert best.probability <= 1
    assert best.levels[-1].probability >= best.probability - 1e-9
    assert not best.exact


def test_a_shortlist_narrows_the_labels_and_has_a_way_out(lm):
    def two(text: str, k: int) -> list[str]:
        return ["sales", "billing"][:k]

    found = Classifier(LABELS, lm, shortlist=two, shortlist_size=2)("x")
    assert {one.label for one in found.ranking} == {"sales", "billing", "none of these"}
    found = Classifier(LABELS, lm, shortlist=two, none_of_these=False)("x")
    assert {one.label for one in found.ranking} == {"sales", "billing"}
    with pytest.raises(OptionError, match="no labels"):
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
    from structgen.classification.shortlist import BM25

    found = BM25(Taxonomy(["Dog Leashes", "Cat Food", "Garden Hoses"]))("a leash for dog walks", 3)
    assert found == ["Dog Leashes"]
    assert BM25(Taxonomy(["C", "R", "Go"]))("written in C", 2)[0] == "C"
    with pytest.raises(OptionError, match="no words"):
        BM25(Taxonomy(["?", "!"]))


def test_abstention_says_why(lm):
    sure = Classifier(LABELS, lm)("x")
    assert sure.reason is None
    unsure = Classifier(LABELS, lm, min_probability=1.0)("x")
    assert (unsure.label, unsure.reason) == (None, "min_probability")
    assert unsure.ranking == sure.ranking
    foreign = Classifier(LABELS, lm, min_valid_mass=0.999)("x")
    assert (foreign.label, foreign.reason) == (None, "min_valid_mass")

    class WantsNone(RandomLM):
        def logits(self, token_ids):
            logits = super().logits(token_ids)
            behind = bytes(t for t in token_ids if t < 256).rpartition(b":")[2]
            logits[ord("z") if len(behind) < 3 else VOCABULARY.eos_token_ids[0]] += 50
            return logits

    found = Classifier(LABELS, WantsNone(VOCABULARY), none_of_these="zzz")("x")
    assert (found.label, found.reason) == (None, "none_of_these")


def test_numbers_can_stand_for_labels(lm):
    classifier = Classifier(LABELS, lm, index=True)
    prompt = classifier.render("x")
    assert "1. billing\n2. sales" in prompt[0]["content"]
    each = [alone(lm, classifier, "x", str(number)) for number in range(1, 5)]
    assert classifier("x").label == LABELS[int(np.argmax(each))]


def test_the_prompt_shows_what_it_was_told(lm):
    taxonomy = Taxonomy(LABELS, descriptions={"billing": "money"})
    classifier = Classifier(
        taxonomy, lm, descriptions=True, examples=[("Buy?", "sales")], instructions="Which team?"
    )
    messages = classifier.render("Hello")
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert "- billing: money" in messages[0]["content"]
    assert messages[0]["content"].startswith("Which team?")
    assert messages[1]["content"] == "sales"
    assert "Hello" in messages[2]["content"]
    hidden = Classifier(LABELS, lm, list_labels=False).render("Hello")
    assert "billing" not in hidden[0]["content"]
    assert Classifier(LABELS, lm, prompt=lambda text: f"!{text}").render("a") == "!a"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, "strategy='best'"),
        ({"tokenization": "all"}, "tokenization"),
        ({"ending": None}, "ending"),
        ({"length": "max"}, "length"),
        ({"calibrate": "yes"}, "calibrate"),
        ({"calibrate": []}, "calibrate"),
        ({"top_k": 0}, "top_k"),
        ({"max_passes": True}, "max_passes"),
        ({"min_probability": 2}, "min_probability"),
        ({"min_valid_mass": float("nan")}, "min_valid_mass"),
        ({"beam": 0}, "beam"),
        ({"shortlist": "bm26"}, "shortlist"),
        ({"none_of_these": "sales"}, "none_of_these"),
        ({"none_of_these": "  "}, "none_of_these"),
        ({"examples": [("a", "b")]}, "examples"),
        ({"index": True, "list_labels": False}, "index"),
        ({"strategy": "search", "calibrate": "pmi"}, "calibrate needs"),
        ({"strategy": "search", "length": "mean"}, "length='mean'"),
        ({"strategy": "full", "tokenization": "any"}, "tokenization='any'"),
        ({"calibrate": "batch", "shortlist": lambda text, k: []}, "batch"),
    ],
)
def test_wrong_options_are_named(lm, options, message):
    with pytest.raises(OptionError, match=message):
        Classifier(LABELS, lm, **options)


def test_wrong_texts_are_named(lm):
    classifier = Classifier(LABELS, lm)
    with pytest.raises(InvalidTextError, match="text 1 is int"):
        classifier.many(["a", 1])
    with pytest.raises(InvalidTextError, match="not valid Unicode"):
        classifier("\ud800")
    with pytest.raises(OptionError, match="list of texts"):
        classifier.many("abc")
    with pytest.raises(OptionError, match="drill"):
        Classifier(LABELS, lm, strategy="drill")("x")
    with pytest.raises(OptionError, match="lm must be"):
        Classifier(LABELS, "gpt2")


def test_a_prompt_that_is_too_long_is_refused():
    lm = RandomLM(VOCABULARY, context_length=300)
    with pytest.raises(PromptTooLongError):
        Classifier(LABELS, lm)("word " * 100)


@pytest.mark.parametrize("method", ["independent", "generated"])
def test_several_labels(lm, method):
    found = MultiLabelClassifier(LABELS, lm, method=method).many(["a", "b", "c"])
    for one in found:
        assert len(set(one.labels)) == len(one.labels)
        assert set(one.labels) <= set(LABELS)
        assert len(one.answers) == (len(LABELS) if method == "independent" else 0)
    if method == "independent":
        everything = MultiLabelClassifier(LABELS, lm, threshold=0.0)("a")
        assert everything.labels == tuple(LABELS)
        each = dict.fromkeys(LABELS, 1.0) | {"sales": 0.0}
        assert "sales" in MultiLabelClassifier(LABELS, lm, threshold=each)("a").labels


def test_yes_is_weighed_against_no(lm):
    classifier = MultiLabelClassifier(LABELS, lm)
    (first, *_) = classifier("a").answers
    ids = lm.encode_prompt(classifier._prompt("a", LABELS[0]))
    assert VOCABULARY.encode is not None
    yes, no = (
        math.exp(brute_force.log_prob(lm, ids, VOCABULARY.encode(word), end=False))
        for word in ("yes", "no")
    )
    assert first.probability == pytest.approx(yes / (yes + no), rel=1e-4)
    calibrated = MultiLabelClassifier(LABELS, lm, calibrate=True)("a")
    assert all(0 <= answer.probability <= 1 for answer in calibrated.answers)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "both"}, "method"), ({"threshold": 2}, "threshold"),
     ({"threshold": {"a": 1}}, "threshold"), ({"question": "?"}, "label")],
)  # fmt: skip
def test_wrong_options_of_several_labels(lm, options, message):
    with pytest.raises(OptionError, match=message):
        MultiLabelClassifier(LABELS, lm, **options)


def test_the_fields_of_a_value_have_distributions(lm):
    from typing import Literal

    from pydantic import BaseModel

    class Triage(BaseModel):
        team: Literal["billing", "sales", "bill"]
        urgent: bool
        level: Literal[1, 12, 2]

    found = classify_fields(Generator(Triage, lm), "Help!")
    assert set(found.fields) == {"$.team", "$.urgent", "$.level"}
    for one in found.fields.values():
        assert one.exact
        assert sum(label.probability for label in one.ranking) == pytest.approx(1)
    assert {one.label for one in found.fields["$.team"].ranking} == {
        '"billing"', '"sales"', '"bill"',
    }  # fmt: skip


def test_evaluating_counts_and_compares(lm):
    rows = [("a", "sales"), ("b", "billing"), {"text": "c", "label": "bill"}]
    found = evaluate(LABELS, rows, {"raw": {}, "careful": {"min_probability": 1.0}}, lm=lm)
    raw, careful = found.configurations
    right = [r.label == e for r, e in zip(raw.results, ["sales", "billing", "bill"], strict=True)]
    assert raw.accuracy == pytest.approx(sum(right) / 3)
    assert raw.n_texts == 3
    assert sum(raw.confusion.values()) == 3
    assert 0 <= raw.calibration_error <= 1
    assert (careful.accuracy, careful.abstained) == (0, 1)
    assert "| raw |" in str(found)
    assert found.best is raw or raw.accuracy == 0
    with pytest.raises(OptionError, match="row 0"):
        evaluate(LABELS, [("a", "unknown")], lm=lm)
    with pytest.raises(OptionError, match="no rows"):
        evaluate(LABELS, [], lm=lm)


def test_the_default_model_agrees_with_scoring_every_label(smollm2):
    """Tree attention, a shared prompt and a batch against one row for each label."""
    labels = ["card_arrival", "card_linking", "card", "lost_or_stolen_card", "exchange_rate"]
    texts = ["Where is my card?", "What do I get for 100 dollars in euro, please tell me?"]
    assert smollm2.vocabulary.encode is not None
    classifier = Classifier(labels, smollm2)
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


class Recording(RandomLM):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(VOCABULARY, 3)
        self.asked: list[str] = []

    def encode_prompt(self, prompt):
        ids = super().encode_prompt(prompt)
        self.asked.append(VOCABULARY.decode(ids).decode())
        return ids


def test_a_prior_is_asked_for_by_the_same_prompt():
    lm = Recording()
    Classifier(LABELS, lm, prompt=lambda text: f"<{text}>", calibrate="content_free")("hello")
    assert lm.asked == ["<hello>", "<N/A>", "<>", "<[MASK]>"]
    with pytest.raises(OptionError, match="pmi"):
        Classifier(LABELS, lm, prompt=lambda text: text, calibrate="pmi")


@pytest.mark.parametrize(
    "options",
    [{"prompt": str}, {"none_of_these": True}, {"length": "mean"}, {"index": True},
     {"shortlist": lambda text, k: ["x"]}, {"descriptions": True}],
)  # fmt: skip
def test_drilling_down_refuses_what_it_does_not_use(lm, options):
    with pytest.raises(OptionError, match=r"drill.*does not take"):
        Classifier(TREE, lm, strategy="drill", **options)


def test_codes_are_shown_beside_what_they_stand_for(lm):
    codes = {"cholera": "A00", "measles": "B05"}
    taxonomy = Taxonomy(list(codes), codes=codes, written="code")
    assert "- A00: cholera" in Classifier(taxonomy, lm).render("x")[0]["content"]
    assert Classifier(taxonomy, lm)("x").label in codes
    for method in ("independent", "generated"):
        assert set(MultiLabelClassifier(taxonomy, lm, method=method)("x").labels) <= set(codes)
    with pytest.raises(OptionError, match="none_of_these"):
        Classifier(taxonomy, lm, none_of_these="A00")


def test_examples_that_a_shortlist_has_left_out_are_not_shown(lm):
    classifier = Classifier(
        LABELS, lm, shortlist=lambda text, k: ["sales"], examples=[("a", "billing")]
    )
    assert len(classifier.render("x")) == 1
    assert classifier("x").ranking


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


def test_questions_about_one_text_share_it(lm):
    classifier = MultiLabelClassifier(LABELS, lm)
    classifier("a first text")
    lm.chunks.clear()
    classifier("another text, which is read once")
    shared, *rest = lm.chunks
    assert len(shared) == 1
    assert max(map(len, rest[0])) < len(shared[0])


def test_the_sum_over_segmentations_is_proven_by_what_is_open():
    found = Found({0: math.log(0.3), 1: math.log(0.29)}, log_open=math.log(0.05), summed=True)
    assert not found.proven(1)
    found.log_open = math.log(0.005)
    assert found.proven(1)
