"""A logits processor for `model.generate(logits_processor=[...])`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor

from structgen.compiler import CompiledSchema
from structgen.errors import GenerationError, ModelError, OptionError
from structgen.integrations.hf.rows import Row
from structgen.integrations.hf.runs import FixedRuns, Ids, Runs
from structgen.integrations.hf.targets import Ends, Targets, check_count, ends, targets
from structgen.runtime.masking import NEVER, apply_masks, n_words


class StructgenLogitsProcessor(LogitsProcessor):
    """Lets `generate` write only what the schema allows, in each row.

    It goes with batches, left padding, sampling, beams, `num_return_sequences`, assisted decoding
    and pipelines, and can be used for any number of calls in turn, in one thread at a time.

    Example:
        processor = StructgenLogitsProcessor(Person, tokenizer, max_new_tokens=200)
        model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)

    Where the prompt ends is told from what arrives: tokens that do not go on from the last ones
    are a new prompt. So the output of a call may be the next one's prompt. If its value has
    ended a new one begins, and if it was cut off it is gone on with. A value that its budget ended,
    without an end token, is known to have ended where the processor is bound, see `bind`.

    Args:
        schema: anything that `structgen.compile` takes, a `CompiledSchema`, or a list of those, one
            for each prompt of the batch.
        tokenizer: the model's tokenizer or a `Vocabulary`; not needed where all is compiled.
        max_new_tokens: the number that `generate` is given too. The value is then always finished
            within it. See also `bind`.
        prompt_length: where the values begin, if it shall not be told from what arrives. With
            less than `input_ids.shape[1]` the prompt holds the beginning of a value, which is gone
            on with; `max_new_tokens` counts that too.
    """

    _is_bound = False
    """`generate` is known to stop where the budget ends. If not, it may have been given more tokens
    than structgen, and behind the budget comes an end token."""

    def __init__(
        self,
        schema: object,
        tokenizer: object = None,
        *,
        max_new_tokens: int | None = None,
        prompt_length: int | None = None,
    ) -> None:
        check_count("max_new_tokens", max_new_tokens, least=1)
        check_count("prompt_length", prompt_length, least=0)
        self._setup(targets(schema, tokenizer), max_new_tokens, None, None, prompt_length)

    def _setup(
        self,
        wanted: Targets,
        max_new_tokens: int | None,
        max_length: int | None,
        stops: Any,
        prompt_length: int | None,
    ) -> None:
        self._targets = wanted
        self._max_new_tokens = max_new_tokens
        self._max_length = max_length
        self._prompt_length = prompt_length
        self._ends: Ends = ends(wanted.vocabulary, stops)
        self._runs = (
            Runs(self._begin) if prompt_length is None else FixedRuns(self._begin, prompt_length)
        )
        for compiled in wanted.compiled:
            compiled.session(max_new_tokens)  # too small a budget shows right here

    def __repr__(self) -> str:
        titles = ", ".join(compiled.title for compiled in self._targets.compiled)
        return f"<StructgenLogitsProcessor {titles}>"

    @property
    def targets(self) -> Targets:
        """The compiled schemas."""
        return self._targets

    @property
    def compiled(self) -> CompiledSchema[Any]:
        """The compiled schema, the first one if there are several."""
        return self._targets.compiled[0]

    def may_stop_after(self, n_tokens: int, prompt_length: int) -> bool:
        """Whether a value that may end here was ended on purpose, by its budget."""
        budget = self._budget(prompt_length)
        return budget is not None and n_tokens >= budget

    def bind(self, config: GenerationConfig) -> StructgenLogitsProcessor:
        """A processor with the budget and the end tokens of the config that `generate` will use.

        Example: `processor.bind(model.generation_config)`

        Raises:
            OptionError: the config sets no length, or its end tokens are none of the vocabulary's.
        """
        new, total = config.max_new_tokens, config.max_length
        if new is None and total is None:
            raise OptionError(
                "the generation config has neither max_new_tokens nor max_length, and generate() "
                "would stop after 20 tokens; set max_new_tokens"
            )
        twin = object.__new__(type(self))
        max_length = total if new is None else None
        twin._setup(self._targets, new, max_length, config.eos_token_id, self._prompt_length)
        twin._is_bound = True
        return twin

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores [R, W], float, with -inf where a token is not legal; `input_ids` is int64 [R, L].

        Raises:
            ModelError: the scores have fewer columns than the vocabulary.
            GenerationError: all that is legal has a score of -inf already.
        """
        self._check_shapes(input_ids, scores)
        ids: Ids = input_ids.cpu().numpy().astype(np.int64)  # a copy, even if it is int64 already
        rows = self._runs.rows(ids)
        packed = np.zeros((len(rows), n_words(scores.shape[1])), np.int32)
        width = self._targets.vocabulary.n_words
        for row, words in zip(rows, packed[:, :width], strict=True):
            row.fill(words, self._ends)
        # A copy, since generate() may return what came in as `logits`.
        masked = scores.to(copy=True, memory_format=torch.contiguous_format)
        apply_masks(masked, packed)
        _check_scores(rows, masked)
        return masked

    def _begin(self, n_rows: int, prompt_length: int) -> list[Row]:
        """Fresh rows behind a prompt of so many tokens."""
        budget = self._budget(prompt_length)
        most = budget if self._is_bound else None
        return [
            Row(compiled, compiled.session(budget), most=most)
            for compiled in self._targets.of_rows(n_rows)
        ]

    def _budget(self, prompt_length: int) -> int | None:
        if self._max_length is None:
            return self._max_new_tokens
        return max(self._max_length - prompt_length, 0)

    def _check_shapes(self, input_ids: Tensor, scores: Tensor) -> None:
        if input_ids.dim() != 2 or scores.dim() != 2 or len(input_ids) != len(scores):
            raise OptionError(
                f"input_ids of shape {tuple(input_ids.shape)} and scores of shape "
                f"{tuple(scores.shape)} are not those of generate(); continuous batching is not "
                "supported"
            )
        width = self._targets.vocabulary.width
        if scores.shape[1] < width:
            raise ModelError(
                f"the model gives {scores.shape[1]} logits, but the vocabulary has {width} ids; is "
                "the tokenizer of another model?"
            )


def _check_scores(rows: list[Row], masked: Tensor) -> None:
    """Refuse to go on where nothing legal is left."""
    best: list[float] = masked.amax(dim=-1).tolist()
    for index, (row, score) in enumerate(zip(rows, best, strict=True)):
        if score == NEVER and row.goes_on:
            raise GenerationError(
                f"row {index}: every token that the schema allows has a score of -inf; an option "
                "of generate() such as min_new_tokens, bad_words_ids or suppress_tokens, or "
                "another logits processor, forbids them all: leave it out"
            )
