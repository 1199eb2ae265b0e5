"""Jobs that are done by beam search, one prompt at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypeVar, cast

from structgen.errors import ValidationFailedError
from structgen.jobs import Attempt, Job
from structgen.results import Generation
from structgen.runtime.beams import Effort, beam_search
from structgen.runtime.events import Finished
from structgen.runtime.lm import LanguageModel
from structgen.runtime.sessions import ForkingSession

T = TypeVar("T")


def first_valid(job: Job[T], lm: LanguageModel, num_beams: int) -> Generation[T]:
    """The most probable value that validation is content with.

    Raises:
        ValidationFailedError: it rejected as many as `retries` allows, or all that were found.
    """
    found = _search(job, lm, num_beams, 1 + job.retries)
    while True:
        attempt = found.pop(0)
        if not found:
            job.retries = 0  # there is nothing left to try
        result = job.close(attempt)
        if result is not None:
            return result


def best_valid(job: Job[T], lm: LanguageModel, num_beams: int, n: int) -> list[Generation[T]]:
    """The most probable values, at most `n`, without those that validation rejects.

    Raises:
        ValidationFailedError: it rejected all of them; the error is that of the best one.
    """
    values: list[Generation[T]] = []
    errors: list[ValidationFailedError] = []
    job.retries = 0
    for attempt in _search(job, lm, num_beams, n):
        job.attempts.clear()
        try:
            result = job.close(attempt)
        except ValidationFailedError as error:
            errors.append(error)
        else:
            assert result is not None, "without retries a job ends"
            values.append(result)
    if not values:
        raise errors[0]
    return values[:n]


def _search(job: Job[T], lm: LanguageModel, num_beams: int, n: int) -> list[Attempt]:
    """What was found, best first; the first one bears the cost of the search."""
    request = job.request()
    found, effort = beam_search(
        lm,
        request.prompt,
        cast("ForkingSession", request.session),
        num_beams,
        num_return_sequences=min(n, num_beams),
        repetition_penalty=job.sampling.repetition_penalty,
    )
    costs = [asdict(effort), *[asdict(Effort())] * len(found)]
    return [
        Attempt.of(one.steps, Finished(0, one.finish_reason, **cost), lm.vocabulary, job.healed)
        for one, cost in zip(found, costs, strict=False)
    ]
