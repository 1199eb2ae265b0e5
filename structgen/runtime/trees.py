"""What a model says after many continuations of the same prompts that share their beginnings.

The continuations form a tree of tokens. Each of its nodes is read once, whole branches in one
forward pass: a node attends to the prompt and to its own ancestors only (tree attention, as in
SpecInfer, Miao and others 2024). Letters of shapes: B prompts, K nodes of a pass, M nodes in all,
T columns of the prompts' cache, W columns of the logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from structgen.errors import OptionError
from structgen.runtime.kv_cache import KVCache
from structgen.runtime.lm import Cache, LanguageModel

ROOT = -1
"""The end of the prompts, as the parent of a node."""


class TokenTree(Protocol):
    """Continuations of B prompts that are being read; mutable, of one thread."""

    @property
    def n_nodes(self) -> int:
        """Nodes that were read."""
        ...

    def read(self, token_ids: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Read more nodes behind every prompt, in one forward pass.

        Args:
            token_ids: of the new nodes, at least one.
            parents: number of the node that each follows, in the order of reading, new ones
                included; ROOT for the end of the prompts.

        Returns:
            Float logits [B, K, W] that follow the new nodes.
        """
        ...


@runtime_checkable
class ReadsTrees(Protocol):
    """A language model that can read a tree in one pass."""

    def open_tree(self, cache: Cache) -> TokenTree | None:
        """A tree behind the rows of a cache, which is used up; None where it has to be rows."""
        ...


def open_tree(lm: LanguageModel, cache: Cache, n_rows: int) -> TokenTree:
    """A tree behind the `n_rows` rows of a cache, which is used up."""
    tree = lm.open_tree(cache) if isinstance(lm, ReadsTrees) else None
    return RowTree(lm, cache, n_rows) if tree is None else tree


class Ancestry:
    """Which nodes of a tree each node sees: its ancestors and itself."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        """Tokens between the prompt and each node."""
        self._parents: list[int] = []

    def __len__(self) -> int:
        return len(self._parents)

    def add(self, parents: Sequence[int]) -> Tensor:
        """Add nodes; bool [K, M], the nodes that each of the new ones sees."""
        first = len(self._parents)
        for number, parent in enumerate(parents, first):
            if not ROOT <= parent < number:
                raise OptionError(f"node {number} of a tree cannot follow node {parent}")
            self._parents.append(parent)
            self.depths.append(0 if parent == ROOT else self.depths[parent] + 1)
        sees = torch.zeros((len(parents), len(self._parents)), dtype=torch.bool)
        for row, number in enumerate(range(first, len(self._parents))):
            sees[row, self.path(number)] = True
        return sees

    def path(self, node: int) -> list[int]:
        """The nodes from the prompt to a node, which is the last of them."""
        found: list[int] = []
        while node != ROOT:
            found.append(node)
            node = self._parents[node]
        return found[::-1]


class AttentionMask:
    """Masks for the passes that read a tree behind the rows of a cache."""

    def __init__(self, cache: KVCache, dtype: torch.dtype) -> None:
        self._prompts = cache.mask.bool()  # [B, T]
        self._lengths = torch.tensor(cache.lengths, device=cache.mask.device)  # [B]
        self._dtype = dtype
        self._tree = Ancestry()

    def __len__(self) -> int:
        return len(self._tree)

    def add(self, parents: Sequence[int]) -> tuple[Tensor, Tensor]:
        """What new nodes see, and where they stand.

        Returns:
            A mask [B, 1, K, T + M] that is added to attention scores, and positions int64 [B, K].
        """
        device, (n_rows, columns) = self._prompts.device, self._prompts.shape
        nodes = self._tree.add(parents).to(device)
        seen = torch.cat(
            [
                self._prompts[:, None].expand(n_rows, len(parents), columns),
                nodes[None].expand(n_rows, -1, -1),
            ],
            dim=2,
        )
        mask = torch.zeros(seen.shape, dtype=self._dtype, device=device)
        mask.masked_fill_(~seen, torch.finfo(self._dtype).min)
        depths = torch.tensor(self._tree.depths[-len(parents) :], device=device)
        return mask[:, None], self._lengths[:, None] + depths[None]


class RowTree:
    """The same for any model, one row of a batch for each node: slow, and simple."""

    def __init__(self, lm: LanguageModel, cache: Cache, n_rows: int) -> None:
        self._lm, self._cache, self._n_rows = lm, cache, n_rows
        self._tree = Ancestry()
        self._token_ids: list[int] = []

    @property
    def n_nodes(self) -> int:
        return len(self._tree)

    def read(self, token_ids: Sequence[int], parents: Sequence[int]) -> Tensor:
        first = len(self._tree)
        self._tree.add(parents)
        self._token_ids.extend(token_ids)
        paths = [self._tree.path(node) for node in range(first, len(self._tree))]
        chunks = [[self._token_ids[node] for node in path] for path in paths] * self._n_rows
        rows = [row for row in range(self._n_rows) for _ in paths]
        copies = self._lm.select(self._lm.fork(self._cache), rows)
        logits = self._lm.extend(copies, chunks)  # [B * K, W]
        return logits.view(self._n_rows, len(paths), -1)
