"""A decoding method for `model.generate(custom_generate=...)` that skips forced tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteriaList,
)
from transformers.generation.configuration_utils import GenerationMode
from transformers.generation.utils import GenerateDecoderOnlyOutput

from structgen.errors import ModelError, OptionError
from structgen.integrations.hf.choosing import Batch, Chooser, stop
from structgen.integrations.hf.feeding import INSTEAD, Feeder
from structgen.integrations.hf.targets import Targets, ends, targets
from structgen.integrations.hf.writing import Writing
from structgen.runtime.masking import NEVER


class Streamer(Protocol):
    """What transformers' streamers are."""

    def put(self, value: Tensor) -> None: ...
    def end(self) -> None: ...


@dataclass
class StructgenOutput(GenerateDecoderOnlyOutput):
    """What `generate(return_dict_in_generate=True)` returns.

    `scores`, if they are asked for, are one-hot (0, and -inf elsewhere) where no token was chosen.
    """

    forward_passes: int | None = None
    """Calls of the model, the one that read the prompts included."""
    forced_tokens: tuple[int, ...] | None = None
    """Tokens of each row that the model was not asked for, a certain end token included."""


class StructgenGenerate:
    """Writes what the schema leaves no choice about without asking the model.

    All forced tokens enter the cache in one forward pass together with the choice before them, and
    those at the end of a value in none. The budget is what `generate` is given, and each value
    is finished within it. It goes with batches, left padding, sampling, logits processors,
    `num_return_sequences` and stopping criteria; immutable, shared between threads.

    Example:
        write = StructgenGenerate(Person, tokenizer)
        ids = model.generate(**inputs, custom_generate=write, max_new_tokens=200)
        parse(write, ids, inputs.input_ids.shape[1]) -> [Person(...)]

    Args:
        schema, tokenizer: as of `StructgenLogitsProcessor`.
        streamer: gets the prompt and then each token of a single row. To be given here, since
            transformers does not pass on the one that `generate` was given.
    """

    def __init__(
        self, schema: object, tokenizer: object = None, *, streamer: Streamer | None = None
    ) -> None:
        self._targets = targets(schema, tokenizer)
        self._streamer = streamer

    @property
    def targets(self) -> Targets:
        """The compiled schemas."""
        return self._targets

    def may_stop_after(self, n_tokens: int, prompt_length: int) -> bool:  # noqa: ARG002
        """Whether a value that may end here was ended on purpose: by its budget, so always."""
        return True

    def __call__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        **model_kwargs: Any,
    ) -> Tensor | StructgenOutput:
        """Called by `generate`.

        Raises:
            OptionError: an option that this loop does not follow, beams for one.
            BudgetError: the shortest value does not fit into `max_new_tokens`.
        """
        _check_config(generation_config)
        if self._streamer is not None and len(input_ids) > 1:
            raise OptionError(f"a streamer shows one row, but there are {len(input_ids)}")
        call = _Call(
            self._targets, model, input_ids, logits_processor, generation_config, model_kwargs
        )
        if self._streamer is not None:
            self._streamer.put(input_ids.cpu())
        for token in call.turns(stopping_criteria):
            if self._streamer is not None:
                self._streamer.put(torch.tensor([token]))
        if self._streamer is not None:
            self._streamer.end()
        return call.output()


class _Call:
    """One call of `generate`."""

    def __init__(
        self,
        wanted: Targets,
        model: PreTrainedModel,
        input_ids: Tensor,
        processors: LogitsProcessorList,
        config: GenerationConfig,
        model_kwargs: dict[str, Any],
    ) -> None:
        self._config = config
        self._width = wanted.vocabulary.width
        rows = _rows(wanted, input_ids, config)
        pad = config.pad_token_id
        self._batch = Batch(input_ids, rows, rows[0].end_token if pad is None else pad)
        stops = ends(wanted.vocabulary, config.eos_token_id)
        self._chooser = Chooser(self._batch, processors, stops, do_sample=bool(config.do_sample))
        self._feeder = Feeder(model, input_ids, config, model_kwargs)
        self._scores: list[dict[int, Tensor]] = [{} for _ in rows]

    def turns(self, criteria: StoppingCriteriaList) -> Iterator[int]:
        """Write all rows; the tokens of the first one as they come."""
        rows = self._batch.rows
        n_shown = 0
        while True:
            for row in rows:
                row.take_forced()
            stop(self._batch, criteria)
            open_rows = [row for row in rows if not row.done]
            if open_rows:
                self._choose(open_rows)
            yield from rows[0].tokens[n_shown:]
            n_shown = len(rows[0].tokens)
            if not open_rows:
                return

    def _choose(self, rows: list[Writing]) -> None:
        """One forward pass and one choice in each of these rows."""
        logits = self._feeder.logits([row.index for row in rows], [row.read() for row in rows])
        if logits.shape[1] < self._width:
            raise ModelError(
                f"the model gives {logits.shape[1]} logits, but the vocabulary has {self._width} "
                "ids; is the tokenizer of another model?"
            )
        token_ids, scores = self._chooser.choose(rows, logits)  # scores [A, W]
        for row, token, own in zip(rows, token_ids, scores, strict=True):
            if self._config.output_scores and self._config.return_dict_in_generate:
                self._scores[row.index][len(row.tokens)] = own
            row.take(token)

    def output(self) -> Tensor | StructgenOutput:
        """What `generate` returns."""
        sequences = self._batch.ids()
        if not self._config.return_dict_in_generate:
            return sequences
        return StructgenOutput(
            sequences=sequences,  # pyright: ignore[reportArgumentType]  # a LongTensor
            scores=self._all_scores(sequences) if self._config.output_scores else None,  # pyright: ignore[reportArgumentType]  # any number of them
            forward_passes=self._feeder.n_passes,
            forced_tokens=tuple(len(row.forced) for row in self._batch.rows),
        )

    def _all_scores(self, sequences: Tensor) -> tuple[Tensor, ...]:
        """Float32 [B, W] for each token that the longest row has."""
        written = sequences[:, self._batch.prompts.shape[1] :]  # [B, n]
        width = max((len(one) for own in self._scores for one in own.values()), default=self._width)
        steps: list[Tensor] = []
        for place, token_ids in enumerate(written.unbind(1)):
            step = torch.full((len(written), width), NEVER, device=sequences.device)
            step[torch.arange(len(step)), token_ids] = 0.0
            for row, own in enumerate(self._scores):
                if place in own:
                    step[row] = own[place]
            steps.append(step)
        return tuple(steps)


def _rows(wanted: Targets, input_ids: Tensor, config: GenerationConfig) -> list[Writing]:
    budget = max(int(config.max_length or 0) - input_ids.shape[1], 0)
    end = _end_token(wanted, config)
    each = enumerate(wanted.of_rows(len(input_ids)))
    return [Writing(index, one.session(budget), end, budget) for index, one in each]


def _end_token(wanted: Targets, config: GenerationConfig) -> int:
    """The end token that `generate` would stop at."""
    known, stops = wanted.vocabulary.eos_token_ids, config.eos_token_id
    named: list[Any] = [stops] if isinstance(stops, int) else list(stops or [])
    return next((int(one) for one in named if int(one) in known), known[0])


def _check_config(config: GenerationConfig) -> None:
    """Refuse what would be ignored otherwise."""
    mode = config.get_generation_mode()
    if mode not in (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE):
        raise OptionError(
            f"StructgenGenerate does greedy search and sampling, not {mode.value}; for that, "
            f"{INSTEAD}"
        )
    refused = ["prefill_chunk_size"]
    if config.return_dict_in_generate:
        refused += ["output_attentions", "output_hidden_states", "output_logits"]
    asked = [name for name in refused if getattr(config, name, None)]
    if asked:
        raise OptionError(f"StructgenGenerate does not support {', '.join(asked)}; {INSTEAD}")
