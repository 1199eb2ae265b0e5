"""Several labels for one text: a yes-or-no question for each, or a generated set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from structgen.batch import OnError
from structgen.classification.batches import ManyTexts, parts
from structgen.classification.calibration import CONTENT_FREE
from structgen.classification.options import check_flag, check_number, check_one_of
from structgen.classification.prompting import (
    Choices,
    check_texts,
    is_of_text,
    made_of,
)
from structgen.classification.results import LabelAnswer, MultiLabel
from structgen.classification.scoring import Scored, Scorer, normalised
from structgen.errors import OptionError, UsageError
from structgen.generator import Generator
from structgen.prompts import Prompt
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel
from structgen.taxonomy import Taxonomy

Method: TypeAlias = Literal["independent", "generated"]
"""`independent`: whether each label applies is a question of its own. `generated`: the model writes
the labels that apply, none twice."""

QUESTION = 'Does the category "{label}" apply to the text? Answer yes or no.'
TASK = "Which of these categories apply to the text? There may be several.\n{labels}"
YES_NO = Choices(("yes", "no"), ("yes", "no"), listed=False)


class MultiLabelClassifier(ManyTexts[MultiLabel]):
    """Finds all labels that a text has; shared between threads.

    Example: `MultiLabelClassifier(["joy", "anger"], lm)("What a day!").labels` -> `("joy",)`

    Args:
        labels: a `Taxonomy`, or anything that makes one.
        lm: a language model, see `structgen.load`.
        method: how labels are decided.
        question: what is asked about each label, with `{label}`; for `independent`.
        threshold: the probability of yes from which on a label applies, one for all or by label;
            for `independent`.
        calibrate: divide yes and no by their probabilities for texts that say nothing (Zhao and
            others 2021); for `independent`.
        min_items, max_items: how many labels are written; for `generated`.
        antichain: a label and one below it are not both written; for `generated`.
    """

    def __init__(
        self,
        labels: Taxonomy | Iterable[str] | Any,
        lm: LanguageModel,
        *,
        method: Method = "independent",
        question: str = QUESTION,
        threshold: float | Mapping[str, float] = 0.5,
        calibrate: bool = False,
        min_items: int = 0,
        max_items: int | None = None,
        antichain: bool = False,
    ) -> None:
        check_one_of("method", method, Method)
        self._taxonomy = labels if isinstance(labels, Taxonomy) else Taxonomy(labels)
        self._lm, self._method, self._question = lm, method, question
        if "{label}" not in question:
            raise OptionError("question must hold {label}, in whose place each label is put")
        self._thresholds = _thresholds(threshold, self._taxonomy)
        self._calibrate = check_flag("calibrate", calibrate)
        self._priors: list[float] | None = None
        self._scorer = Scorer(lm, "canonical", "open")
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

    def __call__(self, text: str) -> MultiLabel:
        """All labels of one text."""
        check_texts([text])
        return self._written(text) if self._generator else self._decided(text)

    def _found(
        self, texts: Iterable[str], batch_size: int, on_error: OnError, progress: bool | None
    ) -> Iterator[MultiLabel | UsageError]:
        if self._generator is not None:
            yield from self._generated(self._generator, list(texts), batch_size, on_error, progress)
            return
        for part in parts(texts, 1, progress):  # questions about one text are asked together
            yield from (made_of(self._decided, place, on_error) for place in part)

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

    def _decided(self, text: str) -> MultiLabel:
        scored = self._ask(text)
        priors = self._prior() if self._calibrate else [0.5] * len(scored)
        answers: list[LabelAnswer] = []
        for label, one, prior in zip(self._taxonomy.labels, scored, priors, strict=True):
            yes, no = normalised(one.log_probs).tolist()
            yes, no = yes / prior, no / (1 - prior)
            mass = min(float(np.exp(one.log_probs).sum()), 1.0)
            answers.append(LabelAnswer(label, yes / (yes + no), mass))
        pairs = zip(answers, self._thresholds, strict=True)
        chosen = tuple(answer.label for answer, least in pairs if answer.probability >= least)
        n_passes = round(sum(one.forward_passes / one.n_sharing for one in scored))
        return MultiLabel(chosen, tuple(answers), n_passes)

    def _ask(self, text: str) -> list[Scored]:
        prompts = [self._prompt(text, label) for label in self._taxonomy.labels]
        return self._scorer.full([self._scorer.ask(prompt, YES_NO) for prompt in prompts])

    def _prompt(self, text: str, label: str) -> Prompt:
        """The text comes first: it is read once for all labels."""
        question = self._question.replace("{label}", label)
        return [{"role": "user", "content": f"Text: {text}\n\n{question}"}]

    def _prior(self) -> list[float]:
        """The probability of yes for each label where the text says nothing."""
        if self._priors is None:
            each = [[normalised(s.log_probs)[0] for s in self._ask(text)] for text in CONTENT_FREE]
            means = (sum(row) / len(row) for row in zip(*each, strict=True))
            self._priors = [min(max(float(mean), 1e-6), 1 - 1e-6) for mean in means]
        return self._priors


def _thresholds(threshold: float | Mapping[str, float], taxonomy: Taxonomy) -> list[float]:
    if not isinstance(threshold, Mapping):
        return [check_number("threshold", threshold, 0.0, 1.0)] * len(taxonomy)
    wrong = set(taxonomy.labels) ^ set(threshold)
    if wrong:
        raise OptionError(f"threshold has to name each label once; differs in {sorted(wrong)[:5]}")
    return [check_number(f"threshold[{t!r}]", threshold[t], 0.0, 1.0) for t in taxonomy.labels]
