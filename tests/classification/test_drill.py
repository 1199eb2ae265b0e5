"""Going down a hierarchy."""

from __future__ import annotations

import pytest

from structgen.classification.classifier import Classifier
from structgen.errors import OptionError
from tests.classification.examples import TREE


def test_drilling_down_multiplies_the_levels(lm):
    everything = Classifier(TREE, lm, strategy="drill", beam=100)("x")
    assert sum(one.probability for one in everything.ranking) == pytest.approx(1)
    assert {one.label for one in everything.ranking} == set(TREE.labels)
    best = Classifier(TREE, lm, strategy="drill", beam=1)("x")
    assert best.label in TREE.labels
    assert best.probability <= 1
    assert best.levels[-1].probability >= best.probability - 1e-9
    assert not best.exact


@pytest.mark.parametrize(
    "options",
    [{"prompt": str}, {"none_of_these": True}, {"length": "mean"}, {"index": True},
     {"shortlist": lambda text, k: ["x"]}, {"descriptions": True}],
)  # fmt: skip
def test_drilling_down_refuses_what_it_does_not_use(lm, options):
    with pytest.raises(OptionError, match=r"drill.*does not take"):
        Classifier(TREE, lm, strategy="drill", **options)
