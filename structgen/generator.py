"""A schema, a model and options, ready to generate: the handle behind `structgen.generate`."""

from __future__ import annotations

import time
from typing import Any, Generic, TypeVar

from structgen.compiler import CompiledSchema
from structgen.compiler import compile as compile_schema
from structgen.errors import OptionError, PromptTooLongError
from structgen.options import Layout, Limits
from structgen.prompts import Prompt, SchemaPrompt, render, schema_text
from structgen.results import Generation, Timings, Usage
from structgen.runtime.lm import LanguageModel
from structgen.runtime.loop import Finished, Step, decode
from structgen.runtime.sampling import Sampling
from structgen.scores import Written, label_scores
from structgen.tokens.vocabulary import Vocabulary

T = TypeVar("T")

MAX_NEW_TOKENS = 512


class Generator(Generic[T]):
    """Generates values of one type with one model; immutable, shared between threads.

    Example: `gen = Generator(Triage, lm); gen("My card was charged twice.") -> Triage(...)`

    Args:
        schema: a Pydantic model, or any type that Pydantic can validate.
        lm: a language model, see `structgen.load`.
        max_new_tokens: the value always ends within this budget.
        do_sample, temperature, top_k, top_p, min_p, seed: as in transformers; greedy by default.
        layout: `spaced`, `compact` or `flexible` JSON.
        require_all: write also the fields that have a default.
        schema_prompt: what the prompt says about the schema: True for the built-in wording, False
            for nothing, a text in which `{schema}` is replaced, or a function.

    Raises:
        SchemaError: the schema cannot be enforced; all faults at once.
        BudgetError: the shortest value does not fit into `max_new_tokens`.
        OptionError: an option is out of its range.
    """

    def __init__(
        self,
        schema: type[T] | Any,
        lm: LanguageModel,
        *,
        max_new_tokens: int = MAX_NEW_TOKENS,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int | None = None,
        layout: Layout = "spaced",
        require_all: bool = False,
        schema_prompt: SchemaPrompt = True,
        limits: Limits | None = None,
    ) -> None:
        self._sampling = Sampling(do_sample, temperature, top_k, top_p, min_p, seed)
        self._max_new_tokens = check_max_new_tokens(max_new_tokens)
        if not isinstance(getattr(lm, "vocabulary", None), Vocabulary):
            raise OptionError(
                f"lm must be a language model, got {lm!r}; use structgen.load(...) for a model's "
                "id, folder or objects"
            )
        self._lm = lm
        self._compiled: CompiledSchema[T] = compile_schema(
            schema, lm.vocabulary, layout=layout, require_all=require_all, limits=limits
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
            ValidationFailedError: a Python validator rejected the value.
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
        token_ids = self._lm.encode_prompt(self.render(prompt))
        session = self._compiled.session(self._within_context(len(token_ids), budget))
        before_decoding_s = time.perf_counter() - started
        steps: list[Step] = []
        end: Finished | None = None
        for event in decode(self._lm, [token_ids], [session], self._sampling):
            if isinstance(event, Finished):
                end = event
            else:
                steps.append(event)
        assert end is not None, "the loop closes every row"
        return self._generation(token_ids, steps, end, started, before_decoding_s)

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
        self,
        prompt_ids: list[int],
        steps: list[Step],
        end: Finished,
        started: float,
        before_decoding_s: float,
    ) -> Generation[T]:
        vocabulary = self._lm.vocabulary
        ids = tuple(step.token_id for step in steps if not step.end)
        text = vocabulary.decode(ids).decode("utf-8")
        value = self._compiled.validate(text)
        written = [
            Written(len(vocabulary.bytes_of(step.token_id) or b"$"), step.log_prob, step.valid_mass)
            for step in steps
        ]
        n_forced = sum(step.forced for step in steps)
        return Generation(
            value=value,
            text=text,
            token_ids=ids,
            finish_reason=end.finish_reason,
            usage=Usage(
                prompt_tokens=len(prompt_ids),
                completion_tokens=len(ids),
                sampled_tokens=len(ids) - n_forced,
                forced_tokens=n_forced,
                forward_passes=end.forward_passes,
            ),
            timings=Timings(
                total_s=time.perf_counter() - started,
                forward_s=end.forward_s,
                mask_s=end.mask_s,
                first_mask_s=before_decoding_s + end.first_mask_s,
            ),
            labels=label_scores(self._compiled.schema, text, written),
        )


def check_max_new_tokens(value: object) -> int:
    """A token budget, refused unless it is a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"max_new_tokens={value!r} must be a whole number above 0")
    return value
