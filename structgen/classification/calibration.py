"""What a model says of the labels before it has seen a text, so that it can be taken away.

Letters of shapes: B texts, L labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.classification.finishing import Rules, adjusted
from structgen.classification.prompting import Choices, Question, check_texts
from structgen.classification.scoring import Scored, Scorer, normalised
from structgen.errors import InvalidTextError, OptionError
from structgen.prompts import Prompt

Calibration: TypeAlias = Literal["content_free", "pmi", "batch"]
"""What labels are divided by.

`content_free`: their mean probability for texts that say nothing (Zhao and others 2021, "Calibrate
before use"). `pmi`: their probability behind the question's last words alone (Holtzman and others
2021, "Surface form competition"). `batch`: their mean probability over the texts that are
classified together (Zhou and others 2024, "Batch calibration")."""

CONTENT_FREE = ("N/A", "", "[MASK]")
TINY = 1e-30
"""Under which probabilities are not told apart, so that no prior divides by zero."""


def check_calibration(
    calibrate: object,
) -> Calibration | tuple[str, ...] | None:
    """The option as it is used: one of the names, or neutral texts of the caller's own."""
    if calibrate is None:
        return None
    if isinstance(calibrate, str) and calibrate in ("content_free", "pmi", "batch"):
        return calibrate
    return neutral_texts(calibrate) or refuse_calibration(
        calibrate, "'content_free', 'pmi', 'batch', a list of texts that say nothing, or None"
    )


def neutral_texts(calibrate: object) -> tuple[str, ...]:
    """Texts of the caller's own that say nothing; none where the option is something else."""
    if not isinstance(calibrate, Sequence) or isinstance(calibrate, str | bytes):
        return ()
    texts = tuple(text for text in calibrate if isinstance(text, str))
    if len(texts) < len(calibrate):
        return ()
    try:
        return tuple(check_texts(texts))
    except InvalidTextError as error:
        raise OptionError(f"calibrate={calibrate!r:.80}: {error}") from error


def refuse_calibration(calibrate: object, possible: str) -> NoReturn:
    """Say what the option can be."""
    raise OptionError(f"calibrate={calibrate!r:.80} must be {possible}")


def prior_prompts(
    calibrate: Calibration | tuple[str, ...], question: Question, ask: Callable[[str], Prompt]
) -> list[Prompt]:
    """The prompts whose labels tell the prior; none for `batch`, which takes those of the texts."""
    if calibrate == "batch":
        return []
    if calibrate == "pmi":
        return [[{"role": "user", "content": question.framed("").strip()}]]
    texts = CONTENT_FREE if calibrate == "content_free" else calibrate
    return [ask(text) for text in texts]


def prior_of(scored: Sequence[Scored], rules: Rules) -> NDArray[np.float64]:
    """Log of the mean probability of each label [L] among the labels."""
    each = np.stack([normalised(adjusted(one, rules)) for one in scored])  # [B, L]
    return np.log(np.maximum(each.mean(0), TINY))


def prior_of_batch(scored: Sequence[Scored], rules: Rules) -> NDArray[np.float64]:
    """The same of texts that are compared with each other.

    Raises:
        OptionError: there is one text only, and all its labels would be as probable.
    """
    if len(scored) < 2:
        raise OptionError(
            "calibrate='batch' compares texts with each other, and only one could be read; "
            "classify several together, by `many`, or calibrate by 'content_free' or texts of "
            "your own"
        )
    return prior_of(scored, rules)


def find_prior(
    calibrate: Calibration | tuple[str, ...],
    question: Question,
    ask: Callable[[str], Prompt],
    choices: Choices,
    scorer: Scorer,
    rules: Rules,
) -> NDArray[np.float64]:
    """Ask the model for the prior of the labels [L]; `ask` makes the prompt of a text."""
    prompts = prior_prompts(calibrate, question, ask)
    return prior_of(scorer.full([scorer.ask(prompt, choices) for prompt in prompts]), rules)
