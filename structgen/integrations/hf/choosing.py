"""The logits processors and stopping criteria of `generate`, for rows that differ in length.

Rows that skip forced tokens differ in length, but a processor takes a rectangle of ids. So rows of
equal length are processed together, in a rectangle of the whole batch that is right for these: in
it longer rows are cut and shorter ones filled up, and what comes out for those is not used.
Letters of shapes: B rows of the batch, A of them still being written, W columns of the logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor
from transformers import LogitsProcessorList, StoppingCriteriaList

from structgen.automata.frames import IntArray
from structgen.errors import GenerationError, OptionError
from structgen.integrations.hf.feeding import INSTEAD
from structgen.integrations.hf.processor import StructgenLogitsProcessor
from structgen.integrations.hf.targets import Ends
from structgen.integrations.hf.writing import Writing
from structgen.runtime.masking import NEVER, apply_masks, n_words

_WARPERS = (
    transformers.TemperatureLogitsWarper,
    transformers.TopHLogitsWarper,
    transformers.TopKLogitsWarper,
    transformers.TopPLogitsWarper,
    transformers.MinPLogitsWarper,
    transformers.TypicalLogitsWarper,
    transformers.EpsilonLogitsWarper,
    transformers.EtaLogitsWarper,
    transformers.LogitNormalization,
)
"""They turn scores into the distribution to draw from, and look at no ids."""

_STEP_BY_STEP = (
    transformers.UnbatchedClassifierFreeGuidanceLogitsProcessor,
    transformers.WatermarkLogitsProcessor,
    transformers.SynthIDTextWatermarkLogitsProcessor,
)
"""They have to see every token of every row when it is written."""

_OURS = (transformers.MaxLengthCriteria, transformers.EosTokenCriteria)
"""Stopping criteria that the sessions and their budgets replace."""


class Batch:
    """All rows of a call with the ids of their prompts."""

    def __init__(self, prompts: Tensor, rows: Sequence[Writing], pad: int) -> None:
        self.prompts = prompts
        self.rows = rows
        self.pad = pad

    def ids(self, n_tokens: int | None = None) -> Tensor:
        """int64 [B, P + n]: the first `n_tokens` of each row, or all, filled up with padding."""
        n = max(len(row.tokens) for row in self.rows) if n_tokens is None else n_tokens
        cut = [row.tokens[:n] for row in self.rows]
        filled = [tokens + [self.pad] * (n - len(tokens)) for tokens in cut]
        written = torch.tensor(filled, dtype=torch.int64, device=self.prompts.device)
        return torch.cat([self.prompts, written.view(len(filled), n)], dim=1)


class Chooser:
    """Chooses a token in each row that asks for one, as `generate` would.

    The masks come behind the processors and before temperature, top_k, top_p and the like: these
    then see only legal tokens, so that top_p=0.9 keeps nine tenths of what is legal. The other way
    round it could keep nothing legal at all. Behind the processors, because what they add to -inf
    is not always -inf: `exponential_decay_length_penalty` would make it nan.
    """

    def __init__(
        self, batch: Batch, processors: LogitsProcessorList, ends: Ends, *, do_sample: bool
    ) -> None:
        _check_processors(processors)
        self._batch = batch
        first = next((i for i, p in enumerate(processors) if isinstance(p, _WARPERS)), None)
        self._processors = list(processors)[:first]
        self._warpers = [] if first is None else list(processors)[first:]
        self._ends = ends
        self._do_sample = do_sample

    def choose(self, rows: Sequence[Writing], logits: Tensor) -> tuple[list[int], Tensor]:
        """Token ids, one per row, and the scores float [A, W] that they were chosen by.

        Args:
            logits: float32 [A, W], may be changed.
        """
        scores = self._process(self._processors, rows, logits).contiguous()
        apply_masks(scores, self._masks(rows, scores.shape[1]))
        for row, best in zip(rows, scores.amax(dim=-1).tolist(), strict=True):
            if best == NEVER:
                raise GenerationError(
                    f"row {row.index}: every token that the schema allows has a score of -inf; an "
                    "option of generate() such as min_new_tokens, bad_words_ids or "
                    "suppress_tokens, or a logits processor, forbids them all: leave it out"
                )
        scores = self._process(self._warpers, rows, scores)
        if self._do_sample:
            drawn = torch.multinomial(scores.softmax(dim=-1), num_samples=1)[:, 0]  # [A]
            return drawn.tolist(), scores
        return scores.argmax(dim=-1).tolist(), scores

    def _masks(self, rows: Sequence[Writing], width: int) -> IntArray:
        """Packed masks, int32 [A, N]."""
        packed = np.zeros((len(rows), n_words(width)), np.int32)
        for row, words in zip(rows, packed, strict=True):
            mask = row.session.mask()
            words[: len(mask)] = mask if self._ends.kept is None else mask & self._ends.kept
        return packed

    def _process(self, processors: list[Any], rows: Sequence[Writing], scores: Tensor) -> Tensor:
        """Scores [A, W] after the processors."""
        if all(isinstance(processor, _WARPERS) for processor in processors):
            for processor in processors:
                scores = processor(self._batch.prompts, scores)
            return scores
        index = torch.tensor([row.index for row in rows], device=scores.device)  # [A]
        wide = scores.new_zeros((len(self._batch.rows), scores.shape[1]))  # [B, W]
        for n_tokens, places in _by_length(rows):
            wide[index] = scores
            ids: Any = self._batch.ids(n_tokens)  # [B, P + n]
            done = LogitsProcessorList(processors)(ids, wide)  # [B, W]
            scores[places] = done[index[places]]
        return scores


def _by_length(rows: Sequence[Writing]) -> Iterable[tuple[int, list[int]]]:
    """Each number of tokens, and the places of the rows that have so many."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(len(row.tokens), []).append(place)
    return places.items()


def stop(batch: Batch, criteria: StoppingCriteriaList) -> None:
    """Close the rows that a criterion of the caller ends, finished or not."""
    others = StoppingCriteriaList(one for one in criteria if not isinstance(one, _OURS))
    if not others:
        return
    for n_tokens, places in _by_length(batch.rows):
        ids: Any = batch.ids(n_tokens)  # [B, P + n]
        ended: list[bool] = others(ids, None).tolist()  # pyright: ignore[reportArgumentType]  # None where no scores are kept, as generate() does
        for place in places if n_tokens else ():
            row = batch.rows[place]
            row.done = row.done or ended[place]


def _check_processors(processors: LogitsProcessorList) -> None:
    for processor in processors:
        if isinstance(processor, StructgenLogitsProcessor):
            raise OptionError("a StructgenGenerate needs no StructgenLogitsProcessor; pass one")
        if isinstance(processor, _STEP_BY_STEP):
            raise OptionError(
                f"StructgenGenerate writes several tokens at once, which {type(processor).__name__}"
                f" cannot follow; {INSTEAD}"
            )
