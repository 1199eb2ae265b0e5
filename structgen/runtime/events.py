"""What goes into the decoding loop and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from structgen.errors import StructgenError
from structgen.results import FinishReason
from structgen.runtime.sampling import Sampling
from structgen.runtime.sessions import LoopSession


@dataclass(frozen=True, slots=True)
class Request:
    """One value to be written; `row` is its name in the events."""

    row: int
    prompt: Sequence[int]
    """Token ids, at least one."""
    session: LoopSession
    """Over the model's vocabulary, fresh; the loop advances it to its end."""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class Step:
    """A token was taken in one row.

    Example: `Step(row=0, token_id=34, forced=False, log_prob=-0.2, valid_mass=0.9, end=False)`
    """

    row: int
    token_id: int
    forced: bool
    """The schema left no choice, and the model was not asked."""
    log_prob: float
    """Log of the token's probability under the model's own distribution (no temperature, no
    top-k), renormalised over the legal tokens; 0 for a forced token."""
    valid_mass: float
    """Probability that the model, unmasked, put on all legal tokens together; 1 for a forced
    token, about which it was not asked."""
    end: bool = False
    """An end token: it is no part of the value."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A row's value is finished. Times of a pass that rows share count in full for each."""

    row: int
    finish_reason: FinishReason
    forward_passes: int
    forward_s: float
    """Inside the model, the reading of the prompt included."""
    mask_s: float
    """Computing and applying masks and advancing the session."""
    first_mask_s: float
    """From the row's entry into the batch to its first mask, the model's own time left out."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A row left the batch without a value; the others go on."""

    row: int
    error: StructgenError


Event: TypeAlias = Step | Finished | Failed
