"""Beam search: the most probable values that a few rows, going on side by side, can find.

After Graves 2012, "Sequence Transduction with Recurrent Neural Networks", arXiv:1211.3711, with
rows that fork a session of their own, and without a length penalty: what is looked for is the value
of the highest probability, not the best one per token.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from structgen.errors import GenerationError, ModelError
from structgen.results import FinishReason
from structgen.runtime.events import Step
from structgen.runtime.lm import Cache, LanguageModel
from structgen.runtime.loop import checked_logits, wait_for
from structgen.runtime.masking import masker_for
from structgen.runtime.sampling import penalise
from structgen.runtime.sessions import ForkingSession


@dataclass(slots=True)
class Beam:
    """A value, or the beginning of one."""

    session: ForkingSession
    pending: list[int]
    """Tokens taken but not yet in the cache."""
    steps: list[Step] = field(default_factory=list[Step])
    log_prob: float = 0.0
    parent: int = 0
    """The row of the cache that it continues."""

    def take_forced(self) -> None:
        """Take what is certain; it costs no probability."""
        token_ids = [] if self.session.exhausted else self.session.forced()
        for token_id in token_ids:
            self.session.advance(token_id)
            self.steps.append(Step(0, token_id, forced=True, log_prob=0.0, valid_mass=1.0))
        self.pending += token_ids

    @property
    def ended(self) -> bool:
        session = self.session
        return session.complete or session.finished or session.exhausted

    def taking(self, row: int, token_id: int, log_prob: float, mass: float, *, end: bool) -> Beam:
        """A beam that goes on with one more token."""
        session = self.session.fork()
        session.advance(token_id)
        step = Step(0, token_id, False, log_prob, mass, end)
        return Beam(session, [token_id], [*self.steps, step], self.log_prob + log_prob, row)


@dataclass(frozen=True, slots=True)
class Found:
    """A finished value."""

    steps: list[Step]
    finish_reason: FinishReason
    log_prob: float


@dataclass(slots=True)
class Effort:
    """What a search has cost so far."""

    forward_passes: int = 0
    forward_s: float = 0.0
    """Inside the model, the reading of the prompt included."""
    mask_s: float = 0.0
    """Everything else."""
    first_mask_s: float = 0.0


def beam_search(
    lm: LanguageModel,
    prompt: Sequence[int],
    session: ForkingSession,
    num_beams: int,
    *,
    num_return_sequences: int = 1,
    repetition_penalty: float = 1.0,
) -> tuple[list[Found], Effort]:
    """The most probable values, best first; at most `num_beams`, and each text once.

    The search ends when no open beam can still become better than the values that are wanted: a
    beam's probability only falls. The probability is that among the legal tokens.
    """
    search = _Search(lm, num_beams, num_return_sequences, repetition_penalty)
    search.run(list(prompt), session)
    return search.best(), search.effort


class _Search:
    def __init__(
        self, lm: LanguageModel, num_beams: int, wanted: int, repetition_penalty: float
    ) -> None:
        self._lm = lm
        self._masker = masker_for(lm.vocabulary.width, lm.device)
        self._num_beams = num_beams
        self._wanted = wanted
        self._penalty = repetition_penalty
        self._found: dict[bytes, Found] = {}
        self.effort = Effort()
        self._prompt: list[int] = []
        self._started = time.perf_counter()

    def best(self) -> list[Found]:
        """What was found, best first."""
        ranked = sorted(self._found.values(), key=lambda found: -found.log_prob)
        return ranked[: self._num_beams]

    def run(self, prompt: list[int], session: ForkingSession) -> None:
        self._prompt = prompt
        cache: Cache = None
        beams = self._still_open([Beam(session, prompt.copy())])
        while beams and not self._is_decided(beams):
            logits, cache = self._forward(beams, cache)
            beams = self._still_open(self._extended(beams, logits))
        self.effort.mask_s = time.perf_counter() - self._started - self.effort.forward_s

    def _still_open(self, beams: list[Beam]) -> list[Beam]:
        """Take what is certain in every beam, and put aside those that are finished."""
        still: list[Beam] = []
        for beam in beams:
            beam.take_forced()
            if beam.ended:
                self._keep(beam)
            else:
                still.append(beam)
        return still

    def _keep(self, beam: Beam) -> None:
        ids = [step.token_id for step in beam.steps if not step.end]
        text = self._lm.vocabulary.decode(ids)
        known = self._found.get(text)
        if known is None or known.log_prob < beam.log_prob:
            reason: FinishReason = "complete" if beam.session.complete else "stop"
            self._found[text] = Found(beam.steps, reason, beam.log_prob)

    def _is_decided(self, beams: list[Beam]) -> bool:
        """Whether no open beam can still change what is returned."""
        best = self.best()
        if len(best) < self._wanted:
            return False
        return best[self._wanted - 1].log_prob >= max(beam.log_prob for beam in beams)

    @torch.inference_mode()
    def _forward(self, beams: list[Beam], cache: Cache) -> tuple[Tensor, Cache]:
        """Float32 logits [B, W] that follow each beam, and the cache of all of them."""
        started = time.perf_counter()
        chunks = [beam.pending for beam in beams]
        if cache is None:
            cache, logits = self._lm.prefill(chunks)
        else:
            cache = self._lm.select(cache, [beam.parent for beam in beams])
            logits = self._lm.extend(cache, chunks)
        logits = checked_logits(self._lm, logits, len(beams))
        wait_for(logits.device)
        self.effort.forward_passes += 1
        self.effort.forward_s += time.perf_counter() - started
        return logits, cache

    @torch.inference_mode()
    def _extended(self, beams: list[Beam], logits: Tensor) -> list[Beam]:
        """The best continuations of all beams together, ended ones put aside."""
        all_mass = logits.logsumexp(dim=-1)  # [B]
        masks = self._masker.collect([beam.session for beam in beams])
        if self.effort.forward_passes == 1:
            passed = time.perf_counter() - self._started
            self.effort.first_mask_s = passed - self.effort.forward_s
        if self._masker.apply(logits, masks):
            raise GenerationError("no token may come next, although the value is not finished")
        legal_mass = logits.logsumexp(dim=-1)  # [B]
        if not bool(legal_mass.isfinite().all()):
            raise ModelError(
                f"{self._lm.name} gave no finite logit to any legal token; a model in a 16-bit "
                "type may overflow: load it with dtype='float32'"
            )
        if self._penalty != 1:
            taken = [[step.token_id for step in beam.steps] for beam in beams]
            logits = penalise(logits, [[*self._prompt, *ids] for ids in taken], self._penalty)
        log_probs = logits.log_softmax(dim=-1)  # [B, W]
        totals = log_probs + torch.tensor(
            [[beam.log_prob] for beam in beams], device=logits.device
        )  # [B, W]
        width = totals.shape[1]
        best = totals.flatten().topk(min(2 * self._num_beams, totals.numel()))
        masses = (legal_mass - all_mass).exp().tolist()
        return self._continued(beams, best.indices.tolist(), log_probs, masses, width)

    def _continued(
        self,
        beams: list[Beam],
        places: list[int],
        log_probs: Tensor,
        masses: list[float],
        width: int,
    ) -> list[Beam]:
        """Beams for the best places in the table [B, W]: ends are put aside, others go on.

        Twice as many places as beams are looked at, so that ends leave enough that go on.
        """
        eos = self._lm.vocabulary.eos_token_ids
        chosen: list[Beam] = []
        for place in places:
            row, token_id = divmod(place, width)
            log_prob = float(log_probs[row, token_id])
            if log_prob == -np.inf or len(chosen) == self._num_beams:
                break
            end = token_id in eos
            beam = beams[row].taking(row, token_id, log_prob, masses[row], end=end)
            if end:
                self._keep(beam)
            else:
                chosen.append(beam)
        return chosen
