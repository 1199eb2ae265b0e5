"""One yes-or-no question about each label, all answered behind the same prompt in one pass.

The prompt holds the text. Each question is the beginning of an answer of its own, such as "joy: ",
and the model's probability of yes and of no behind it is read. Together the questions are a tree of
tokens: no one sees another. Letters of shapes: B texts, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structgen.classification.calibration import Calibration, check_calibration
from structgen.classification.options import check_number
from structgen.classification.prompting import Choices
from structgen.classification.scoring import Scored
from structgen.errors import OptionError
from structgen.taxonomy import Taxonomy

YES, NO = ("Yes", "yes"), ("No", "no")
TINY = 1e-6
"""Priors stay this far from 0 and 1."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model says of each label of one text."""

    log_odds: NDArray[np.float64]
    """[L], of yes against no."""
    mass: NDArray[np.float64]
    """[L], of yes and no together behind the question, unmasked."""
    forward_passes: int


def yes_no_choices(labels: Sequence[str], question: str) -> Choices:
    """For each label the question, and the question with each answer.

    Example: `yes_no_choices(["joy"], "{label}: ").written` -> `("joy:", "joy: Yes", ...)`

    Raises:
        OptionError: the question has no place for the label, or does not tell labels apart.
    """
    if not isinstance(question, str) or "{label}" not in question:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(
            f"question={question!r:.80} must hold {{label}}, in whose place each label is put"
        )
    written: list[str] = []
    for label in labels:
        asked = question.replace("{label}", label)
        # A blank is written together with the word behind it, so the question ends before it.
        written += [asked.rstrip() or asked, *(asked + answer for answer in YES + NO)]
    if len(set(written)) < len(written):
        raise OptionError(
            f"question={question!r:.80} writes two labels alike; end it with a colon, for instance"
        )
    return Choices(tuple(written), tuple(written), listed=False)


def answers_of(scored: Scored, n_labels: int) -> Answers:
    """The answers in what was found of `yes_no_choices`."""
    each = scored.log_probs.reshape(n_labels, 1 + len(YES) + len(NO))
    yes = np.logaddexp.reduce(each[:, 1 : 1 + len(YES)], axis=1)  # [L]
    no = np.logaddexp.reduce(each[:, 1 + len(YES) :], axis=1)  # [L]
    mass = np.exp(np.minimum(np.logaddexp(yes, no) - each[:, 0], 0.0))
    return Answers(yes - no, mass, scored.forward_passes)


def share_of(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probabilities of yes, of any shape."""
    return np.exp(-np.logaddexp(0.0, -log_odds))


def log_odds_of(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log-odds of priors, of any shape."""
    shares = np.clip(shares, TINY, 1 - TINY)
    return np.log(shares) - np.log1p(-shares)


def prior_of(answers: Sequence[Answers]) -> NDArray[np.float64]:
    """The mean probability of yes for each label [L]."""
    return np.stack([share_of(one.log_odds) for one in answers]).mean(0)


def check_prior(
    calibrate: object, taxonomy: Taxonomy
) -> Calibration | tuple[str, ...] | NDArray[np.float64] | None:
    """The option as it is used: a name, neutral texts, or known priors [L]."""
    if isinstance(calibrate, bool):
        return "content_free" if calibrate else None
    if isinstance(calibrate, Mapping):
        return by_label("calibrate", calibrate, taxonomy)  # pyright: ignore[reportUnknownArgumentType]
    if calibrate == "pmi":
        raise OptionError(
            "calibrate='pmi' is for labels that are written; pass 'content_free' or 'batch'"
        )
    return check_calibration(calibrate)


def by_label(name: str, values: Mapping[Any, Any], taxonomy: Taxonomy) -> NDArray[np.float64]:
    """Numbers from 0 to 1 in the taxonomy's order [L]."""
    wrong = sorted(map(repr, set(taxonomy.labels) ^ set(values)))
    if wrong:
        shown = ", ".join(wrong[:5])
        raise OptionError(f"{name} has to name each label once; differs in {shown}")
    return np.array([check_number(f"{name}[{t!r}]", values[t], 0.0, 1.0) for t in taxonomy.labels])
