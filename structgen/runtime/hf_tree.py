"""Tree attention with transformers models; see `structgen.runtime.trees`.

Letters of shapes: B prompts, K nodes of a pass, W columns of the logits.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from structgen.runtime.evaluating import evaluating
from structgen.runtime.kv_cache import KVCache
from structgen.runtime.trees import AttentionMask
from structgen.runtime.upcast import wide_products


def reads_trees(model: PreTrainedModel) -> bool:
    """Whether the model takes a mask and positions of our own, and sees all that they show."""
    config = model.config.get_text_config()
    attention = getattr(config, "_attn_implementation", None)
    takes_positions = "position_ids" in inspect.signature(model.forward).parameters
    return attention in ("sdpa", "eager") and takes_positions and not _has_window(config)


def _has_window(config: PreTrainedConfig) -> bool:
    """Whether layers see a part of what came before: a mask of ours would take their place."""
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return any(kind != "full_attention" for kind in kinds)
    slides = getattr(config, "use_sliding_window", True)
    return bool(slides and getattr(config, "sliding_window", None))


class HFTree:
    """Continuations of prompts that are being read by a transformers model."""

    def __init__(self, model: PreTrainedModel, cache: KVCache) -> None:
        self._model, self._kv = model, cache.kv
        self._masks = AttentionMask(cache, model.dtype)
        self._n_rows = len(cache.lengths)
        self._n_passes = 0

    @property
    def n_nodes(self) -> int:
        return len(self._masks)

    @property
    def forward_passes(self) -> int:
        return self._n_passes

    @torch.no_grad()
    def read(self, token_ids: Sequence[int], parents: Sequence[int]) -> Tensor:
        device, dtype = self._model.device, self._model.dtype
        mask, positions = self._masks.add(parents)
        ids = torch.tensor([list(token_ids)] * self._n_rows, device=device)  # [B, K]
        with evaluating(self._model), wide_products(device, dtype, ids.numel()):
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=self._kv,
                use_cache=True,
            )
        self._kv = output.past_key_values
        self._n_passes += 1
        return output.logits  # [B, K, W]
