"""What labels are divided by."""

from __future__ import annotations

import numpy as np
import pytest

from structgen.classification.classifier import Classifier
from structgen.errors import OptionError
from structgen.testing import RandomLM
from tests.classification.examples import LABELS, VOCABULARY, alone


def test_length_and_calibration_change_the_scores_as_they_say(lm):
    classifier = Classifier(LABELS, lm, length="mean", ending="end")
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


def test_a_text_alone_is_not_compared_with_itself(lm):
    classifier = Classifier(LABELS, lm, calibrate="batch")
    with pytest.raises(OptionError, match="compares texts with each other"):
        classifier("a")
    with pytest.raises(OptionError, match="compares texts with each other"):
        classifier.many(["a"], on_error="return")
    assert classifier.many([]) == []


@pytest.mark.parametrize("calibrate", ["content_free", "pmi"])
def test_a_text_that_says_nothing_is_undecided_after_calibration(lm, calibrate):
    found = Classifier(LABELS, lm, calibrate=calibrate)("My card")
    assert sum(one.probability for one in found.ranking) == pytest.approx(1)
    assert found.exact


@pytest.mark.parametrize(
    "calibrate", [np.array(["a", "b"]), ["\ud800"], "foo", ["a", 3], [], b"ab", 5]
)
def test_what_says_nothing_is_texts(lm, calibrate):
    with pytest.raises(OptionError, match=r"^calibrate="):
        Classifier(LABELS, lm, calibrate=calibrate)


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
