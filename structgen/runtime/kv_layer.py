"""A layer of a model's cache that grows in place.

transformers' own layer copies everything that it holds whenever a token is added. With SmolLM2-135M
in float32 on a CPU that is 4 % of a pass over 8 rows of 150 tokens, and more with every token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

ROOM = 64
"""Columns that are made ready at a time; a quarter of the columns in use where that is more."""


class GrowingLayer(DynamicLayer):
    """Keys and values [B, heads, T, size] at the beginning of larger tensors of its own.

    `keys` and `values` may be replaced at any time: the next update moves into new room then, and
    `of` gives the old room back at once.
    """

    _room: tuple[Tensor, Tensor] | None = None
    """Keys and values [B, heads, T + free, size]; None of a copy, which must not write to them."""
    _filled = 0
    """Columns of the room that were written, which a copy may still look at."""

    @classmethod
    def of(cls, layer: DynamicLayer) -> GrowingLayer:
        """A layer with the same content; the content is not copied before it grows."""
        new = cls()
        vars(new).update(vars(layer))
        new._room = None
        return new

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values [B, heads, K, size]; views of all of them."""
        if (
            not self.is_initialized
            or torch.compiler.is_compiling()
            or not (_is_like(key_states, self.keys) and _is_like(value_states, self.values))
        ):
            self._room = None
            return super().update(key_states, value_states, *args, **kwargs)
        assert self.keys is not None  # for the type checker: initialised layers have both
        assert self.values is not None
        old, new = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        room = self._room
        if room is None or not (
            old == self._filled
            and _begins(self.keys, room[0], new)
            and _begins(self.values, room[1], new)
        ):
            columns = new + max(ROOM, new // 4)
            room = self._room = _roomy(self.keys, columns), _roomy(self.values, columns)
        for tensor, states in zip(room, (key_states, value_states), strict=True):
            tensor[:, :, old:new] = states
        self._filled = new
        self.keys, self.values = room[0][:, :, :new], room[1][:, :, :new]
        return self.keys, self.values

    def __copy__(self) -> GrowingLayer:
        return GrowingLayer.of(self)


def _is_like(states: Tensor, part: Tensor | None) -> bool:
    """Whether states can be written behind others as they are, with no cast and no move."""
    return part is not None and (states.dtype, states.device) == (part.dtype, part.device)


def _begins(part: Tensor, room: Tensor, columns: int) -> bool:
    """Whether keys or values are the beginning of this room, and can grow there to `columns`."""
    return (
        room.shape[2] >= columns
        and part.shape[:2] == room.shape[:2]
        and part.data_ptr() == room.data_ptr()
        and part.stride() == room.stride()
        and room.is_inference() == torch.is_inference_mode_enabled()
    )


def _roomy(part: Tensor, columns: int) -> Tensor:
    """A copy of keys or values at the beginning of room for `columns`."""
    n_rows, n_heads, filled, size = part.shape
    room = part.new_empty((n_rows, n_heads, columns, size))
    room[:, :, :filled] = part
    return room
