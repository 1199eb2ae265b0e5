"""Thresholds that suit labelled texts: above which probability each label applies.

Letters of shapes: N texts, L labels, C candidates.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Average: TypeAlias = Literal["macro", "micro"]
"""Which F1 is made as high as can be. `macro`: that of each label, so that rare labels count as
much as frequent ones. `micro`: that of all labels of all texts together, which leaves out labels
that are more often wrong than they are worth."""

PSEUDO = 1.0
"""Positives of the average label that are added to the counts of each."""
MOST_CANDIDATES = 512
MOST_ROUNDS = 20


def best_thresholds(
    shares: NDArray[np.float64], applies: NDArray[np.bool_], average: Average = "macro"
) -> NDArray[np.float64]:
    """The threshold of each label [L] that does best on labelled texts.

    All labels have the same candidates. To the counts of a label (positives, texts that it is given
    to, and those of them that are right) the counts of all labels are added, as if `PSEUDO` more
    positives had been seen: a label with few positives gets a threshold that suits all labels, one
    with many its own.

    Args:
        shares: the probability of each label, [N, L].
        applies: whether it is right, [N, L].
    """
    candidates = _candidates(shares)  # [C]
    given, right = _counts(shares, applies, candidates)  # [L, C] each
    wanted = applies.sum(0).astype(np.float64)  # [L]
    weight = PSEUDO / max(wanted.sum(), 1.0)
    smooth_given, smooth_right = given + weight * given.sum(0), right + weight * right.sum(0)
    smooth_wanted = wanted + weight * wanted.sum()
    if average == "macro":
        f1 = 2 * smooth_right / np.maximum(smooth_given + smooth_wanted[:, None], 1e-12)
        return candidates[_highest(f1)]
    return candidates[_best_together(smooth_given, smooth_right, smooth_wanted.sum())]


def applying(shares: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which labels apply, of any shape: those above their threshold, and at 0 all."""
    return (shares > thresholds) | (thresholds <= 0)


def _best_together(
    given: NDArray[np.float64], right: NDArray[np.float64], wanted: float
) -> NDArray[np.int64]:
    """The candidate of each label [L] with which the F1 of all labels together is highest.

    The highest quotient A / B is where A - quotient * B is highest (Dinkelbach 1967), and this
    difference is a sum over labels.
    """
    rows = np.arange(len(given))

    def best_at(quotient: float) -> tuple[NDArray[np.int64], float]:
        chosen = _highest(2 * right - quotient * given)
        total = given[rows, chosen].sum() + wanted
        return chosen, float(2 * right[rows, chosen].sum() / max(total, 1e-12))

    chosen, quotient = best_at(0.0)
    for _ in range(MOST_ROUNDS - 1):
        before = quotient
        chosen, quotient = best_at(before)
        if abs(quotient - before) < 1e-12:
            break
    return chosen


def _candidates(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds between probabilities that occur, rising, from 0 to 1 [C]."""
    found = np.unique(shares)
    if len(found) > MOST_CANDIDATES:
        found = found[np.linspace(0, len(found) - 1, MOST_CANDIDATES).astype(int)]
    return np.concatenate([[0.0], (found[1:] + found[:-1]) / 2, [1.0]])


def _counts(
    shares: NDArray[np.float64], applies: NDArray[np.bool_], candidates: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(texts that get each label above each candidate, how many of them are right) [L, C]."""
    given = np.empty((shares.shape[1], len(candidates)))
    right = np.empty_like(given)
    for label, (column, is_right) in enumerate(zip(shares.T, applies.T, strict=True)):
        for counts, values in ((given, column), (right, column[is_right])):
            counts[label] = len(values) - np.searchsorted(np.sort(values), candidates, "right")
            counts[label, candidates <= 0] = len(values)
    return given, right


def _highest(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The candidate with the highest score in each row [L], of equal ones the highest."""
    n_candidates = scores.shape[1]
    # Differences of rounding are no differences.
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return n_candidates - 1 - np.argmax(best[:, ::-1], axis=1)
