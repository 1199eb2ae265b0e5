"""Labels and a vocabulary that the tests of classification share."""

from __future__ import annotations

from structgen.classification.classifier import Classifier
from structgen.taxonomy import Taxonomy
from structgen.testing import RandomLM, small_vocabulary
from tests.classification import brute_force

VOCABULARY = small_vocabulary(["bill", "ing", "sales", "yes", "no", "tech", "nical", " > "])
LABELS = ["billing", "sales", "technical", "bill"]
TREE = Taxonomy(["pets > cats", "pets > dogs", "pets > dogs > small", "cars > old", "cars > new"])


def alone(lm: RandomLM, classifier: Classifier, text: str, label: str, end: bool = True) -> float:
    """The log-probability of one label, which is read on its own."""
    ids = lm.encode_prompt(classifier.render(text))
    assert VOCABULARY.encode is not None
    return brute_force.log_prob(lm, ids, VOCABULARY.encode(label), end)
