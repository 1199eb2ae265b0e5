"""A taxonomy, a model and options, ready to classify: the handle behind `structgen.classify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structgen.batch import OnError
from structgen.classification.batches import ManyTexts, Part, parts
from structgen.classification.calibration import (
    Calibration,
    check_calibration,
    find_prior,
    prior_of_batch,
)
from structgen.classification.drill import Drill
from structgen.classification.finishing import LengthRule, Rules, finish
from structgen.classification.options import (
    Strategy,
    check_drill,
    check_flag,
    check_number,
    check_one_of,
    check_together,
    check_whole,
    chosen_strategy,
    ending_of,
    way_out_of,
)
from structgen.classification.prompting import (
    INSTRUCTIONS,
    MOST_LISTED,
    Choices,
    Question,
    check_examples,
    made_of,
    prompt_by,
)
from structgen.classification.results import Classification
from structgen.classification.scoring import Asked, Budget, Scored, Scorer, Tokenization
from structgen.classification.search import MAX_PASSES
from structgen.classification.settings import Settings, settings_of
from structgen.classification.shortlist import BM25, Retriever, candidates
from structgen.classification.walk import Ending
from structgen.errors import OptionError, UsageError
from structgen.prompts import Prompt
from structgen.runtime.lm import LanguageModel
from structgen.runtime.trees import MAX_PASS_TOKENS
from structgen.taxonomy import Taxonomy
from structgen.tokens.vocabulary import Vocabulary

MOST_PRIORS = 64
"""Shortlists whose prior is remembered."""


class Classifier(ManyTexts[Classification]):
    """Classifies texts with one model; shared between threads.

    Example: `Classifier(["billing", "sales"], lm)("My card was charged twice.").label`

    Args:
        labels: a `Taxonomy`, or anything that makes one.
        lm: a language model, see `structgen.load`.
        instructions: what the model is asked to decide.
        examples: pairs of a text and its label, which the prompt shows as answered before.
        prompt: makes the whole prompt from a text, in place of all of the above.
        list_labels: whether the prompt lists the labels; None: up to 300 of them.
        descriptions: the list says what the taxonomy knows about each label.
        index: the list is numbered and the model answers with a number, for long labels.
        none_of_these: a way out that is offered as one more label; True is "none of these".
        strategy: `full` reads every label, and its probabilities are exact; `search` finds the
            `top_k` most probable ones and proves it; `drill` goes down a hierarchy level by level,
            keeping the `beam` best ways. `auto` is `full` up to 1,000 labels and `search` above.
        top_k: labels in the ranking; None is all of them, or one where they are searched.
        max_passes: forward passes after which a search ends, and says how far it came.
        max_open_mass: a search also goes on until no more probability than this is left open.
        tokenization: `canonical` writes each label as the tokenizer does; `any` sums over all ways
            to cut it into tokens, up to `open_mass`.
        ending: `end` asks for the end of the answer behind a label, `open` leaves out what follows
            it; None: `open`, but `end` where `tokenization` is `any`, which knows no other.
        length: `mean` divides a label's log-probability by its number of tokens.
        calibrate: what labels are divided by, see `Calibration`; or texts that say nothing.
        shortlist: a retriever, or "bm25", that narrows the labels to `shortlist_size` of them.
        min_probability, min_valid_mass: under these the classifier abstains: the label is None.
        max_pass_tokens: tokens of one forward pass over all its rows; more are read in several
            passes, which takes less memory and changes nothing else.

    Raises:
        OptionError: an option is out of its range, or two contradict each other.
        UnsupportedSchemaError: the labels are no taxonomy; all faults at once.
    """

    def __init__(
        self,
        labels: Taxonomy | Iterable[str] | Any,
        lm: LanguageModel,
        *,
        instructions: str = INSTRUCTIONS,
        examples: Iterable[tuple[str, str]] = (),
        prompt: Callable[[str], Prompt] | None = None,
        list_labels: bool | None = None,
        descriptions: bool = False,
        index: bool = False,
        none_of_these: str | bool | None = None,
        strategy: Strategy = "auto",
        top_k: int | None = None,
        max_passes: int = MAX_PASSES,
        max_open_mass: float = 1.0,
        beam: int = 1,
        tokenization: Tokenization = "canonical",
        ending: Ending | None = None,
        length: LengthRule = "sum",
        calibrate: Calibration | Sequence[str] | None = None,
        shortlist: Retriever | Literal["bm25"] | None = None,
        shortlist_size: int = 20,
        min_probability: float = 0.0,
        min_valid_mass: float = 0.0,
        max_pass_tokens: int = MAX_PASS_TOKENS,
    ) -> None:
        if not isinstance(getattr(lm, "vocabulary", None), Vocabulary):
            raise OptionError(f"lm must be a language model, got {lm!r}; use structgen.load(...)")
        ending = ending_of(ending, tokenization)
        for name, value, kind in (
            ("strategy", strategy, Strategy),
            ("tokenization", tokenization, Tokenization),
            ("ending", ending, Ending),
            ("length", length, LengthRule),
        ):
            check_one_of(name, value, kind)
        self._lm = lm
        self._taxonomy = labels if isinstance(labels, Taxonomy) else Taxonomy(labels)
        self._retriever = BM25(self._taxonomy) if shortlist == "bm25" else shortlist
        if self._retriever is not None and not callable(self._retriever):
            raise OptionError(f"shortlist={shortlist!r} must be 'bm25' or a function")
        self._size = check_whole("shortlist_size", shortlist_size)
        n_labels = len(self._taxonomy) if self._retriever is None else self._size
        self._calibrate: Calibration | tuple[str, ...] | None = check_calibration(calibrate)
        if self._calibrate == "batch" and shortlist is not None:
            raise OptionError(
                "calibrate='batch' needs the same labels for all texts, no shortlists"
            )
        self._strategy = chosen_strategy(strategy, n_labels, tokenization)
        check_together(
            self._strategy,
            calibrates=self._calibrate is not None,
            length=length,
            any_way=tokenization == "any",
        )
        self._budget = Budget(
            1 if top_k is None else check_whole("top_k", top_k),
            check_whole("max_passes", max_passes),
            check_number("max_open_mass", max_open_mass, 0.0, 1.0),
        )
        self._way_out = way_out_of(
            none_of_these, self._taxonomy, has_shortlist=shortlist is not None
        )
        self._rules = Rules(
            length,
            top_k if self._strategy != "search" else self._budget.k,
            check_number("min_probability", min_probability, 0.0, 1.0),
            check_number("min_valid_mass", min_valid_mass, 0.0, 1.0),
            self._way_out,
            self._taxonomy.separator,
        )
        if prompt is not None and not callable(prompt):
            raise OptionError(f"prompt={prompt!r:.80} must be a function from a text to a prompt")
        self._prompt = prompt
        self._descriptions = check_flag("descriptions", descriptions)
        self._numbered = check_flag("index", index)
        self._listed = n_labels <= MOST_LISTED or index if list_labels is None else list_labels
        if index and not self._listed:
            raise OptionError(
                "index=True needs the labels in the prompt; list_labels=False hides them"
            )
        known = [*self._taxonomy.labels, *([self._way_out] if self._way_out else [])]
        self._question = Question(instructions, check_examples(examples, known))
        most = check_whole("max_pass_tokens", max_pass_tokens)
        self._scorer = Scorer(lm, tokenization, ending, most)
        check_whole("beam", beam)
        self._drill = None
        if self._calibrate == "pmi" and prompt is not None:
            raise OptionError("calibrate='pmi' needs the built-in prompt; pass texts of your own")
        if self._strategy == "drill":
            used = {
                "prompt": prompt, "shortlist": shortlist, "none_of_these": none_of_these,
                "index": index, "descriptions": descriptions, "list_labels": list_labels,
            }  # fmt: skip
            check_drill(used, length)
            self._drill = Drill(self._taxonomy, self._scorer, self._question, self._rules, beam)
        self._all = None if self._retriever else self._choices(self._taxonomy)
        self._priors: dict[Choices, NDArray[np.float64]] = {}
        self._settings = settings_of(
            self._taxonomy, lm,
            {
                "instructions": instructions, "examples": self._question.examples,
                "prompt": prompt, "list_labels": self._listed, "descriptions": descriptions,
                "index": index, "none_of_these": self._way_out, "strategy": self._strategy,
                "top_k": top_k, "max_passes": max_passes, "max_open_mass": max_open_mass,
                "beam": beam, "tokenization": tokenization, "ending": ending, "length": length,
                "calibrate": self._calibrate, "shortlist": shortlist,
                "shortlist_size": shortlist_size, "min_probability": min_probability,
                "min_valid_mass": min_valid_mass,
            },
        )  # fmt: skip

    @property
    def taxonomy(self) -> Taxonomy:
        """The labels."""
        return self._taxonomy

    @property
    def lm(self) -> LanguageModel:
        """The model."""
        return self._lm

    def __repr__(self) -> str:
        return f"<Classifier {self._taxonomy.name} on {self._lm.name}, {self._strategy}>"

    @property
    def settings(self) -> Settings:
        """What results depend on, besides the text; functions are known by their names."""
        return dict(self._settings)

    @property
    def compares_texts(self) -> bool:
        """Whether what a text gets depends on those that are classified together with it."""
        return self._calibrate == "batch"

    def __call__(self, text: str) -> Classification:
        """Classify one text.

        Raises:
            OptionError: the classifier compares texts, which takes several.
            PromptTooLongError: text and labels do not fit into the model's context.
        """
        (found,) = self._results([[(None, text)]], "raise")
        assert not isinstance(found, UsageError), "errors are raised"
        return found

    def _found(
        self, texts: Iterable[str], batch_size: int, on_error: OnError, progress: bool | None
    ) -> Iterator[Classification | UsageError]:
        return self._results(parts(texts, batch_size, progress), on_error)

    def render(self, text: str) -> Prompt:
        """What the model is asked about a text."""
        return self._ask(text, self._all or self._shortlisted(text))

    def _results(
        self, parts: Iterable[Part], on_error: OnError
    ) -> Iterator[Classification | UsageError]:
        if self.compares_texts:
            yield from self._relative_to_each_other(parts, on_error)
            return
        for part in parts:
            yield from self._classified(part, on_error)

    def _classified(self, part: Part, on_error: OnError) -> list[Classification | UsageError]:
        if self._drill is not None:
            return [made_of(self._drilled, place, on_error) for place in part]
        asked = [made_of(self._asked, place, on_error) for place in part]
        good = iter(self._scored([one for one in asked if isinstance(one, Asked)]))
        return [
            one if isinstance(one, UsageError) else self._finished(one.choices, next(good))
            for one in asked
        ]

    def _finished(self, choices: Choices, scored: Scored) -> Classification:
        return finish(scored, choices, self._rules, self._prior(choices))

    def _drilled(self, text: str) -> Classification:
        assert self._drill is not None
        return self._drill(text)

    def _asked(self, text: str) -> Asked:
        choices = self._all or self._shortlisted(text)
        return self._scorer.ask(self._ask(text, choices), choices)

    def _scored(self, asked: Sequence[Asked]) -> list[Scored]:
        if self._strategy == "search":
            return [self._scorer.best(one, self._budget) for one in asked]
        return self._scorer.full(asked)

    def _relative_to_each_other(
        self, parts: Iterable[Part], on_error: OnError
    ) -> Iterator[Classification | UsageError]:
        """All texts, whose mean is taken away from each; none is ready before the last is read."""
        assert self._all is not None
        errors: dict[int, UsageError] = {}
        scored: list[Scored] = []
        for part in parts:
            asked = [made_of(self._asked, place, on_error) for place in part]
            first = len(errors) + len(scored)
            errors |= {i: one for i, one in enumerate(asked, first) if isinstance(one, UsageError)}
            scored += self._scored([one for one in asked if isinstance(one, Asked)])
        prior = prior_of_batch(scored, self._rules) if scored else None
        good = (finish(one, self._all, self._rules, prior) for one in scored)
        yield from (errors.get(i) or next(good) for i in range(len(errors) + len(scored)))

    def _prior(self, choices: Choices) -> NDArray[np.float64] | None:
        if self._calibrate is None:
            return None
        prior = self._priors.get(choices)
        if prior is None:
            ask = partial(self._ask, choices=choices)
            prior = find_prior(
                self._calibrate, self._question, ask, choices, self._scorer, self._rules
            )
            if len(self._priors) >= MOST_PRIORS:
                self._priors.clear()
            self._priors[choices] = prior
        return prior

    def _ask(self, text: str, choices: Choices) -> Prompt:
        if self._prompt is None:
            return self._question.ask(text, choices)
        return prompt_by(self._prompt, text)

    def _shortlisted(self, text: str) -> Choices:
        assert self._retriever is not None
        return self._choices(candidates(self._retriever, self._taxonomy, text, self._size))

    def _choices(self, taxonomy: Taxonomy) -> Choices:
        labels, written = taxonomy.labels, taxonomy.texts
        notes = (
            tuple(entry.description for entry in taxonomy.entries()) if self._descriptions else ()
        )
        if self._way_out:
            labels, written = (*labels, self._way_out), (*written, self._way_out)
            notes = (*notes, "") if notes else ()
        if self._numbered:
            written = tuple(str(number) for number in range(1, len(labels) + 1))
        return Choices(labels, written, notes, bool(self._listed), self._numbered)
