"""How good classifications are: accuracy, F1, calibration, confusion. N texts, L labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from structgen.classification.results import Classification

BINS = 10


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The texts whose first label had a probability in one range.

    Example: `ReliabilityBin(low=0.9, high=1.0, n=40, confidence=0.96, accuracy=0.9)`
    """

    low: float
    high: float
    n: int
    confidence: float
    """Mean probability of the first label."""
    accuracy: float
    """Share of the texts whose first label is right."""


def accuracy(predicted: Sequence[str | None], expected: Sequence[str]) -> float:
    """Share of the texts with the right label; one without a label is wrong."""
    pairs = zip(predicted, expected, strict=True)
    return sum(a == b for a, b in pairs) / len(expected)


def macro_f1(predicted: Sequence[str | None], expected: Sequence[str]) -> float:
    """Mean F1 over the labels that occur, as predicted or as expected."""
    right = Counter(a for a, b in zip(predicted, expected, strict=True) if a == b)
    given = Counter(label for label in predicted if label is not None)
    wanted = Counter(expected)
    labels = given.keys() | wanted.keys()
    return sum(2 * right[label] / (given[label] + wanted[label]) for label in labels) / len(labels)


def top_k_accuracy(results: Sequence[Classification], expected: Sequence[str], k: int) -> float:
    """Share of the texts whose right label is among the first k of the ranking."""
    pairs = zip(results, expected, strict=True)
    return sum(b in [r.label for r in a.ranking[:k]] for a, b in pairs) / len(expected)


def reliability(
    results: Sequence[Classification], expected: Sequence[str], n_bins: int = BINS
) -> tuple[ReliabilityBin, ...]:
    """Bins of equal width with at least one text each."""
    sure = np.array([found.probability for found in results])
    right = np.array(
        [found.ranking[0].label == label for found, label in zip(results, expected, strict=True)]
    )
    places = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    bins: list[ReliabilityBin] = []
    for place in range(n_bins):
        inside = places == place
        if inside.any():
            bins.append(
                ReliabilityBin(
                    place / n_bins,
                    (place + 1) / n_bins,
                    int(inside.sum()),
                    float(sure[inside].mean()),
                    float(right[inside].mean()),
                )
            )
    return tuple(bins)


def calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Expected calibration error: mean distance of confidence and accuracy, by texts.

    After Naeini and others 2015, "Obtaining well calibrated probabilities using Bayesian binning".
    """
    n_texts = sum(one.n for one in bins)
    return sum(one.n * abs(one.confidence - one.accuracy) for one in bins) / n_texts


def confusion(
    predicted: Sequence[str | None], expected: Sequence[str]
) -> dict[tuple[str, str | None], int]:
    """How often each (expected, predicted) pair occurs, most frequent first."""
    return dict(Counter(zip(expected, predicted, strict=True)).most_common())


def micro_f1_of_sets(
    predicted: Sequence[Collection[str]], expected: Sequence[Collection[str]]
) -> float:
    """F1 over all labels of all texts together; 1 where there are none on either side."""
    right, given, wanted = _counts(predicted, expected)
    total = given.total() + wanted.total()
    return 2 * right.total() / total if total else 1.0


def macro_f1_of_sets(
    predicted: Sequence[Collection[str]], expected: Sequence[Collection[str]]
) -> float:
    """Mean F1 over the labels that occur, as predicted or as expected; 1 where none does."""
    right, given, wanted = _counts(predicted, expected)
    labels = given.keys() | wanted.keys()
    each = [2 * right[label] / (given[label] + wanted[label]) for label in labels]
    return sum(each) / len(each) if each else 1.0


def subset_accuracy(
    predicted: Sequence[Collection[str]], expected: Sequence[Collection[str]]
) -> float:
    """Share of the texts all of whose labels were found, and no other."""
    pairs = zip(predicted, expected, strict=True)
    return sum(set(a) == set(b) for a, b in pairs) / len(expected)


def _counts(
    predicted: Sequence[Collection[str]], expected: Sequence[Collection[str]]
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How often each label is (right, given, wanted)."""
    right = Counter(
        label for a, b in zip(predicted, expected, strict=True) for label in set(a) & set(b)
    )
    given = Counter(label for labels in predicted for label in set(labels))
    return right, given, Counter(label for labels in expected for label in set(labels))
