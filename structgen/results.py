"""What a generation returns: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

T_co = TypeVar("T_co", covariant=True)

FinishReason = Literal["stop", "complete"]
"""`complete`: nothing more could follow the value. `stop`: the value could have gone on, and the
model chose to end it or the token budget ended it in a finished state."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token and forward-pass counts of one generation, all its attempts together."""

    prompt_tokens: int
    """Tokens of the prompt, counted once however many attempts there were."""
    completion_tokens: int
    """Tokens of the value, forced ones included, the end token not."""
    sampled_tokens: int
    """Tokens that the model chose."""
    forced_tokens: int
    """Tokens that the schema left no choice about."""
    forward_passes: int
    """Calls of the model, those that read the prompt included."""
    attempts: int = 1
    """Values that were written; all but the last one failed validation, see `retries`."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds spent on one generation, all its attempts together."""

    total_s: float
    forward_s: float
    """Inside the model's forward pass."""
    mask_s: float
    """Computing and applying masks and advancing the automaton, and finding out before each attempt
    which of the prompt's last tokens are held back."""
    first_mask_s: float
    """From the call to the very first mask, without the model's own time and without compilation,
    which `Generator` does when it is made."""


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One token of a value, and how sure the model was of it.

    Example: `TokenScore(token_id=34, text=b'"', log_prob=-0.2, valid_mass=0.9, forced=False)`
    """

    token_id: int
    text: bytes
    """What it adds to the value: empty for an end token. A token may hold a part of a character,
    and the first ones may begin with, or be, the end of the prompt, see `Session.held_back`."""
    log_prob: float
    """Log-probability among the legal tokens, without temperature and the like; 0 where forced."""
    valid_mass: float
    """Probability that the model, unmasked, put on all legal tokens together; 1 where forced."""
    forced: bool
    """The schema left no choice, and the model was not asked."""


@dataclass(frozen=True, slots=True)
class LabelScore:
    """How sure the model was of one `Literal`, `Enum` or `bool` field."""

    label: str
    """The chosen label as it was written: JSON text, or plain text where it is no part of JSON."""
    probability: float
    """Product over the label's tokens of the token's probability among the legal ones."""
    valid_mass: float
    """Product over the same tokens of the probability that the model itself, unmasked, put on
    legal tokens: low means that the model wanted to write something else."""


@dataclass(frozen=True, slots=True)
class AlignedInfo:
    """How a value was drawn from the model's own distribution over what is valid.

    Example: `AlignedInfo(exact=True, attempts=3, log_valid_mass=-2.1)`
    """

    exact: bool
    """The draw is exactly distributed; if not, the attempts were used up and it is approximate."""
    attempts: int
    """Draws that were begun; all but the last one of an exact draw left what is valid."""
    log_valid_mass: float
    """Log of the probability that the model, unmasked, writes a valid value within the budget, as
    far as it is known: the true one is at most this."""


@dataclass(frozen=True, slots=True)
class Generation(Generic[T_co]):
    """One finished generation.

    Example: `Generation(value=Triage(...), text='{"team": "billing"}', ...)`
    """

    value: T_co
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    usage: Usage
    timings: Timings
    labels: Mapping[str, LabelScore] = field(default_factory=dict[str, LabelScore])
    """One score per `Literal`, `Enum` and `bool` field, by JSON path, e.g. `$.team`."""
    rejected: tuple[str, ...] = ()
    """Texts of earlier attempts that validation rejected; `usage` and `timings` count them."""
    tokens: tuple[TokenScore, ...] = ()
    """One entry per token of the value, and one for the end token where the model chose it."""
    aligned: AlignedInfo | None = None
    """Of values drawn with `sampling="aligned"`."""

    @property
    def log_prob(self) -> float:
        """Log-probability of the value as it was tokenised: the sum over `tokens`."""
        return sum(token.log_prob for token in self.tokens)
