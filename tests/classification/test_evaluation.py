"""Configurations compared on labelled texts."""

from __future__ import annotations

import pytest

from structgen.classification.evaluation import evaluate
from structgen.errors import OptionError, PromptTooLongError
from structgen.testing import RandomLM
from tests.classification.examples import LABELS, VOCABULARY


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


def test_texts_that_cannot_be_asked_about_are_raised_or_counted():
    lm = RandomLM(VOCABULARY, 3, context_length=300)
    good = [("a", "sales"), ("b", "billing")]
    rows = [("word " * 100, "bill"), *good]
    with pytest.raises(PromptTooLongError) as caught:
        evaluate(LABELS, rows, lm=lm)
    assert caught.value.__notes__ == ["structgen: this was text 0"]
    found = evaluate(LABELS, rows, lm=lm, on_error="return")
    (one,), (alone,) = found.configurations, evaluate(LABELS, good, lm=lm).configurations
    assert [type(one.errors[row]) for row in one.errors] == [PromptTooLongError]
    assert (one.n_texts, list(one.errors)) == (2, [0])
    assert (one.accuracy, one.confusion) == (alone.accuracy, alone.confusion)
    assert one.log_loss == pytest.approx(alone.log_loss)
    head, _, row = found.table().splitlines()
    assert dict(zip(head.split(" | "), row.split(" | "), strict=True))["failed"] == "1"
    with pytest.raises(PromptTooLongError) as caught:
        evaluate(LABELS, rows[:1], lm=lm, on_error="return")
    assert caught.value.__notes__ == ["structgen: all texts failed in the configuration 'raw'"]
    with pytest.raises(OptionError, match="on_error"):
        evaluate(LABELS, good, lm=lm, on_error="ignore")
