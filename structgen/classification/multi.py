"""Several labels for one text: a yes-or-no question for each, or a generated set."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.batch import BATCH_SIZE, OnError, check_batch_options
from structgen.classification.batches import ManyTexts, Part, parts
from structgen.classification.calibration import CONTENT_FREE
from structgen.classification.labelled import LabelledRow, check_rows
from structgen.classification.options import check_number, check_one_of
from structgen.classification.prompting import (
    Choices,
    check_texts,
    is_of_text,
    made_of,
)
from structgen.classification.results import LabelAnswer, MultiLabel
from structgen.classification.scoring import Asked, Scorer
from structgen.classification.thresholds import Average, applying, best_thresholds
from structgen.classification.yes_no import (
    Answers,
    answers_of,
    by_label,
    check_prior,
    check_wording,
    prior_of,
    prior_of_batch,
    share_of,
    shares_of,
    yes_no_choices,
)
from structgen.errors import OptionError, UsageError
from structgen.generator import Generator
from structgen.prompts import Prompt
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel
from structgen.taxonomy import Taxonomy

Method: TypeAlias = Literal["independent", "generated"]
"""`independent`: whether each label applies is a question of its own. `generated`: the model writes
the labels that apply, none twice."""

INSTRUCTIONS = "Decide for each category whether it applies to the text. Answer Yes or No."
QUESTION = "{label}: "
THRESHOLD = 0.5
FRAME = "Text: {text}\nAnswers:\n"
TASK = "Which of these categories apply to the text? There may be several.\n{labels}"


class MultiLabelClassifier(ManyTexts[MultiLabel]):
    """Finds all labels that a text has; shared between threads.

    Example: `MultiLabelClassifier(["joy", "anger"], lm)("What a day!").labels` -> `("joy",)`

    Args:
        labels: a `Taxonomy`, or anything that makes one.
        lm: a language model, see `structgen.load`.
        method: how labels are decided.
        instructions: what the model is asked to decide about each label; for `independent`.
        question: how the answer about a label begins, with `{label}`; for `independent`. Yes or no
            is what follows, and the answer about one label does not see the others.
        threshold: the probability of yes above which a label applies, one for all or by label; at
            0 it always does. For `independent`; see `fit_thresholds`.
        calibrate: what yes and no are divided by; for `independent`. "content_free", or True: their
            probabilities for texts that say nothing, or a list of such texts; "batch": their mean
            probabilities over the texts that are read together, two or more; or the probability of
            yes by label. A text that is as this says has 0.5 for each label.
        min_items, max_items: how many labels are written; for `generated`.
        antichain: a label and one below it are not both written; for `generated`.

    Raises:
        OptionError: an option is out of its range, or is one of the other method.
        UnsupportedSchemaError: the labels are no taxonomy; all faults at once.
    """

    def __init__(
        self,
        labels: Taxonomy | Iterable[str] | Any,
        lm: LanguageModel,
        *,
        method: Method = "independent",
        instructions: str = INSTRUCTIONS,
        question: str = QUESTION,
        threshold: float | Mapping[str, float] = THRESHOLD,
        calibrate: Literal["content_free", "batch"]
        | Sequence[str]
        | Mapping[str, float]
        | bool
        | None = None,
        min_items: int = 0,
        max_items: int | None = None,
        antichain: bool = False,
    ) -> None:
        check_one_of("method", method, Method)
        self._taxonomy = labels if isinstance(labels, Taxonomy) else Taxonomy(labels)
        self._lm, self._method, self._instructions = lm, method, instructions
        self._choices = yes_no_choices(self._taxonomy.labels, question)
        self._thresholds = _thresholds(threshold, self._taxonomy)
        prior = check_prior(calibrate, self._taxonomy)
        self._calibrate = None if isinstance(prior, np.ndarray) else prior
        # [L], in log-odds.
        self._prior: NDArray[np.float64] | None = prior if isinstance(prior, np.ndarray) else None
        check_wording("instructions", instructions)
        if method == "generated":
            given = {
                "instructions": instructions != INSTRUCTIONS, "question": question != QUESTION,
                "threshold": bool((self._thresholds != THRESHOLD).any()),
                "calibrate": prior is not None,
            }  # fmt: skip
        else:
            given = {
                "min_items": min_items != 0, "max_items": max_items is not None,
                "antichain": antichain,
            }  # fmt: skip
        _refuse_unused(method, given)
        self._scorer = Scorer(lm, "canonical", "any")
        self._generator: Generator[list[str]] | None = None
        if method == "generated":
            kind = self._taxonomy.Labels(
                min_length=min_items, max_length=max_items, antichain=antichain
            )
            task = TASK.replace(
                "{labels}", Choices(self._taxonomy.labels, self._taxonomy.texts).lines()
            )
            self._generator = Generator[list[str]](
                kind, lm, schema_prompt=f"{task}\nAnswer with a JSON list of them."
            )

    @property
    def taxonomy(self) -> Taxonomy:
        """The labels."""
        return self._taxonomy

    @property
    def lm(self) -> LanguageModel:
        """The model."""
        return self._lm

    def __repr__(self) -> str:
        return f"<MultiLabelClassifier {self._taxonomy.name} on {self._lm.name}, {self._method}>"

    @property
    def compares_texts(self) -> bool:
        """Whether what a text gets depends on those that are classified together with it."""
        return self._generator is None and self._calibrate == "batch"

    @property
    def thresholds(self) -> dict[str, float]:
        """The probability of yes above which each label applies."""
        return dict(zip(self._taxonomy.labels, self._thresholds.tolist(), strict=True))

    @property
    def priors(self) -> dict[str, float] | None:
        """The probabilities of yes that are divided by, where they were given or fitted."""
        if self._prior is None or self._calibrate is not None:
            return None
        return dict(zip(self._taxonomy.labels, share_of(self._prior).tolist(), strict=True))

    def __call__(self, text: str) -> MultiLabel:
        """All labels of one text.

        Raises:
            OptionError: the classifier compares texts, which takes several.
        """
        check_texts([text])
        if self._generator is not None:
            return self._written(text)
        if self.compares_texts:
            prior_of_batch([])  # before anything is read
        (found,) = self._decided([[(None, text)]], "raise")
        assert not isinstance(found, UsageError), "errors are raised"
        return found

    def fit_thresholds(
        self,
        rows: Iterable[LabelledRow],
        *,
        average: Average = "macro",
        batch_size: int = BATCH_SIZE,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> MultiLabelClassifier:
        """A new classifier with the thresholds that do best on labelled texts, by F1.

        A label with few texts gets a threshold that suits all labels, one with many its own; those
        of `calibrate` are fixed as they were found on the texts. To make the same classifier later,
        keep both: `MultiLabelClassifier(labels, lm, threshold=fitted.thresholds,
        calibrate=fitted.priors)`.

        Example: `classifier.fit_thresholds([("Thanks!", ["joy"]), ("No.", [])]).thresholds`

        Args:
            rows: pairs of a text and its labels, or dicts with `text` and `labels`.
            average: "macro" raises the F1 of each label, "micro" that of all labels together.
            on_error: "return" leaves out texts that cannot be asked about, such as those that are
                too long; "raise" raises the first error, as it does where all texts fail.

        Raises:
            OptionError: there are no rows, one is of another form or has an unknown label, there
                is one text only and `calibrate="batch"`, or the labels are generated, which knows
                no thresholds.
        """
        check_batch_options(batch_size, on_error, progress)
        check_one_of("average", average, Average)
        if self._generator is not None:
            raise OptionError("method='generated' has no thresholds to fit; use 'independent'")
        texts, expected = check_rows(rows, self._taxonomy)
        found = list(self._asked_all(parts(texts, batch_size, progress), on_error))
        answers = [one for one in found if isinstance(one, Answers)]
        errors = [one for one in found if isinstance(one, UsageError)]
        if not answers:
            errors[0].add_note("structgen: all rows failed")
            raise errors[0]
        prior = prior_of_batch(answers) if self.compares_texts else self._known_prior()
        shares = np.stack([shares_of(one, prior) for one in answers])  # [N, L]
        kept = [
            labels for one, labels in zip(found, expected, strict=True) if isinstance(one, Answers)
        ]
        applies = np.array([[t in labels for t in self._taxonomy.labels] for labels in kept])
        fitted = copy.copy(self)
        fitted._thresholds = best_thresholds(shares, applies, average)
        fitted._calibrate, fitted._prior = None, prior
        return fitted

    def _found(
        self, texts: Iterable[str], batch_size: int, on_error: OnError, progress: bool | None
    ) -> Iterator[MultiLabel | UsageError]:
        if self._generator is not None:
            yield from self._generated(self._generator, list(texts), batch_size, on_error, progress)
            return
        yield from self._decided(parts(texts, batch_size, progress), on_error)

    def _generated(
        self,
        generator: Generator[list[str]],
        texts: list[str],
        batch_size: int,
        on_error: OnError,
        progress: bool | None,
    ) -> list[MultiLabel | UsageError]:
        found: list[MultiLabel | UsageError] = []
        wrong: dict[int, UsageError] = {}
        for place in enumerate(texts):
            checked = made_of(str, place, on_error)
            if isinstance(checked, UsageError):
                wrong[place[0]] = checked
        good = [text for index, text in enumerate(texts) if index not in wrong]
        finished = dict(generator.as_completed(good, batch_size=batch_size, progress=progress))
        results = iter(finished[place] for place in range(len(good)))
        for index in range(len(texts)):
            result = wrong.get(index) or next(results)
            if on_error == "return" and is_of_text(result):
                found.append(result)
            elif isinstance(result, Exception):
                raise result
            else:
                found.append(self._of_texts(result))
        return found

    def _written(self, text: str) -> MultiLabel:
        assert self._generator is not None
        return self._of_texts(self._generator.run(text))

    def _of_texts(self, result: Generation[list[str]]) -> MultiLabel:
        pairs = zip(self._taxonomy.labels, self._taxonomy.texts, strict=True)
        chosen = set(result.value)
        labels = tuple(label for label, text in pairs if text in chosen)
        return MultiLabel(labels, (), result.usage.forward_passes)

    def _decided(
        self, parts: Iterable[Part], on_error: OnError
    ) -> Iterator[MultiLabel | UsageError]:
        """The texts' labels; where texts are compared, none before the last is read."""
        found = self._asked_all(parts, on_error)
        if not self.compares_texts:
            for one in found:
                yield one if isinstance(one, UsageError) else self._label(one, self._known_prior())
            return
        every = list(found)
        answers = [one for one in every if isinstance(one, Answers)]
        prior = prior_of_batch(answers) if answers else None
        yield from (
            one if isinstance(one, UsageError) else self._label(one, prior) for one in every
        )

    def _asked_all(
        self, parts: Iterable[Part], on_error: OnError
    ) -> Iterator[Answers | UsageError]:
        for part in parts:
            asked = [made_of(self._asked, place, on_error) for place in part]
            good = iter(self._answers([one for one in asked if isinstance(one, Asked)]))
            yield from [one if isinstance(one, UsageError) else next(good) for one in asked]

    def _label(self, answers: Answers, prior: NDArray[np.float64] | None) -> MultiLabel:
        shares = shares_of(answers, prior)
        rows = zip(self._taxonomy.labels, shares.tolist(), answers.mass.tolist(), strict=True)
        chosen = np.flatnonzero(applying(shares, self._thresholds)).tolist()
        return MultiLabel(
            tuple(self._taxonomy.labels[index] for index in chosen),
            tuple(LabelAnswer(label, share, mass) for label, share, mass in rows),
            answers.forward_passes,
        )

    def _known_prior(self) -> NDArray[np.float64] | None:
        """The prior of yes [L], in log-odds, that does not depend on the texts."""
        if self._prior is None and self._calibrate is not None:
            texts = CONTENT_FREE if isinstance(self._calibrate, str) else self._calibrate
            self._prior = prior_of(self._answers([self._asked(text) for text in texts]))
        return self._prior

    def _asked(self, text: str) -> Asked:
        return self._scorer.ask(self.render(text), self._choices)

    def _answers(self, asked: Sequence[Asked]) -> list[Answers]:
        return [answers_of(one, len(self._taxonomy)) for one in self._scorer.full(asked)]

    def render(self, text: str) -> Prompt:
        """What the model is asked about a text, for `independent`; the text comes last."""
        framed = FRAME.replace("{text}", text)
        return [{"role": "user", "content": f"{self._instructions}\n\n{framed}"}]


def _refuse_unused(method: Method, given: Mapping[str, bool]) -> None:
    """Refuse options that were given and that the method has no use for."""
    names = ", ".join(name for name, is_given in given.items() if is_given)
    if names:
        other = "generated" if method == "independent" else "independent"
        raise OptionError(f"method={method!r} does not take {names}, which is for {other!r}")


def _thresholds(threshold: float | Mapping[str, float], taxonomy: Taxonomy) -> NDArray[np.float64]:
    if isinstance(threshold, Mapping):
        return by_label("threshold", threshold, taxonomy)
    return np.full(len(taxonomy), check_number("threshold", threshold, 0.0, 1.0))
