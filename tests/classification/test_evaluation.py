"""Configurations compared on labelled texts."""

from __future__ import annotations

import pytest

from structgen.classification.evaluation import evaluate
from structgen.errors import OptionError
from tests.classification.examples import LABELS


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
