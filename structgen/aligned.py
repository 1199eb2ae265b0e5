"""Jobs that are drawn from the model's own distribution over what is valid, one at a time."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

from structgen.errors import OptionError
from structgen.jobs import Attempt, Job
from structgen.results import Generation
from structgen.runtime.aligned import Aligned, AlignedSampler, Drawn
from structgen.runtime.events import Request
from structgen.runtime.lm import LanguageModel
from structgen.runtime.sampling import Sampling
from structgen.runtime.sessions import ForkingSession

T = TypeVar("T")

logger = logging.getLogger("structgen")

KEPT_PROMPTS = 4
"""Prompts that are remembered at a time; each may hold a cache of the model and its readings."""

SamplingMethod: TypeAlias = Literal["masked", "aligned"] | Aligned
"""How values are drawn: token by token among what is legal, or as whole values."""


class AlignedDraws:
    """Does the jobs of one schema; those with the same prompt share what the model said."""

    def __init__(self, lm: LanguageModel, options: Aligned) -> None:
        self._lm = lm
        self._options = options
        self._samplers: OrderedDict[tuple[int, ...], AlignedSampler] = OrderedDict()

    def first_valid(self, job: Job[T]) -> Generation[T]:
        """The first draw that validation is content with.

        Raises:
            ValidationFailedError: it rejected as many as `retries` allows.
        """
        while True:
            request = job.request()
            drawn = self._sampler(job, request).draw(request.sampling)
            written = Attempt.of(drawn.steps, drawn.end, self._lm.vocabulary, job.healed)
            result = job.close(written)
            if result is not None:
                return self._told(drawn, result)

    def _told(self, drawn: Drawn, result: Generation[T]) -> Generation[T]:
        if not drawn.info.exact:
            logger.warning(
                "an aligned draw is approximate: none of %d attempts was valid to its end; the "
                "model writes a valid value with a probability of e^%.1f at most. "
                "sampling=Aligned(max_attempts=...) tries harder",
                drawn.info.attempts,
                drawn.info.log_valid_mass,
            )
        return replace(result, aligned=drawn.info)

    def _sampler(self, job: Job[Any], request: Request) -> AlignedSampler:
        key = (job.budget, *job.prompt_ids)
        sampler = self._samplers.pop(key, None)
        if sampler is None:
            sampler = AlignedSampler(
                self._lm,
                request.prompt,
                cast("ForkingSession", request.session),
                temperature=request.sampling.temperature,
                options=self._options,
            )
        self._samplers[key] = sampler
        if len(self._samplers) > KEPT_PROMPTS:
            self._samplers.popitem(last=False)
        return sampler


def aligned_options(method: object, sampling: Sampling, num_beams: int) -> Aligned | None:
    """The options of aligned draws, None where tokens are masked; refused with what contradicts.

    Example: `aligned_options("aligned", Sampling(), 1)` -> `Aligned()`
    """
    if method == "masked":
        return None
    if method != "aligned" and not isinstance(method, Aligned):
        raise OptionError(f"sampling={method!r} must be 'masked', 'aligned' or an Aligned(...)")
    neutral = Sampling()
    for name in ("top_k", "top_p", "min_p", "repetition_penalty"):
        value: object = getattr(sampling, name)
        if value != getattr(neutral, name):
            raise OptionError(
                f"{name}={value!r} would change the model's distribution, which sampling='aligned' "
                "is to keep; leave it out, or use sampling='masked'"
            )
    if num_beams > 1:
        raise OptionError(
            f"num_beams={num_beams} searches for the most probable value and sampling='aligned' "
            "draws one; use one of them"
        )
    return method if isinstance(method, Aligned) else Aligned()
