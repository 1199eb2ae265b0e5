"""The one loop that decodes: any number of rows, each with its own session.

A turn of the loop, for all rows at once:

1. tokens that a session forces are taken without asking the model;
2. rows whose value is complete, or whose budget is used up, leave;
3. rows that wait enter where there is room, and take what is forced;
4. one forward pass appends what the cache lacks (the last choice and all forced tokens); rows that
   are new have a pass of their own, which reads their prompts;
5. masks are applied, and each row takes one token.

Letters of shapes: B rows, W columns of the logits, N words of a packed mask.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structgen.errors import GenerationError, ModelError, StructgenError, UsageError
from structgen.runtime.events import Event, Failed, Finished, Request, Step
from structgen.runtime.lm import Cache, LanguageModel
from structgen.runtime.masking import Masker, Masks, masker_for, n_words
from structgen.runtime.sampling import Sampling, choose_each
from structgen.runtime.sessions import LoopSession
from structgen.tokens.mask_rows import NONE, MaskRow


def decode(
    lm: LanguageModel,
    prompts: Sequence[Sequence[int]],
    sessions: Sequence[LoopSession],
    sampling: Sampling | None = None,
) -> Iterator[Step | Finished]:
    """Decode one value per prompt, row i with `sessions[i]`; a finished row leaves the batch.

    Example: `decode(lm, [lm.encode_prompt("Hello")], [session]) -> Step(0, ...), Finished(0, ...)`

    Args:
        prompts: token ids, at least one per row.
        sessions: fresh sessions over the model's vocabulary; each is advanced to its end.
        sampling: greedy if None; row i is seeded with `seed + i`.

    Raises:
        StructgenError: what is wrong with any row.
    """
    if len(prompts) != len(sessions):
        raise UsageError(f"got {len(prompts)} prompts and {len(sessions)} sessions; match them")
    if not all(prompts):
        raise UsageError(f"prompt {[bool(p) for p in prompts].index(False)} has no tokens")
    each = (sampling or Sampling()).for_rows(len(prompts))
    rows = zip(range(len(prompts)), prompts, sessions, each, strict=True)
    source = iter([Request(*row) for row in rows]).__next__
    return _raising(decode_requests(lm, source, batch_size=max(len(prompts), 1)))


def _raising(events: Iterator[Event]) -> Iterator[Step | Finished]:
    for event in events:
        if isinstance(event, Failed):
            raise event.error
        yield event


def decode_requests(
    lm: LanguageModel, source: Callable[[], Request | None], *, batch_size: int
) -> Iterator[Event]:
    """Decode what a source hands out, at most `batch_size` rows at a time.

    Whenever a row leaves the batch, the source is asked for the next one. Every row gets the tokens
    that it would get alone.

    Args:
        source: the next request; None or `StopIteration` if there is none now. It is asked again
            after every turn as long as rows are being decoded, so what becomes of one row may give
            rise to another.
    """
    batch = _Batch(lm, source, batch_size)
    # Nothing is yielded inside a mode or a timer: the consumer's own work stays out of both.
    while True:
        yield from batch.settle()
        yield from batch.admit()
        if not batch.rows and not batch.fresh:
            return
        yield from batch.take_chosen()


@dataclass(slots=True)
class _Row:
    """A row still being decoded."""

    request: Request
    generator: torch.Generator
    pending: list[int]
    """Tokens taken but not yet in the cache; at first the prompt."""
    history: list[int]
    """Prompt and tokens taken, what a repetition penalty looks at."""
    started: float = field(default_factory=time.perf_counter)
    forward_passes: int = 0
    forward_s: float = 0.0
    mask_s: float = 0.0
    first_mask_s: float | None = None
    error: StructgenError | None = None

    @classmethod
    def of(cls, request: Request, device: torch.device) -> _Row:
        if not request.prompt:
            raise UsageError(f"the prompt of row {request.row} has no tokens")
        prompt = list(request.prompt)
        return cls(request, request.sampling.generator(device), prompt, prompt.copy())

    @property
    def session(self) -> LoopSession:
        return self.request.session

    def check_mask(self) -> None:
        """Note what the session raises when it is asked for its mask."""
        try:
            self.session.mask_row()
        except StructgenError as error:
            self.error = error

    def ending(self) -> Finished | Failed | None:
        """The closing event, if the row is at its end."""
        session = self.session
        if self.error is not None:
            return Failed(self.request.row, self.error)
        if not (session.complete or session.finished or session.exhausted):
            return None
        return Finished(
            row=self.request.row,
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
    source: Callable[[], Request | None]
    batch_size: int
    rows: list[_Row] = field(init=False, default_factory=list[_Row])
    """Those that the cache knows."""
    fresh: list[_Row] = field(init=False, default_factory=list[_Row])
    """Those whose prompts are still to be read."""
    cache: Cache = field(init=False, default=None)
    masker: Masker = field(init=False)

    def __post_init__(self) -> None:
        self.masker = masker_for(self.lm.vocabulary.width, self.lm.device)

    def settle(self) -> list[Event]:
        """Take what is certain in every row, and let those leave that are at their end."""
        events: list[Event] = [step for row in self.rows for step in _forced(row)]
        endings = [row.ending() for row in self.rows]
        kept = [i for i, ending in enumerate(endings) if ending is None]
        if 0 < len(kept) < len(self.rows):
            self.cache = self.lm.select(self.cache, kept)
        self.rows = [self.rows[i] for i in kept]
        if not self.rows:
            self.cache = None
        return events + [ending for ending in endings if ending is not None]

    def admit(self) -> Iterator[Event]:
        """Let rows in that wait; those without any choice end at once."""
        while len(self.rows) + len(self.fresh) < self.batch_size:
            if self.rows and not self.lm.can_join(self.cache):
                return
            request = self._next()
            if request is None:
                return
            row = _Row.of(request, self.lm.device)
            yield from _forced(row)
            ending = row.ending()
            if ending is None:
                self.fresh.append(row)
            else:
                yield ending

    def _next(self) -> Request | None:
        try:
            return self.source()
        except StopIteration:
            return None

    @torch.inference_mode()
    def take_chosen(self) -> list[Step]:
        """A forward pass and one choice in every row; new rows join the others."""
        steps = self._turn(self.rows, self._extend) if self.rows else []
        if self.fresh:
            old, self.cache = self.cache, None
            steps += self._turn(self.fresh, self._prefill)
            if old is not None:
                self.cache = self.lm.join(old, self.cache)
            self.rows, self.fresh = self.rows + self.fresh, []
        return steps

    def _turn(self, rows: list[_Row], forward: Callable[[], Tensor]) -> list[Step]:
        with _timed(rows, "forward_s"):
            logits = checked_logits(self.lm, forward(), len(rows))  # [B, W]
        for row in rows:
            row.forward_passes += 1
        with _timed(rows, "mask_s"):
            masks = self._masks(rows)  # computed while an accelerator still works
        with _timed(rows, "forward_s"):
            wait_for(logits.device)
        with _timed(rows, "mask_s"):
            return self._advance(rows, _choose(logits, self.masker, masks, rows))

    def _extend(self) -> Tensor:
        return self.lm.extend(self.cache, [row.pending for row in self.rows])

    def _prefill(self) -> Tensor:
        """Read the prompts; one that several rows share is read once."""
        places: dict[tuple[int, ...], int] = {}
        which = [places.setdefault(tuple(row.pending), len(places)) for row in self.fresh]
        self.cache, logits = self.lm.prefill(list(places))
        if len(places) < len(which):
            self.cache = self.lm.select(self.cache, which)
            logits = logits[which]
        return logits

    def _masks(self, rows: list[_Row]) -> Masks:
        """The masks of all rows."""
        try:
            masks = self.masker.collect([row.session for row in rows])
        except StructgenError:
            for row in rows:
                row.check_mask()
            nothing = Nothing(self.lm.vocabulary.width)
            masks = self.masker.collect(
                [row.session if row.error is None else nothing for row in rows]
            )
        for row in rows:
            if row.first_mask_s is None:
                row.first_mask_s = time.perf_counter() - row.started - row.forward_s
        return masks

    def _advance(self, rows: list[_Row], choice: _Choice) -> list[Step]:
        """Feed each row's choice to its session."""
        eos = self.lm.vocabulary.eos_token_ids
        steps: list[Step] = []
        for row, token_id, log_prob, valid_mass in zip(
            rows, choice.token_ids, choice.log_probs, choice.valid_masses, strict=True
        ):
            row.pending = [token_id]
            if row.error is None and (math.isnan(log_prob) or math.isinf(log_prob)):
                row.error = ModelError(
                    f"{self.lm.name} gave no finite logit to any legal token in row "
                    f"{row.request.row}; a model in a 16-bit type may overflow: load it with "
                    "dtype='float32'"
                )
            if row.error is not None:
                continue
            try:
                row.session.advance(token_id)
            except StructgenError as error:
                row.error = error
                continue
            row.history.append(token_id)
            end = token_id in eos
            steps.append(Step(row.request.row, token_id, False, log_prob, valid_mass, end))
        return steps


class Nothing:
    """In the place of a session that failed: it allows nothing."""

    def __init__(self, width: int) -> None:
        self._row = MaskRow(NONE, NONE, n_words(width))

    def fill_mask(self, row: NDArray[np.int32]) -> None:
        """Write zeros to `row`, int32 [N]."""
        row[:] = 0

    def mask_row(self) -> MaskRow:
        """The mask that allows nothing."""
        return self._row


def checked_logits(lm: LanguageModel, logits: Tensor, n_rows: int) -> Tensor:
    """Float32 logits [B, W], after a look at their shape."""
    expected = (n_rows, lm.vocabulary.width)
    if logits.shape != expected:
        raise ModelError(
            f"{lm.name} returned logits of shape {tuple(logits.shape)} where its "
            f"vocabulary asks for {expected}"
        )
    return logits.float()


def _forced(row: _Row) -> list[Step]:
    """Take what is certain in a row."""
    if row.error is not None:
        return []
    with _timed([row], "mask_s"):
        try:
            token_ids = [] if row.session.exhausted else row.session.forced()
            for token_id in token_ids:
                row.session.advance(token_id)
        except StructgenError as error:
            row.error, token_ids = error, []
    row.pending += token_ids
    row.history += token_ids
    name = row.request.row
    return [Step(name, t, forced=True, log_prob=0.0, valid_mass=1.0) for t in token_ids]


def _choose(logits: Tensor, masker: Masker, masks: Masks, rows: list[_Row]) -> _Choice:
    """Mask the logits [B, W] in place and choose a token in each row."""
    all_mass = logits.logsumexp(dim=-1)  # [B]
    for place in masker.apply(logits, masks):
        rows[place].error = rows[place].error or GenerationError(
            "no token may come next, although the value is not finished: this is an error in "
            "structgen or in the session, please report it with the schema"
        )
    legal_mass = logits.logsumexp(dim=-1)  # [B]
    samplings = [row.request.sampling for row in rows]
    histories = [row.history for row in rows]
    token_ids = choose_each(logits, samplings, [row.generator for row in rows], histories)  # [B]
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


def wait_for(device: torch.device) -> None:
    """Let an accelerator finish what was launched, so that its time is counted as its own."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
