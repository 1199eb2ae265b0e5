"""The most probable of many labels, found best first and proven.

A beginning is at least as probable as every label that begins so. So when the k-th label found is
at least as probable as every beginning that was not looked behind, the first k are the best ones.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from torch import Tensor

from structgen.classification.label_trie import LabelTrie
from structgen.classification.walk import Ending, log_softmax, stop_log_probs
from structgen.runtime.trees import MAX_PASS_TOKENS, ROOT, TokenTree

PASS_NODES = 48
"""Beginnings that are read in one pass; a pass costs little more than for one of them."""
MAX_PASSES = 64


@dataclass(slots=True)
class Found:
    """Labels found so far, and what is known of the others."""

    log_probs: dict[int, float] = field(default_factory=dict[int, float])
    """By the label's index."""
    exhausted: bool = False
    """No beginning is left that was not looked behind."""
    log_open: float = -math.inf
    """Log of the probability of all beginnings that were not looked behind."""
    highest_open: float = -math.inf
    """Log-probability of the most probable of them: no label not found is above it."""
    forward_passes: int = 0
    summed: bool = False
    """Labels that were found may still gain what is open."""

    @property
    def open_mass(self) -> float:
        """Probability of all beginnings that were not looked behind."""
        return math.exp(self.log_open)

    def ranked(self) -> list[int]:
        """The labels found, most probable first; equal ones in their order."""
        return sorted(self.log_probs, key=lambda label: (-self.log_probs[label], label))

    def proven(self, k: int) -> bool:
        """Whether the first k are the best there are."""
        ranked = self.ranked()
        if self.exhausted:
            return True
        if len(ranked) < k + self.summed:
            return False
        worst = self.log_probs[ranked[k - 1]]
        if not self.summed:
            return worst >= self.highest_open
        return worst >= float(np.logaddexp(self.log_probs[ranked[k]], self.log_open))


def best_labels(
    tree: TokenTree,
    first: Tensor,
    trie: LabelTrie,
    end_ids: tuple[int, ...],
    ending: Ending,
    *,
    k: int,
    max_passes: int = MAX_PASSES,
    max_open_mass: float = 1.0,
    max_nodes: int = MAX_PASS_TOKENS,
) -> Found:
    """The k most probable labels behind one prompt, proven unless `max_passes` ends the search.

    Args:
        tree: behind the prompt, fresh.
        first: logits [1, W] that follow the prompt.
        max_open_mass: the search goes on until no more probability than this was not looked behind.
        max_nodes: beginnings that one pass may read.
    """
    search = _Search(tree, trie, end_ids, ending, max_nodes)
    search.open(ROOT, 0.0, log_softmax(first[:, None])[0, 0])
    return go_on(search, k, max_passes, max_open_mass)


class BestFirst(Protocol):
    """A search that reads the most probable beginnings first."""

    found: Found

    @property
    def frontier(self) -> Sized:
        """Beginnings that have to be read."""
        ...

    def measure(self) -> None:
        """Say what the frontier leaves open."""
        ...

    def read_best(self) -> None:
        """Read the most probable beginnings, in one pass."""
        ...


def go_on(search: BestFirst, k: int, max_passes: int, max_open_mass: float) -> Found:
    """Read until the first k labels are proven and little is left open, or passes run out."""
    while len(search.frontier) and search.found.forward_passes < max_passes:
        search.measure()
        if search.found.proven(k) and search.found.open_mass <= max_open_mass:
            break
        search.read_best()
    search.measure()
    return search.found


class _Search:
    def __init__(
        self,
        tree: TokenTree,
        trie: LabelTrie,
        end_ids: tuple[int, ...],
        ending: Ending,
        max_nodes: int,
    ) -> None:
        self.found = Found()
        self.frontier: list[tuple[float, int]] = []
        """A heap of (-log-probability, node): beginnings that have to be read."""
        self._tree, self._trie, self._end_ids = tree, trie, end_ids
        self._ending: Ending = ending
        self._max_nodes = max_nodes
        self._labels = {node: label for label, node in enumerate(trie.label_nodes.tolist())}
        self._numbers = {ROOT: ROOT}
        """Of the nodes that were read, in the token tree."""

    def open(self, node: int, reached: float, log_probs: Tensor) -> None:
        """Take note of a node's children; log-probabilities [W] follow the node."""
        children = self._trie.children_of(node)
        if not children:
            return
        tokens = self._trie.token_ids[children].tolist()
        for child, step in zip(children, log_probs[tokens].tolist(), strict=True):
            is_leaf = not self._trie.children_of(child)
            if is_leaf and self._ending == "open":
                self.found.log_probs[self._labels[child]] = reached + step
            else:
                heapq.heappush(self.frontier, (-(reached + step), child))

    def measure(self) -> None:
        """Say what the frontier leaves open."""
        self.found.exhausted = not self.frontier
        self.found.log_open = log_sum([-cost for cost, _ in self.frontier])
        self.found.highest_open = -self.frontier[0][0] if self.frontier else -math.inf

    def read_best(self) -> None:
        """Read the most probable beginnings, each with what is certain to be read after it."""
        nodes: list[int] = []
        reached: dict[int, float] = {}
        while self.frontier and len(nodes) < min(PASS_NODES, self._max_nodes):
            cost, node = heapq.heappop(self.frontier)
            reached[node] = -cost
            nodes.extend(self._only_way(node)[: self._max_nodes - len(nodes)])
        for number, node in enumerate(nodes, self._tree.n_nodes):
            self._numbers[node] = number
        parents = [self._numbers[int(self._trie.parents[node])] for node in nodes]
        logits = self._tree.read(self._trie.token_ids[nodes].tolist(), parents)
        self.found.forward_passes = self._tree.forward_passes
        log_probs = log_softmax(logits)
        stops = stop_log_probs(log_probs, nodes, self._trie, self._end_ids, self._ending)[0]
        for place, node in enumerate(nodes):
            if node not in reached:  # the only child of the one before
                before = int(self._trie.parents[node])
                at = int(self._trie.token_ids[node])
                reached[node] = reached[before] + float(log_probs[0, place - 1, at])
            if node in self._labels:
                self.found.log_probs[self._labels[node]] = reached[node] + float(stops[place])
            if self._only_child(node) not in nodes[place + 1 : place + 2]:
                self.open(node, reached[node], log_probs[0, place])

    def _only_way(self, node: int) -> list[int]:
        """The node and those behind it, as long as there is one that has to be read."""
        way = [node]
        while (child := self._only_child(way[-1])) is not None:
            way.append(child)
        return way

    def _only_child(self, node: int) -> int | None:
        """The only child of a node, if it has to be read."""
        children = self._trie.children_of(node)
        if len(children) != 1:
            return None
        is_leaf = not self._trie.children_of(children[0])
        return None if is_leaf and self._ending == "open" else children[0]


def log_sum(log_probs: list[float]) -> float:
    """Log of the sum of probabilities; -inf of none."""
    return float(np.logaddexp.reduce(log_probs, initial=-np.inf)) if log_probs else -math.inf
