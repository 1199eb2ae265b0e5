"""A schema, a model and options, ready to generate: the handle behind `structgen.generate`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from structgen.compiler import CompiledSchema
from structgen.compiler import compile as compile_schema
from structgen.errors import OptionError, PromptTooLongError, ValidationFailedError
from structgen.options import Layout, Limits
from structgen.prompts import Prompt, SchemaPrompt, render, schema_text
from structgen.results import Generation, Timings, Usage
from structgen.runtime.lm import LanguageModel
from structgen.runtime.loop import Finished, Step, decode
from structgen.runtime.sampling import Sampling
from structgen.schema.roots import Form
from structgen.scores import Written, label_scores
from structgen.tokens.vocabulary import Vocabulary

T = TypeVar("T")

MAX_NEW_TOKENS = 512


class Generator(Generic[T]):
    """Generates values of one type with one model; immutable, shared between threads.

    Example: `gen = Generator(Triage, lm); gen("My card was charged twice.") -> Triage(...)`

    Args:
        schema: a Pydantic model, any type that Pydantic can validate, a JSON Schema, or a function,
            whose arguments are generated.
        lm: a language model, see `structgen.load`.
        max_new_tokens: the value always ends within this budget.
        retries: how often a value that a Python validator rejects is written anew, each time within
            `max_new_tokens`: all attempts together take at most `(retries + 1) * max_new_tokens`.
            The first attempt is made as asked; the others sample, also where `do_sample` is False,
            each with a seed of its own that follows from `seed`.
        do_sample, temperature, top_k, top_p, min_p, seed: as in transformers; greedy by default.
        layout: `spaced`, `compact` or `flexible` JSON.
        require_all: write also the fields that have a default.
        schema_prompt: what the prompt says about the schema: True for the built-in wording, False
            for nothing, a text in which `{schema}` is replaced, or a function.
        banned_strings, allowed_token_ids, banned_token_ids: see `structgen.compile`.

    Raises:
        SchemaError: the schema cannot be enforced; all faults at once.
        BudgetError: the shortest value does not fit into `max_new_tokens`.
        OptionError: an option is out of its range.
    """

    def __init__(
        self,
        schema: type[T] | Form[T] | Any,
        lm: LanguageModel,
        *,
        max_new_tokens: int = MAX_NEW_TOKENS,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int | None = None,
        retries: int = 0,
        layout: Layout = "spaced",
        require_all: bool = False,
        schema_prompt: SchemaPrompt = True,
        banned_strings: Iterable[str] | None = (),
        allowed_token_ids: Iterable[int] | None = None,
        banned_token_ids: Iterable[int] | None = (),
        limits: Limits | None = None,
    ) -> None:
        self._sampling = Sampling(do_sample, temperature, top_k, top_p, min_p, seed)
        self._max_new_tokens = check_max_new_tokens(max_new_tokens)
        self._retries = check_retries(retries, self._sampling)
        if not isinstance(getattr(lm, "vocabulary", None), Vocabulary):
            raise OptionError(
                f"lm must be a language model, got {lm!r}; use structgen.load(...) for a model's "
                "id, folder or objects"
            )
        self._lm = lm
        self._compiled: CompiledSchema[T] = compile_schema(
            schema,
            lm.vocabulary,
            layout=layout,
            require_all=require_all,
            banned_strings=banned_strings,
            allowed_token_ids=allowed_token_ids,
            banned_token_ids=banned_token_ids,
            limits=limits,
        )
        self._addition = schema_text(self._compiled.schema, schema_prompt)
        self._compiled.session(self._max_new_tokens)  # too small a budget shows right here

    def __repr__(self) -> str:
        return f"<Generator {self._compiled.title} on {self._lm.name}>"

    @property
    def compiled(self) -> CompiledSchema[T]:
        """The automaton."""
        return self._compiled

    @property
    def lm(self) -> LanguageModel:
        """The model."""
        return self._lm

    def __call__(self, prompt: Prompt, *, max_new_tokens: int | None = None) -> T:
        """Generate a value.

        Raises:
            PromptTooLongError: the prompt leaves no room for a value in the model's context.
            BudgetError: the shortest value does not fit into `max_new_tokens`.
            ValidationFailedError: a Python validator rejected the value of every attempt.
        """
        return self.run(prompt, max_new_tokens=max_new_tokens).value

    def render(self, prompt: Prompt) -> Prompt:
        """What the model is given: the prompt with the schema's short form."""
        return render(prompt, self._addition)

    def run(self, prompt: Prompt, *, max_new_tokens: int | None = None) -> Generation[T]:
        """Generate a value, and return it with its text, counts, timings and label scores."""
        started = time.perf_counter()
        budget = self._max_new_tokens
        if max_new_tokens is not None:
            budget = check_max_new_tokens(max_new_tokens)
        prompt_ids = self._lm.encode_prompt(self.render(prompt))
        budget = self._within_context(len(prompt_ids), budget)
        before_decoding_s = time.perf_counter() - started
        attempts: list[_Attempt] = []
        while True:
            attempts.append(self._attempt(prompt_ids, budget, len(attempts)))
            try:
                value = self._compiled.validate(attempts[-1].text)
            except ValidationFailedError as error:
                if len(attempts) > self._retries:
                    rejected = [attempt.text for attempt in attempts[:-1]]
                    raise error.after(rejected) from error.cause
            else:
                timings = _timings(attempts, started, before_decoding_s)
                return self._generation(value, len(prompt_ids), attempts, timings)

    def _attempt(self, prompt_ids: list[int], budget: int, index: int) -> _Attempt:
        """Write a value; `index` says how many were written before."""
        session = self._compiled.session(budget)
        sampling = self._sampling.attempt(index)
        steps: list[Step] = []
        end: Finished | None = None
        for event in decode(self._lm, [prompt_ids], [session], sampling):
            if isinstance(event, Finished):
                end = event
            else:
                steps.append(event)
        assert end is not None, "the loop closes every row"
        ids = tuple(step.token_id for step in steps if not step.end)
        return _Attempt(ids, self._lm.vocabulary.decode(ids).decode("utf-8"), steps, end)

    def _within_context(self, prompt_tokens: int, budget: int) -> int:
        """The budget, cut to what the model's context leaves."""
        context = self._lm.context_length
        if context is None or prompt_tokens + budget <= context:
            return budget
        room = context - prompt_tokens
        if room < self._compiled.min_tokens:
            raise PromptTooLongError(prompt_tokens, context, self._compiled.min_tokens)
        return room

    def _generation(
        self, value: T, prompt_tokens: int, attempts: list[_Attempt], timings: Timings
    ) -> Generation[T]:
        vocabulary, last = self._lm.vocabulary, attempts[-1]
        written = [
            Written(len(vocabulary.bytes_of(step.token_id) or b"$"), step.log_prob, step.valid_mass)
            for step in last.steps
        ]
        return Generation(
            value=value,
            text=last.text,
            token_ids=last.token_ids,
            finish_reason=last.end.finish_reason,
            usage=_usage(prompt_tokens, attempts),
            timings=timings,
            labels=label_scores(self._compiled.pieces(last.text), last.text, written),
            rejected=tuple(attempt.text for attempt in attempts[:-1]),
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A value as it was written, before validation."""

    token_ids: tuple[int, ...]
    text: str
    steps: list[Step]
    end: Finished


def _usage(prompt_tokens: int, attempts: list[_Attempt]) -> Usage:
    completion_tokens = sum(len(attempt.token_ids) for attempt in attempts)
    forced_tokens = sum(step.forced for attempt in attempts for step in attempt.steps)
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        sampled_tokens=completion_tokens - forced_tokens,
        forced_tokens=forced_tokens,
        forward_passes=sum(attempt.end.forward_passes for attempt in attempts),
        attempts=len(attempts),
    )


def _timings(attempts: list[_Attempt], started: float, before_decoding_s: float) -> Timings:
    return Timings(
        total_s=time.perf_counter() - started,
        forward_s=sum(attempt.end.forward_s for attempt in attempts),
        mask_s=sum(attempt.end.mask_s for attempt in attempts),
        first_mask_s=before_decoding_s + attempts[0].end.first_mask_s,
    )


def check_max_new_tokens(value: object) -> int:
    """A token budget, refused unless it is a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"max_new_tokens={value!r} must be a whole number above 0")
    return value


def check_retries(retries: object, sampling: Sampling) -> int:
    """A number of retries, refused where each of them would repeat the first attempt."""
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise OptionError(f"retries={retries!r} must be a whole number from 0 up")
    if retries and sampling.top_k == 1:
        raise OptionError(
            f"retries={retries} with top_k=1 would write the same value again; leave top_k out"
        )
    return retries
