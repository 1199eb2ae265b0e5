"""Forward passes of a transformers model over chunks of different length.

Letters of shapes: B rows, T tokens in the cache (padding included), K tokens of a chunk, W columns
of the logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from structgen.errors import ModelError, OptionError

OWN_KWARGS = ("attention_mask", "logits_to_keep", "past_key_values", "position_ids", "use_cache")
"""What `generate` passes to a decoding method for a model of text."""


class Feeder:
    """A model, its cache, and what of the batch the model has read.

    Chunks are padded on the left; the mask hides the padding and positions count only real tokens,
    so each row gets the logits that it gets alone. In a model with a sliding window the padding
    takes room in the window.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        config: GenerationConfig,
        model_kwargs: Mapping[str, Any],
    ) -> None:
        check_model(model, len(input_ids), model_kwargs)
        self._model = model
        self._device = input_ids.device
        self._cache: Any = model_kwargs["past_key_values"]
        self._options = {k: v for k, v in model_kwargs.items() if k in ("logits_to_keep",)}
        self._rows = list(range(len(input_ids)))
        self._has_positions = "position_ids" in model_kwargs
        mask = _mask(input_ids, config, model_kwargs.get("attention_mask"))  # [B, T]
        if self._has_positions:
            _check_positions(model_kwargs["position_ids"], mask)
        # The ids are all that the mask covers, or those that a given cache lacks.
        n_read = self._cache.get_seq_length() if mask.shape[1] == input_ids.shape[1] else 0
        unread = input_ids[:, n_read:]
        split = mask.shape[1] - unread.shape[1]
        self._mask = mask[:, :split]  # [B, T], of what is in the cache
        self._prompts: list[list[int]] = unread.tolist()
        self._prompt_masks: list[list[int]] = mask[:, split:].tolist()
        self.n_passes = 0

    def logits(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> Tensor:
        """Append a chunk to each of these rows, and drop the others for good.

        Args:
            rows: indices into the batch, each of them among those of the last call.
            chunks: token ids; none may be empty, except in the first call, which reads the prompts.

        Returns:
            float32 [B, W] of these rows, on the device of the prompts, for the caller to change.
        """
        self._select(rows)
        ids, real = self._padded(chunks)  # [B, K] each
        mask = torch.cat([self._mask, real], dim=1)  # [B, T]
        options = dict(self._options)
        if self._has_positions:
            options["position_ids"] = positions(mask)[:, -ids.shape[1] :]
        prepare: Any = self._model.prepare_inputs_for_generation  # pyright takes it for a tensor
        inputs = prepare(
            ids,
            past_key_values=self._cache,
            attention_mask=None if bool(mask.all()) else mask,  # without a mask models are faster
            is_first_iteration=self.n_passes == 0,
            use_cache=True,
            **options,
        )
        output: Any = self._model(**inputs, return_dict=True)
        self._cache, self._mask = output.past_key_values, mask
        self.n_passes += 1
        return output.logits[:, -1].to(copy=True, dtype=torch.float32, device=self._device)

    def _select(self, rows: Sequence[int]) -> None:
        if list(rows) == self._rows:
            return
        index = torch.tensor([self._rows.index(row) for row in rows], device=self._device)
        if self._cache.get_seq_length():
            self._cache.batch_select_indices(index)
        self._mask = self._mask[index]
        self._rows = list(rows)

    def _padded(self, chunks: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Ids and their mask, int64 [B, K], with the unread prompts in front."""
        ids, real = [list(chunk) for chunk in chunks], [[1] * len(chunk) for chunk in chunks]
        if self.n_passes == 0:
            ids = [self._prompts[r] + chunk for r, chunk in zip(self._rows, ids, strict=True)]
            real = [self._prompt_masks[r] + ones for r, ones in zip(self._rows, real, strict=True)]
        longest = max(map(len, ids))
        both = [[[0] * (longest - len(row)) + row for row in part] for part in (ids, real)]
        tensors = torch.tensor(both, dtype=torch.int64, device=self._device)  # [2, B, K]
        return tensors[0], tensors[1]


def positions(mask: Tensor) -> Tensor:
    """The place of each token in its row, padding not counted: int64 [B, T] like the mask."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def _mask(input_ids: Tensor, config: GenerationConfig, given: Tensor | None) -> Tensor:
    """int64 [B, T]; `generate` leaves it out where it is all ones, and notes its length."""
    if given is not None:
        return given.to(torch.int64)
    n_columns = getattr(config, "_mask_length", input_ids.shape[1])
    return torch.ones((len(input_ids), n_columns), dtype=torch.int64, device=input_ids.device)


def check_model(model: PreTrainedModel, n_rows: int, model_kwargs: Mapping[str, Any]) -> None:
    """Refuse models and inputs for which chunks of several tokens, or padding, do not work."""
    others = sorted(
        key
        for key, value in model_kwargs.items()
        if key not in OWN_KWARGS and isinstance(value, Tensor)
    )
    if model.config.is_encoder_decoder or others:
        what = f"the inputs {others}" if others else "an encoder-decoder model"
        raise OptionError(f"StructgenGenerate does not support {what}; {INSTEAD}")
    cache = model_kwargs.get("past_key_values")
    if cache is None or getattr(cache, "is_compileable", False):
        raise OptionError(
            "StructgenGenerate needs a cache that grows: use_cache=True, and no static cache or "
            f"cache_implementation; otherwise {INSTEAD}"
        )
    stateful = getattr(model, "_is_stateful", False)
    if n_rows > 1 and (stateful or "position_ids" not in model_kwargs):
        raise ModelError(
            f"{type(model).__name__} cannot skip padding in the middle of a row, which batches of "
            f"StructgenGenerate need; generate one row at a time, or {INSTEAD}"
        )


INSTEAD = "use a StructgenLogitsProcessor"


def _check_positions(given: Tensor, mask: Tensor) -> None:
    fits = given.dim() == 2 and given.shape[1] == mask.shape[1]
    if not (fits and bool((positions(mask) * mask == given * mask).all())):
        raise OptionError(
            f"StructgenGenerate counts positions itself and cannot follow other ones; {INSTEAD}"
        )
