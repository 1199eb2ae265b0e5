"""A schema, a model and options, ready to generate: the handle behind `structgen.generate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from structgen.batch import (
    BATCH_SIZE,
    OnError,
    check_batch_options,
    in_order,
    length,
    outcomes,
    per_prompt,
    shown,
)
from structgen.checks import (
    check_beams,
    check_count,
    check_max_new_tokens,
    check_prompts,
    check_retries,
)
from structgen.errors import OptionError, PromptTooLongError, StructgenError
from structgen.later import imported, later
from structgen.options import Layout, Limits
from structgen.prompts import Prompt, SchemaPrompt, render, schema_text
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel
from structgen.runtime.sampling import Sampling
from structgen.schema.roots import Form
from structgen.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    import structgen.aligned as aligned
    import structgen.beams as beams
    import structgen.compiler as compiler
    import structgen.jobs as work
    import structgen.partial as partials
    import structgen.streams as streams
else:
    aligned = later("structgen.aligned")
    beams = later("structgen.beams")
    compiler = later("structgen.compiler")
    work = later("structgen.jobs")
    partials = later("structgen.partial")
    streams = later("structgen.streams")

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
        sampling: "masked" chooses each token among the legal ones; "aligned" draws whole values as
            the model itself would, were it to write until a value is valid: slower, and without
            top_k, top_p, min_p and repetition_penalty. It samples, whatever `do_sample` says. An
            `Aligned(...)` says how hard to try.
        retries: how often a value that a Python validator rejects is written anew, each time within
            `max_new_tokens`: all attempts together take at most `(retries + 1) * max_new_tokens`.
            The first attempt is made as asked; the others sample, also where `do_sample` is False,
            each with a seed of its own that follows from `seed`.
        do_sample, temperature, top_k, top_p, min_p, seed, repetition_penalty: as in transformers;
            greedy by default.
        num_beams: more than 1 looks for the most probable value by beam search; a validator that
            rejects it gets the next best ones, as many as `retries` says and the search has found.
            It finds at most `num_beams` values, so `retries` must be less.
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
        repetition_penalty: float = 1.0,
        num_beams: int = 1,
        sampling: aligned.SamplingMethod = "masked",
        retries: int = 0,
        layout: Layout = "spaced",
        require_all: bool = False,
        schema_prompt: SchemaPrompt = True,
        banned_strings: Iterable[str] | None = (),
        allowed_token_ids: Iterable[int] | None = None,
        banned_token_ids: Iterable[int] | None = (),
        limits: Limits | None = None,
    ) -> None:
        self._sampling = Sampling(
            do_sample, temperature, top_k, top_p, min_p, seed, repetition_penalty
        )
        self._num_beams = check_beams(num_beams, self._sampling)
        self._aligned = aligned.aligned_options(sampling, self._sampling, self._num_beams)
        if self._aligned is not None:
            self._sampling = replace(self._sampling, do_sample=True)
        self._max_new_tokens = check_max_new_tokens(max_new_tokens)
        self._retries = check_retries(retries, self._sampling, self._num_beams)
        if not isinstance(getattr(lm, "vocabulary", None), Vocabulary):
            raise OptionError(
                f"lm must be a language model, got {lm!r}; use structgen.load(...) for a model's "
                "id, folder or objects"
            )
        self._lm = lm
        self._partial_values = partials.PartialValues(schema)
        self._compiled: compiler.CompiledSchema[T] = compiler.compile(
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
        imported(work)  # else the first prompt would wait for it

    def __repr__(self) -> str:
        return f"<Generator {self._compiled.title} on {self._lm.name}>"

    @property
    def compiled(self) -> compiler.CompiledSchema[T]:
        """The automaton."""
        return self._compiled

    @property
    def lm(self) -> LanguageModel:
        """The model."""
        return self._lm

    def __call__(
        self, prompt: Prompt, *, max_new_tokens: int | None = None, seed: int | None = None
    ) -> T:
        """Generate a value.

        Raises:
            PromptTooLongError: the prompt leaves no room for a value in the model's context.
            BudgetError: the shortest value does not fit into `max_new_tokens`.
            ValidationFailedError: a Python validator rejected the value of every attempt.
        """
        return self.run(prompt, max_new_tokens=max_new_tokens, seed=seed).value

    def render(self, prompt: Prompt) -> Prompt:
        """What the model is given: the prompt with the schema's short form."""
        return render(prompt, self._addition)

    def run(
        self, prompt: Prompt, *, max_new_tokens: int | None = None, seed: int | None = None
    ) -> Generation[T]:
        """Generate a value, and return it with its text, counts, timings and scores.

        Args:
            seed: in place of the generator's own.
        """
        job = self.job(prompt, max_new_tokens=max_new_tokens, seed=seed)
        do = self._one_by_one()
        return self._only(job) if do is None else do(job)

    def _one_by_one(self) -> Callable[[work.Job[T]], Generation[T]] | None:
        """What does jobs that are no rows of a batch; None if ours are."""
        if self._aligned is not None:
            return aligned.AlignedDraws(self._lm, self._aligned).first_valid
        if self._num_beams > 1:
            return partial(beams.first_valid, lm=self._lm, num_beams=self._num_beams)
        return None

    def _only(self, job: work.Job[T]) -> Generation[T]:
        """Do one job."""
        for event in work.drive(self._lm, iter([job]), batch_size=1):
            if isinstance(event, work.Outcome):
                return event.generation()
        raise AssertionError("the loop closes every row")

    def candidates(
        self,
        prompt: Prompt,
        num_return_sequences: int,
        *,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> list[Generation[T]]:
        """Several values for one prompt, which is read once.

        With `do_sample` or `sampling="aligned"` they are drawn independently, the i-th as
        `run(prompt, seed=seed + i)` would. With `num_beams` they are the most probable ones, best
        first, without repeats, and there are fewer of them where there are fewer values, or where
        validators reject some.

        Raises:
            OptionError: greedy decoding has one value only, and `num_beams` beams that many.
        """
        check_batch_options(batch_size, "raise", None)
        self._check_candidates(num_return_sequences)
        if self._num_beams > 1:
            job = self.job(prompt, max_new_tokens=max_new_tokens)
            return beams.best_valid(job, self._lm, self._num_beams, num_return_sequences)
        job = self.job(prompt, max_new_tokens=max_new_tokens, seed=seed)
        each = job.sampling.for_rows(num_return_sequences)
        jobs = (replace(job, index=i, sampling=s, attempts=[]) for i, s in enumerate(each))
        if (do := self._one_by_one()) is not None:
            return [do(replace(job, started=time.perf_counter())) for job in jobs]
        found = outcomes(self._lm, jobs, batch_size=batch_size, progress=False, total=None)
        return cast("list[Generation[T]]", in_order(found, "raise"))

    def _check_candidates(self, num_return_sequences: object) -> None:
        check_count("num_return_sequences", num_return_sequences)
        assert isinstance(num_return_sequences, int)
        if self._num_beams > 1:
            if num_return_sequences > self._num_beams:
                raise OptionError(
                    f"num_return_sequences={num_return_sequences} must be at most "
                    f"num_beams={self._num_beams}"
                )
        elif num_return_sequences > 1 and not self._sampling.do_sample:
            raise OptionError(
                f"num_return_sequences={num_return_sequences} of a greedy generator would all be "
                "the same; pass do_sample=True or num_beams to Generator"
            )

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        *,
        batch_size: int = BATCH_SIZE,
        max_new_tokens: int | Sequence[int] | None = None,
        seeds: Sequence[int] | None = None,
        on_error: Literal["raise"] = "raise",
        progress: bool | None = None,
    ) -> list[T]: ...
    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        *,
        batch_size: int = BATCH_SIZE,
        max_new_tokens: int | Sequence[int] | None = None,
        seeds: Sequence[int] | None = None,
        on_error: Literal["return"],
        progress: bool | None = None,
    ) -> list[T | Exception]: ...
    def batch(
        self,
        prompts: Iterable[Prompt],
        *,
        batch_size: int = BATCH_SIZE,
        max_new_tokens: int | Sequence[int] | None = None,
        seeds: Sequence[int] | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> list[T] | list[T | Exception]:
        """A value for each prompt, in their order; the model reads `batch_size` rows at a time.

        Each value is the one that `run` would give for its prompt alone, up to the rounding of the
        model's arithmetic, prompt i with `seed + i`.

        Args:
            max_new_tokens: for all prompts or one each, in place of the generator's own.
            seeds: one for each prompt.
            on_error: "return" puts an error in the place of the value, "raise" raises the first.
            progress: a progress bar; None shows one where standard error is a terminal.
        """
        check_batch_options(batch_size, on_error, progress)
        found = self._outcomes(prompts, batch_size, max_new_tokens, seeds, progress)
        results = in_order(found, on_error)
        return [r if isinstance(r, Exception) else cast("T", r.value) for r in results]

    def as_completed(
        self,
        prompts: Iterable[Prompt],
        *,
        batch_size: int = BATCH_SIZE,
        max_new_tokens: int | Sequence[int] | None = None,
        seeds: Sequence[int] | None = None,
        progress: bool | None = None,
    ) -> Iterator[tuple[int, Generation[T] | Exception]]:
        """(index of the prompt, result or error) as they finish; options as for `batch`.

        Prompts are taken from the iterable when there is room for them. Closing the iterator, or
        leaving it, frees what the model remembers.
        """
        check_batch_options(batch_size, "return", progress)
        return self._outcomes(prompts, batch_size, max_new_tokens, seeds, progress)

    def _outcomes(
        self,
        prompts: Iterable[Prompt],
        batch_size: int,
        max_new_tokens: int | Sequence[int] | None,
        seeds: Sequence[int] | None,
        progress: bool | None,
    ) -> Iterator[tuple[int, Generation[T] | Exception]]:
        check_prompts(prompts)
        if isinstance(max_new_tokens, Sequence) or seeds is not None:
            prompts = list(prompts)  # to see whether there is one for each
        total = length(prompts)
        budgets = per_prompt("max_new_tokens", max_new_tokens, total)
        each_seed = per_prompt("seeds", seeds, total)
        rows = zip(count(), prompts, budgets, each_seed)
        jobs = (self.job_or_refusal(*row) for row in rows)
        return self.finished(jobs, batch_size=batch_size, progress=progress, total=total)

    def finished(
        self,
        jobs: Iterator[work.Job[T] | work.Refused],
        *,
        batch_size: int,
        progress: bool | None,
        total: int | None,
    ) -> Iterator[tuple[int, Generation[T] | Exception]]:
        """(index, result or error) of jobs of this generator as they finish."""
        if (do := self._one_by_one()) is not None:
            found = (_done(do, job) for job in jobs)
            return shown(found, progress, total)
        return outcomes(self._lm, jobs, batch_size=batch_size, progress=progress, total=total)

    def job_or_refusal(
        self, index: int, prompt: Prompt, max_new_tokens: int | None, seed: int | None
    ) -> work.Job[T] | work.Refused:
        """The job of one prompt of a batch, seeded with `seed + index` if it has no own seed."""
        try:
            return self.job(prompt, max_new_tokens=max_new_tokens, seed=seed, index=index)
        except StructgenError as error:
            return work.Refused(index, error)

    def job(
        self,
        prompt: Prompt,
        *,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        index: int = 0,
    ) -> work.Job[T]:
        """What there is to do for a prompt; everything about it is checked."""
        started = time.perf_counter()
        budget = self._max_new_tokens
        if max_new_tokens is not None:
            budget = check_max_new_tokens(max_new_tokens)
        if seed is None:
            sampling = self._sampling.for_row(index)
        else:
            sampling = replace(self._sampling, seed=seed)
        prompt_ids = self._lm.encode_prompt(self.render(prompt))
        budget = self._within_context(len(prompt_ids), budget)
        self._compiled.session(budget)  # too small a budget shows right here
        return work.Job(
            index=index,
            compiled=self._compiled,
            prompt_ids=prompt_ids,
            budget=budget,
            sampling=sampling,
            retries=self._retries,
            started=started,
            before_decoding_s=time.perf_counter() - started,
        )

    def _within_context(self, prompt_tokens: int, budget: int) -> int:
        """The budget, cut to what the model's context leaves."""
        context = self._lm.context_length
        if context is None or prompt_tokens + budget <= context:
            return budget
        room = context - prompt_tokens
        if room < self._compiled.min_tokens:
            raise PromptTooLongError(prompt_tokens, context, self._compiled.min_tokens)
        return room

    def stream(
        self, prompt: Prompt, *, max_new_tokens: int | None = None, seed: int | None = None
    ) -> streams.Stream[T]:
        """Generate a value, token by token: an iterator of what is new and what there is so far.

        Example: `for event in gen.stream("..."): show(event.partial)`

        Raises:
            OptionError: beam search and aligned draws know the value only at its end.
        """
        if self._aligned is not None:
            raise OptionError(
                "sampling='aligned' cannot be streamed: which attempt becomes the value shows at "
                "its end only; use run(), or sampling='masked'"
            )
        if self._num_beams > 1:
            raise OptionError(
                f"num_beams={self._num_beams} cannot be streamed: which beam is the best one shows "
                "at the end only; leave num_beams out, or use run()"
            )
        job = self.job(prompt, max_new_tokens=max_new_tokens, seed=seed)
        return streams.Stream(job, self._lm, self._partial_values)

    def astream(
        self, prompt: Prompt, *, max_new_tokens: int | None = None, seed: int | None = None
    ) -> streams.AsyncStream[T]:
        """The same for `async for`: each step runs in a worker thread.

        The arguments are checked with the first event.
        """
        return streams.AsyncStream(
            partial(self.stream, prompt, max_new_tokens=max_new_tokens, seed=seed)
        )

    async def arun(
        self, prompt: Prompt, *, max_new_tokens: int | None = None, seed: int | None = None
    ) -> Generation[T]:
        """`run` in worker threads; cancelling the task ends it after the step that is running.

        A beam search is one step, and so is an aligned draw.
        """
        if self._one_by_one() is not None:
            run = partial(self.run, prompt, max_new_tokens=max_new_tokens, seed=seed)
            return await streams.in_thread(run)
        return await self.astream(prompt, max_new_tokens=max_new_tokens, seed=seed).finish()

    async def agenerate(
        self, prompt: Prompt, *, max_new_tokens: int | None = None, seed: int | None = None
    ) -> T:
        """Generate a value in worker threads, see `arun`."""
        return (await self.arun(prompt, max_new_tokens=max_new_tokens, seed=seed)).value


def _done(
    do: Callable[[work.Job[T]], Generation[T]], job: work.Job[T] | work.Refused
) -> tuple[int, Generation[T] | Exception]:
    if isinstance(job, work.Refused):
        return job.index, job.error
    try:
        return job.index, do(job)
    except Exception as error:  # users' validators run here; it is handed to the caller
        return job.index, error
