"""Several labels for one text."""

from __future__ import annotations

import math

import pytest

from structgen.classification.multi import MultiLabelClassifier
from structgen.errors import OptionError
from tests.classification import brute_force
from tests.classification.examples import LABELS, VOCABULARY


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


def test_questions_about_one_text_share_it(lm):
    classifier = MultiLabelClassifier(LABELS, lm)
    classifier("a first text")
    lm.chunks.clear()
    classifier("another text, which is read once")
    shared, *rest = lm.chunks
    assert len(shared) == 1
    assert max(map(len, rest[0])) < len(shared[0])
