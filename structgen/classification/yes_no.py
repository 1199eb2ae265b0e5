"""One yes-or-no question about each label, all answered behind the same prompt in one pass.

The prompt holds the text. Each question is the beginning of an answer of its own, such as "joy: ",
and the model's probability of yes and of no behind it is read. Together the questions are a tree of
tokens: no one sees another. Letters of shapes: B texts, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.classification.calibration import neutral_texts, refuse_calibration
from structgen.classification.options import check_number
from structgen.classification.prompting import Choices, check_text
from structgen.classification.scoring import Scored
from structgen.errors import InvalidTextError, OptionError
from structgen.taxonomy import Taxonomy

YES, NO = ("Yes", "yes"), ("No", "no")
TINY = 1e-9
"""Priors stay this far from 0 and 1."""
ROUNDING = 1e-4
"""Log-odds that are this close to their prior are the same: models round, and so do means."""

Prior: TypeAlias = Literal["content_free", "batch"] | tuple[str, ...]
"""Where the prior of yes is taken from: what is usual, all texts, or neutral texts."""


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
    check_wording("question", question)
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


def check_wording(name: str, value: object) -> None:
    """Refuse an option that is no text, or none that a model can read."""
    try:
        check_text(value)
    except InvalidTextError as error:
        raise OptionError(f"{name}={value!r:.80}: {error}") from error


def answers_of(scored: Scored, n_labels: int) -> Answers:
    """The answers in what was found of `yes_no_choices`."""
    each = scored.log_probs.reshape(n_labels, 1 + len(YES) + len(NO))
    yes = np.logaddexp.reduce(each[:, 1 : 1 + len(YES)], axis=1)  # [L]
    no = np.logaddexp.reduce(each[:, 1 + len(YES) :], axis=1)  # [L]
    mass = np.exp(np.minimum(np.logaddexp(yes, no) - each[:, 0], 0.0))
    return Answers(yes - no, mass, scored.forward_passes)


def shares_of(answers: Answers, prior: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The probability of yes for each label [L], divided by its prior, which is in log-odds.

    It is 0.5, and exactly that, where a text is as its prior.
    """
    if prior is None:
        return share_of(answers.log_odds)
    beyond = answers.log_odds - prior
    return share_of(np.where(np.abs(beyond) < ROUNDING, 0.0, beyond))


def share_of(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probabilities of yes, of any shape."""
    # 1 / (1 + e^-x) without overflow, and exactly one half at 0.
    tail = np.exp(-np.abs(log_odds))
    return np.where(log_odds >= 0, 1.0, tail) / (1.0 + tail)


def log_odds_of(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log-odds of priors, of any shape."""
    shares = np.clip(shares, TINY, 1 - TINY)
    return np.log(shares) - np.log1p(-shares)


def prior_of(answers: Sequence[Answers]) -> NDArray[np.float64]:
    """The log-odds of the mean probability of yes for each label [L]."""
    each = np.stack([one.log_odds for one in answers])  # [B, L]
    yes = np.logaddexp.reduce(-np.logaddexp(0.0, -each), axis=0)
    no = np.logaddexp.reduce(-np.logaddexp(0.0, each), axis=0)
    most = log_odds_of(np.array(1.0))
    return np.clip(yes - no, -most, most)


def prior_of_batch(answers: Sequence[Answers]) -> NDArray[np.float64]:
    """The same of texts that are compared with each other.

    Raises:
        OptionError: there is one text only, and nothing to compare it with.
    """
    if len(answers) < 2:
        raise OptionError(
            "calibrate='batch' compares texts with each other, and only one could be read; "
            "classify several together, by `many`, or pass as calibrate what does not depend on "
            "them: texts that say nothing, or priors by label, such as those of `fit_thresholds`"
        )
    return prior_of(answers)


def check_prior(calibrate: object, taxonomy: Taxonomy) -> Prior | NDArray[np.float64] | None:
    """The option as it is used: a name, neutral texts, or known priors [L] in log-odds."""
    if calibrate is None:
        return None
    if isinstance(calibrate, bool):
        return "content_free" if calibrate else None
    if isinstance(calibrate, Mapping):
        return log_odds_of(by_label("calibrate", calibrate, taxonomy))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(calibrate, str) and calibrate in ("content_free", "batch"):
        return calibrate
    return neutral_texts(calibrate) or refuse_calibration(
        calibrate,
        "'content_free', 'batch', True, a list of texts that say nothing, a dict of the "
        "probability of yes by label, or None",
    )


def by_label(name: str, values: Mapping[Any, Any], taxonomy: Taxonomy) -> NDArray[np.float64]:
    """Numbers from 0 to 1 in the taxonomy's order [L]."""
    wrong = sorted(map(repr, set(taxonomy.labels) ^ set(values)))
    if wrong:
        shown = ", ".join(wrong[:5])
        raise OptionError(f"{name} has to name each label once; differs in {shown}")
    return np.array([check_number(f"{name}[{t!r}]", values[t], 0.0, 1.0) for t in taxonomy.labels])
