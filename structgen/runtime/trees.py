"""What a model says after many continuations of the same prompts that share their beginnings.

The continuations form a tree of tokens. Each of its nodes is read once, whole branches in one
forward pass: a node attends to the prompt and to its own ancestors only (tree attention, as in
SpecInfer, Miao and others 2024). Letters of shapes: B prompts, K nodes of a pass, M nodes in all,
T columns of the prompts' cache, W columns of the logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from structgen.errors import OptionError
from structgen.runtime.kv_cache import KVCache
from structgen.runtime.lm import Cache, LanguageModel

ROOT = -1
"""The end of the prompts, as the parent of a node."""
MAX_PASS_TOKENS = 16_384
"""Tokens of one pass over all its rows, where nothing else is asked for."""


class TokenTree(Protocol):
    """Continuations of B prompts that are being read; mutable, of one thread."""

    @property
    def n_nodes(self) -> int:
        """Nodes that were read."""
        ...

    @property
    def forward_passes(self) -> int:
        """Calls of the model so far."""
        ...

    def read(self, token_ids: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Read more nodes behind every prompt, in one forward pass where the model can.

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


@dataclass(frozen=True, slots=True)
class TreeSource:
    """Opens trees behind the same prompts, one after another."""

    lm: LanguageModel
    cache: Cache
    """Of the prompts; used up by the last tree."""
    lengths: Sequence[int]
    """Tokens of each prompt."""
    max_pass_tokens: int = MAX_PASS_TOKENS
    """Tokens that the rows of one pass may hold, where branches are read as rows."""

    def open(self, *, last: bool = True) -> TokenTree:
        """A fresh tree; what it reads is forgotten with it.

        Args:
            last: no other will be opened.
        """
        cache = self.cache if last else self.lm.fork(self.cache)
        tree = self.lm.open_tree(cache) if isinstance(self.lm, ReadsTrees) else None
        return RowTree(self.lm, cache, self.lengths, self.max_pass_tokens) if tree is None else tree


class Ancestry:
    """Which nodes of a tree each node sees: its ancestors and itself."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        """Tokens between the prompt and each node."""
        self._parents: list[int] = []

    def __len__(self) -> int:
        return len(self._parents)

    def add(self, parents: Sequence[int]) -> None:
        """Add nodes, each behind one that is there or is added before it."""
        for number, parent in enumerate(parents, len(self._parents)):
            if not ROOT <= parent < number:
                raise OptionError(f"node {number} of a tree cannot follow node {parent}")
            self._parents.append(parent)
            self.depths.append(0 if parent == ROOT else self.depths[parent] + 1)

    def seen_by(self, n_last: int) -> Tensor:
        """Bool [K, M], the nodes that each of the last K sees."""
        n_nodes = len(self._parents)
        sees = torch.zeros((n_last, n_nodes), dtype=torch.bool)
        for row, number in enumerate(range(n_nodes - n_last, n_nodes)):
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
        self._tree.add(parents)
        nodes = self._tree.seen_by(len(parents)).to(device)
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
    """The same for any model, one row of a batch for each node: slow, and simple.

    Rows are copies of the prompts' cache, so they are read some at a time.
    """

    def __init__(
        self,
        lm: LanguageModel,
        cache: Cache,
        lengths: Sequence[int],
        max_pass_tokens: int = MAX_PASS_TOKENS,
    ) -> None:
        self._lm, self._cache, self._lengths = lm, cache, lengths
        self._max_pass_tokens = max_pass_tokens
        # Padding would take room in a sliding window, and would be read by a recurrent state.
        self._pads = lm.can_join(cache)
        self._tree = Ancestry()
        self._token_ids: list[int] = []
        self._n_passes = 0

    @property
    def n_nodes(self) -> int:
        return len(self._tree)

    @property
    def forward_passes(self) -> int:
        return self._n_passes

    def read(self, token_ids: Sequence[int], parents: Sequence[int]) -> Tensor:
        first = len(self._tree)
        self._tree.add(parents)
        self._token_ids.extend(token_ids)
        found: Tensor | None = None
        for pairs in self._groups(first):
            rows, nodes = [row for row, _ in pairs], [node for _, node in pairs]
            logits = self._read_rows(rows, nodes)
            if found is None:
                found = logits.new_empty((len(self._lengths), len(parents), logits.shape[1]))
            found[rows, [node - first for node in nodes]] = logits
        assert found is not None, "there is at least one node"
        return found

    def _groups(self, first: int) -> Iterator[list[tuple[int, int]]]:
        """(row, node) of all new nodes, as many in a group as one pass may hold."""
        depths = self._tree.depths
        new = sorted(range(first, len(depths)), key=lambda node: depths[node])
        most = max(self._max_pass_tokens // (max(self._lengths) + depths[new[-1]] + 1), 1)
        for _, alike in groupby(new, key=lambda node: 0 if self._pads else depths[node]):
            pairs = [(row, node) for node in alike for row in range(len(self._lengths))]
            yield from (pairs[start : start + most] for start in range(0, len(pairs), most))

    def _read_rows(self, rows: Sequence[int], nodes: Sequence[int]) -> Tensor:
        """Logits [number of pairs, W] behind a prompt and the way to a node."""
        chunks = [[self._token_ids[part] for part in self._tree.path(node)] for node in nodes]
        copies = self._lm.select(self._lm.fork(self._cache), rows)
        self._n_passes += 1
        return self._lm.extend(copies, chunks)
