"""What a model is asked."""

from __future__ import annotations

import numpy as np
import pytest

from structgen.classification.classifier import Classifier
from structgen.classification.multi import MultiLabelClassifier
from structgen.errors import OptionError
from structgen.taxonomy import Taxonomy
from tests.classification.examples import LABELS, alone


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
