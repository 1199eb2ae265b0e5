"""From log-probabilities to a classification: calibration, ranking, levels, abstention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.classification.prompting import Choices
from structgen.classification.results import (
    AbstentionReason,
    Classification,
    Level,
    RankedLabel,
    entropy,
)
from structgen.classification.scoring import Scored, normalised

LengthRule: TypeAlias = Literal["sum", "mean"]
"""`sum`: a label's log-probability counts as it is. `mean`: divided by its tokens, which takes away
the advantage of short labels (Brown and others 2020, "Language models are few-shot learners")."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How the figures become an answer."""

    length: LengthRule = "sum"
    top_k: int | None = None
    min_probability: float = 0.0
    min_valid_mass: float = 0.0
    none_of_these: str | None = None
    separator: str | None = None
    """Of the levels of a label."""


def finish(
    scored: Scored, choices: Choices, rules: Rules, prior: NDArray[np.float64] | None = None
) -> Classification:
    """The classification of one text.

    Args:
        prior: log-probabilities [L] of the labels without the text, see `calibration`.
    """
    probabilities = _probabilities(scored, rules, prior)
    order = np.lexsort((np.arange(len(probabilities)), -probabilities))
    shown = [index for index in order.tolist() if scored.log_probs[index] > -math.inf]
    shown = (shown or order.tolist()[:1])[: rules.top_k]
    ranking = tuple(
        RankedLabel(choices.labels[i], float(probabilities[i]), float(scored.log_probs[i]))
        for i in shown
    )
    valid_mass = min(float(np.exp(scored.log_probs).sum()), 1.0)
    reason = _reason(ranking[0], valid_mass, rules)
    return Classification(
        label=None if reason else ranking[0].label,
        probability=ranking[0].probability,
        ranking=ranking,
        valid_mass=valid_mass,
        entropy=entropy(_shares(probabilities)),
        forward_passes=scored.forward_passes,
        bounds=_bounds(ranking[0], scored),
        exact=scored.exact,
        open_mass=math.exp(scored.log_open),
        proven=scored.proven,
        levels=_levels(ranking[0].label, choices.labels, probabilities, rules.separator),
        reason=reason,
    )


def adjusted(scored: Scored, rules: Rules) -> NDArray[np.float64]:
    """What labels are compared by [L]: their log-probabilities, by length where that is asked."""
    return scored.log_probs / scored.lengths if rules.length == "mean" else scored.log_probs


def _probabilities(
    scored: Scored, rules: Rules, prior: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """[L], which sum to 1 where all labels were looked at."""
    scores = adjusted(scored, rules)
    if prior is not None:
        scores = scores - prior
    if scored.exact:
        return normalised(scores)
    whole = np.logaddexp(np.logaddexp.reduce(scores), scored.log_open)
    return np.exp(scores - whole) if whole > -np.inf else normalised(scores)


def _bounds(first: RankedLabel, scored: Scored) -> tuple[float, float]:
    """Between which a probability lies: all that is open may be the label's, or others'."""
    most = np.logaddexp(np.logaddexp.reduce(scored.log_probs), scored.log_open)
    if scored.exact or most == -np.inf:
        return first.probability, first.probability
    high = np.logaddexp(first.log_prob, scored.log_open)
    return math.exp(first.log_prob - most), min(math.exp(high - most), 1.0)


def _shares(probabilities: NDArray[np.float64]) -> list[float]:
    whole = float(probabilities.sum())
    return (probabilities / whole).tolist() if whole else []


def _reason(first: RankedLabel, valid_mass: float, rules: Rules) -> AbstentionReason | None:
    if first.label == rules.none_of_these:
        return "none_of_these"
    if first.probability < rules.min_probability:
        return "min_probability"
    return "min_valid_mass" if valid_mass < rules.min_valid_mass else None


def _levels(
    label: str,
    labels: tuple[str, ...],
    probabilities: NDArray[np.float64],
    separator: str | None,
) -> tuple[Level, ...]:
    """Each level of the way to a label; nothing where there is no hierarchy."""
    parts = label.split(separator) if separator else [label]
    if separator is None or not any(separator in other for other in labels):
        return ()
    found: list[Level] = []
    for depth in range(1, len(parts) + 1):
        above = separator.join(parts[:depth])
        below = above + separator
        under = [i for i, name in enumerate(labels) if name == above or name.startswith(below)]
        found.append(Level(tuple(parts[:depth]), float(probabilities[under].sum())))
    return tuple(found)
