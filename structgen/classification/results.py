"""What a classification returns: frozen values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

AbstentionReason: TypeAlias = Literal["none_of_these", "min_probability", "min_valid_mass"]


@dataclass(frozen=True, slots=True)
class RankedLabel:
    """One label of a ranking.

    Example: `RankedLabel(label="billing", probability=0.93, log_prob=-1.2)`
    """

    label: str
    probability: float
    """Among all labels, after calibration where it was asked for; a lower bound where not all
    labels were looked at."""
    log_prob: float
    """Of the label under the model's own distribution, unmasked and not calibrated."""


@dataclass(frozen=True, slots=True)
class Level:
    """One step of the way to a label of a hierarchy.

    Example: `Level(path=("Animals", "Cats"), probability=0.8)`
    """

    path: tuple[str, ...]
    probability: float
    """Of all labels under it together."""


@dataclass(frozen=True, slots=True)
class Classification:
    """Which label a text has, and how sure the model was.

    Example: `Classification(label="billing", probability=0.93, ranking=(...), ...)`
    """

    label: str | None
    """None where the classifier abstained, see `reason`."""
    probability: float
    """Of the first label of the ranking, whether or not the classifier abstained."""
    ranking: tuple[RankedLabel, ...]
    """Most probable first: all labels, or the `top_k`."""
    valid_mass: float
    """Probability that the model, unmasked, answers with any of the labels; a lower bound where
    `exact` is False."""
    entropy: float
    """Of the distribution over the labels, in nats: 0 where the model is sure, `log(n)` where all
    n are alike."""
    forward_passes: int
    """Calls of the model, the one that reads the text included; a pass for several texts counts
    for each."""
    bounds: tuple[float, float]
    """Between which `probability` lies; both are it where `exact`."""
    exact: bool = True
    """Every label was looked at, so the probabilities are exact. If not, see `open_mass`."""
    open_mass: float = 0.0
    """Probability, unmasked, of all beginnings that were not looked behind."""
    proven: bool = True
    """The labels of the ranking are the most probable ones; False if passes ran out."""
    levels: tuple[Level, ...] = ()
    """The way to the first label, where labels have a hierarchy."""
    reason: AbstentionReason | None = None
    """Why there is no label."""


@dataclass(frozen=True, slots=True)
class LabelAnswer:
    """Whether one label of several applies.

    Example: `LabelAnswer(label="joy", probability=0.7, valid_mass=0.95)`
    """

    label: str
    probability: float
    """Of yes, between yes and no."""
    valid_mass: float
    """Of yes and no together, unmasked."""


@dataclass(frozen=True, slots=True)
class MultiLabel:
    """Which labels a text has, each decided on its own.

    Example: `MultiLabel(labels=("joy", "love"), answers=(...), forward_passes=2)`
    """

    labels: tuple[str, ...]
    """Those whose probability reaches the threshold, in the taxonomy's order."""
    answers: tuple[LabelAnswer, ...]
    """One for each label, in the taxonomy's order."""
    forward_passes: int


def entropy(probabilities: Sequence[float]) -> float:
    """In nats; of probabilities that sum to at most 1."""
    return -math.fsum(p * math.log(p) for p in probabilities if p > 0) + 0.0
