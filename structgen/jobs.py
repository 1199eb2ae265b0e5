"""Jobs: one value for one prompt each, from the request to the validated result.

A job may take several attempts, where a Python validator rejects what was written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from structgen.compiler import CompiledSchema
from structgen.errors import StructgenError, ValidationFailedError
from structgen.results import Generation, Timings, TokenScore, Usage
from structgen.runtime.events import Failed, Finished, Request, Step
from structgen.runtime.lm import LanguageModel
from structgen.runtime.loop import decode_requests
from structgen.runtime.sampling import Sampling
from structgen.scores import Written, label_scores
from structgen.tokens.vocabulary import Vocabulary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A value as it was written, before validation."""

    text: str
    steps: list[Step]
    end: Finished
    healed: int = 0
    """Bytes of the prompt that its first tokens begin with, see `Session.held_back`."""

    @classmethod
    def of(
        cls, steps: list[Step], end: Finished, vocabulary: Vocabulary, healed: int = 0
    ) -> Attempt:
        """The attempt that these steps wrote."""
        ids = [step.token_id for step in steps if not step.end]
        return cls(vocabulary.decode(ids)[healed:].decode("utf-8"), steps, end, healed)

    def tokens(self, vocabulary: Vocabulary) -> Iterator[TokenScore]:
        """What is known of each token, without the bytes that belong to the prompt."""
        left = self.healed
        for step in self.steps:
            data = b"" if step.end else vocabulary.bytes_of(step.token_id) or b""
            text, left = data[left:], max(left - len(data), 0)
            yield TokenScore(step.token_id, text, step.log_prob, step.valid_mass, step.forced)


@dataclass(slots=True)
class Job(Generic[T]):
    """A value to be generated; mutable, of one thread."""

    index: int
    """Names the job among others."""
    compiled: CompiledSchema[T]
    prompt_ids: list[int]
    budget: int
    """Tokens for each attempt."""
    sampling: Sampling
    retries: int
    started: float
    """`time.perf_counter()` when the call began."""
    before_decoding_s: float
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    healed: int = 0
    """Bytes of the prompt that the next attempt begins with."""
    n_held: int = 0
    """Tokens that wrote them in the prompt."""
    sessions_s: tuple[float, ...] = ()
    """What it took to begin each attempt, mostly to find what of the prompt is to be held back."""

    def request(self) -> Request:
        """What the loop has to do for the next attempt."""
        started = time.perf_counter()
        session = self.compiled.session(self.budget, prompt_ids=self.prompt_ids)
        self.sessions_s += (time.perf_counter() - started,)
        held = session.held_back
        self.n_held = len(held)
        self.healed = len(self.compiled.vocabulary.decode(held))
        prompt = self.prompt_ids[: len(self.prompt_ids) - len(held)]
        sampling = self.sampling.attempt(len(self.attempts))
        return Request(self.index, prompt, session, sampling)

    def close(self, attempt: Attempt) -> Generation[T] | None:
        """The result if validation is content with the attempt, None if there is to be another.

        Raises:
            ValidationFailedError: the last attempt was rejected too.
        """
        self.attempts.append(attempt)
        try:
            value = self.compiled.validate(attempt.text)
        except ValidationFailedError as error:
            if len(self.attempts) <= self.retries:
                return None
            rejected = [earlier.text for earlier in self.attempts[:-1]]
            raise error.after(rejected) from error.cause
        return self._generation(value)

    def _generation(self, value: T) -> Generation[T]:
        last = self.attempts[-1]
        tokens = tuple(last.tokens(self.compiled.vocabulary))
        eos = self.compiled.vocabulary.eos_token_ids
        written = [
            Written(1 if t.token_id in eos else len(t.text), t.log_prob, t.valid_mass)
            for t in tokens
        ]
        labels = label_scores(self.compiled.pieces(last.text), last.text, written)
        return Generation(
            value=self.compiled.rated(value, labels),
            text=last.text,
            token_ids=tuple(step.token_id for step in last.steps if not step.end),
            finish_reason=last.end.finish_reason,
            usage=self._usage(),
            timings=self._timings(),
            labels=labels,
            rejected=tuple(attempt.text for attempt in self.attempts[:-1]),
            tokens=tokens,
        )

    def _usage(self) -> Usage:
        steps = [step for attempt in self.attempts for step in attempt.steps if not step.end]
        forced = sum(step.forced for step in steps)
        return Usage(
            prompt_tokens=len(self.prompt_ids) - self.n_held,
            completion_tokens=len(steps),
            sampled_tokens=len(steps) - forced,
            forced_tokens=forced,
            forward_passes=sum(attempt.end.forward_passes for attempt in self.attempts),
            attempts=len(self.attempts),
        )

    def _timings(self) -> Timings:
        return Timings(
            total_s=time.perf_counter() - self.started,
            forward_s=sum(attempt.end.forward_s for attempt in self.attempts),
            mask_s=sum(self.sessions_s) + sum(attempt.end.mask_s for attempt in self.attempts),
            first_mask_s=sum(
                (self.before_decoding_s, self.sessions_s[0], self.attempts[0].end.first_mask_s)
            ),
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """A job that could not even begin, for instance because its prompt is too long."""

    index: int
    error: StructgenError


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of a job."""

    index: int
    result: Generation[T] | Exception
    """An error is a `StructgenError`, or what a user's validator raised by mistake."""

    def generation(self) -> Generation[T]:
        """The result; an error is raised."""
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def drive(
    lm: LanguageModel, jobs: Iterator[Job[Any] | Refused], *, batch_size: int
) -> Iterator[Step | Outcome[Any]]:
    """Do jobs on one model, `batch_size` at a time; their steps, and outcomes as they finish.

    Jobs are taken from the iterator one by one when there is room for them.
    """
    driver = _Driver(lm.vocabulary, jobs)
    for event in decode_requests(lm, driver.next_request, batch_size=batch_size):
        if isinstance(event, Step):
            driver.steps[event.row].append(event)
            yield event
        elif (outcome := driver.close(event)) is not None:
            yield outcome
        yield from driver.take_refused()
    yield from driver.take_refused()


class _Driver:
    """The jobs that are being done."""

    def __init__(self, vocabulary: Vocabulary, jobs: Iterator[Job[Any] | Refused]) -> None:
        self.steps: dict[int, list[Step]] = {}
        self._vocabulary = vocabulary
        self._waiting = jobs
        self._open: dict[int, Job[Any]] = {}
        self._again: deque[Job[Any]] = deque()
        self._refused: list[Refused] = []

    def next_request(self) -> Request | None:
        """A job that needs another attempt, or a new one."""
        if self._again:
            return self._begin(self._again.popleft())
        for job in self._waiting:
            if isinstance(job, Job):
                return self._begin(job)
            self._refused.append(job)
        return None

    def _begin(self, job: Job[Any]) -> Request:
        self._open[job.index], self.steps[job.index] = job, []
        return job.request()

    def close(self, event: Finished | Failed) -> Outcome[Any] | None:
        """The outcome of a job, None if it is tried again."""
        job, steps = self._open.pop(event.row), self.steps.pop(event.row)
        if isinstance(event, Failed):
            return Outcome(job.index, event.error)
        try:
            result = job.close(Attempt.of(steps, event, self._vocabulary, job.healed))
        except Exception as error:  # users' validators run here; it is handed to the caller
            return Outcome(job.index, error)
        if result is None:
            self._again.append(job)
            return None
        return Outcome(job.index, result)

    def take_refused(self) -> Iterator[Outcome[Any]]:
        """The outcomes of the jobs that could not begin, each once."""
        refused, self._refused = self._refused, []
        for job in refused:
            yield Outcome(job.index, job.error)
