"""Options of the classifier, and when it abstains."""

from __future__ import annotations

import pytest

from structgen.classification.classifier import Classifier
from structgen.errors import OptionError
from structgen.testing import RandomLM
from tests.classification.examples import LABELS, VOCABULARY


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, "strategy='best'"),
        ({"tokenization": "all"}, "tokenization"),
        ({"ending": "close"}, "ending"),
        ({"ending": "open", "tokenization": "any"}, "canonical"),
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
