"""The one loop that decodes: any number of rows, each with its own session.

A turn of the loop, for all rows at once:

1. tokens that a session forces are taken without asking the model;
2. rows whose value is complete, or whose budget is used up, leave the batch;
3. one forward pass appends what the cache lacks (the last choice and all forced tokens);
4. masks are applied, and each row takes one token.

Letters of shapes: B rows, W columns of the logits, N words of a packed mask.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structgen.errors import GenerationError, ModelError, UsageError
from structgen.results import FinishReason
from structgen.runtime.lm import Cache, LanguageModel
from structgen.runtime.masking import apply_masks, n_words
from structgen.runtime.sampling import Sampling, choose


class Session(Protocol):
    """One value being written: what the loop asks of the automaton."""

    @property
    def complete(self) -> bool:
        """The value is complete and nothing but the end can follow."""
        ...

    @property
    def exhausted(self) -> bool:
        """The token budget is used up; the value may then end here."""
        ...

    @property
    def finished(self) -> bool:
        """An end token was taken."""
        ...

    def forced(self) -> list[int]:
        """Token ids that are certain to come next, often none."""
        ...

    def fill_mask(self, row: NDArray[np.int32]) -> None:
        """Overwrite `row`, int32 [N], with a bit per token: 1 where it is allowed next."""
        ...

    def advance(self, token_id: int) -> None:
        """Take a token; `IllegalTokenError` if it is not allowed."""
        ...


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
    """From the start of decoding to the first mask, the model's own time left out."""


Event: TypeAlias = Step | Finished


def decode(
    lm: LanguageModel,
    prompts: Sequence[Sequence[int]],
    sessions: Sequence[Session],
    sampling: Sampling | None = None,
) -> Iterator[Event]:
    """Decode one value per prompt, row i with `sessions[i]`; a finished row leaves the batch.

    Example: `decode(lm, [lm.encode_prompt("Hello")], [session]) -> Step(0, ...), Finished(0, ...)`

    Args:
        prompts: token ids, at least one per row.
        sessions: fresh sessions over the model's vocabulary; each is advanced to its end.
        sampling: greedy if None.
    """
    if len(prompts) != len(sessions):
        raise UsageError(f"got {len(prompts)} prompts and {len(sessions)} sessions; match them")
    if not all(prompts):
        raise UsageError(f"prompt {[bool(p) for p in prompts].index(False)} has no tokens")
    return _events(_Batch(lm, prompts, sessions, sampling or Sampling()))


def _events(batch: _Batch) -> Iterator[Event]:
    # Nothing is yielded inside a mode or a timer: the consumer's own work stays out of both.
    while batch.rows:
        yield from batch.take_forced()
        yield from batch.drop_finished()
        if batch.rows:
            yield from batch.take_chosen()


@dataclass(slots=True)
class _Row:
    """A row still being decoded."""

    index: int
    session: Session
    generator: torch.Generator
    pending: list[int]
    """Tokens taken but not yet in the cache; at first the prompt."""
    forward_passes: int = 0
    forward_s: float = 0.0
    mask_s: float = 0.0
    first_mask_s: float | None = None

    def finish(self) -> Finished | None:
        """The closing event, if the session is at its end."""
        session = self.session
        if not (session.complete or session.finished or session.exhausted):
            return None
        return Finished(
            row=self.index,
            finish_reason="complete" if session.complete else "stop",
            forward_passes=self.forward_passes,
            forward_s=self.forward_s,
            mask_s=self.mask_s,
            first_mask_s=self.first_mask_s or 0.0,
        )


@dataclass(slots=True)
class _Choice:
    """What was chosen in a batch: three lists of one entry per row."""

    token_ids: list[int]
    log_probs: list[float]
    valid_masses: list[float]


@dataclass(slots=True)
class _Batch:
    """The rows that are not finished, and their common cache."""

    lm: LanguageModel
    prompts: Sequence[Sequence[int]]
    sessions: Sequence[Session]
    sampling: Sampling
    rows: list[_Row] = field(init=False)
    cache: Cache = field(init=False, default=None)
    """None until the prompts are read."""
    started: float = field(init=False, default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        generators = self.sampling.generators(len(self.prompts), self.lm.device)
        each = zip(self.sessions, generators, self.prompts, strict=True)
        self.rows = [_Row(i, s, g, list(p)) for i, (s, g, p) in enumerate(each)]

    def take_forced(self) -> list[Step]:
        """Take what is certain, in every row."""
        steps: list[Step] = []
        for row in self.rows:
            with _timed([row], "mask_s"):
                token_ids = [] if row.session.exhausted else row.session.forced()
                for token_id in token_ids:
                    row.session.advance(token_id)
            row.pending += token_ids
            steps += [
                Step(row.index, t, forced=True, log_prob=0.0, valid_mass=1.0) for t in token_ids
            ]
        return steps

    def drop_finished(self) -> list[Finished]:
        """Close the rows that are at their end, and take them out of the cache."""
        endings = [row.finish() for row in self.rows]
        kept = [i for i, ending in enumerate(endings) if ending is None]
        if self.cache is not None and 0 < len(kept) < len(self.rows):
            self.cache = self.lm.select(self.cache, kept)
        self.rows = [self.rows[i] for i in kept]
        return [ending for ending in endings if ending is not None]

    @torch.inference_mode()
    def take_chosen(self) -> list[Step]:
        """One forward pass and one choice in every row."""
        with _timed(self.rows, "forward_s"):
            logits = self._forward()  # [B, W]
        with _timed(self.rows, "mask_s"):
            packed = self._masks()  # [B, N], computed while an accelerator still works
        with _timed(self.rows, "forward_s"):
            _wait_for(logits.device)
        with _timed(self.rows, "mask_s"):
            choice = _choose(logits, packed, self.sampling, [row.generator for row in self.rows])
            return self._advance(choice)

    def _forward(self) -> Tensor:
        """Bring the cache up to date; float32 logits [B, W]."""
        chunks = [row.pending for row in self.rows]
        if self.cache is None:
            self.cache, logits = self.lm.prefill(chunks)
        else:
            logits = self.lm.extend(self.cache, chunks)
        expected = (len(self.rows), self.lm.vocabulary.width)
        if logits.shape != expected:
            raise ModelError(
                f"{self.lm.name} returned logits of shape {tuple(logits.shape)} where its "
                f"vocabulary asks for {expected}"
            )
        for row in self.rows:
            row.forward_passes += 1
        return logits.float()

    def _masks(self) -> NDArray[np.int32]:
        """The packed masks of all rows, int32 [B, N]."""
        packed = np.zeros((len(self.rows), n_words(self.lm.vocabulary.width)), dtype=np.int32)
        for row, words in zip(self.rows, packed, strict=True):
            row.session.fill_mask(words)
            if not words.any():
                raise GenerationError(
                    "no token may come next, although the value is not finished: this is an error "
                    "in structgen or in the session, please report it with the schema"
                )
            if row.first_mask_s is None:
                row.first_mask_s = time.perf_counter() - self.started - row.forward_s
        return packed

    def _advance(self, choice: _Choice) -> list[Step]:
        """Feed each row's choice to its session."""
        eos = self.lm.vocabulary.eos_token_ids
        steps: list[Step] = []
        for row, token_id, log_prob, valid_mass in zip(
            self.rows, choice.token_ids, choice.log_probs, choice.valid_masses, strict=True
        ):
            if math.isnan(log_prob) or math.isinf(log_prob):
                raise ModelError(
                    f"{self.lm.name} gave no finite logit to any legal token in row {row.index}; "
                    "a model in a 16-bit type may overflow: load it with dtype='float32'"
                )
            row.session.advance(token_id)
            row.pending = [token_id]
            steps.append(Step(row.index, token_id, False, log_prob, valid_mass, token_id in eos))
        return steps


def _choose(
    logits: Tensor,
    packed: NDArray[np.int32],
    sampling: Sampling,
    generators: Sequence[torch.Generator],
) -> _Choice:
    """Mask the logits [B, W] in place and choose a token in each row."""
    all_mass = logits.logsumexp(dim=-1)  # [B]
    apply_masks(logits, packed)
    legal_mass = logits.logsumexp(dim=-1)  # [B]
    token_ids = choose(logits, sampling, generators)  # [B]
    log_probs = logits.gather(-1, token_ids[:, None])[:, 0] - legal_mass  # [B]
    return _Choice(token_ids.tolist(), log_probs.tolist(), (legal_mass - all_mass).exp().tolist())


@contextmanager
def _timed(rows: Sequence[_Row], meter: str) -> Generator[None]:
    """Add the seconds spent inside to one meter of each row."""
    started = time.perf_counter()
    yield
    seconds = time.perf_counter() - started
    for row in rows:
        setattr(row, meter, getattr(row, meter) + seconds)


def _wait_for(device: torch.device) -> None:
    """Let an accelerator finish what was launched, so that its time is counted as its own."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
