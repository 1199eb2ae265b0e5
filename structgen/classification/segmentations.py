"""Labels in any spelling: their probability sums over all ways to cut them into tokens.

There are exponentially many ways, nearly all of next to no probability. They are looked at best
first; what was not looked at is a bound on what is missing.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from structgen.classification.search import PASS_NODES, Found, go_on, log_sum
from structgen.classification.walk import log_softmax
from structgen.runtime.trees import ROOT, TokenTree
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary


@dataclass(slots=True, order=True)
class _Way:
    """Some tokens behind the prompt."""

    cost: float
    """Minus its log-probability."""
    order: int
    session: Session = field(compare=False)
    token_id: int = field(compare=False)
    parent: int = field(compare=False)
    """Its number in the token tree."""


def sum_segmentations(
    tree: TokenTree,
    first: Tensor,
    session: Session,
    vocabulary: Vocabulary,
    labels: dict[str, int],
    *,
    k: int,
    max_passes: int,
    max_open_mass: float,
    max_nodes: int = PASS_NODES,
) -> Found:
    """Log-probabilities of labels behind one prompt; each is a lower bound by up to `open_mass`.

    Args:
        tree: behind the prompt without what the session holds back, fresh.
        first: logits [1, W] that follow that prompt.
        session: over the labels as plain texts, fresh.
        labels: the index of each text.
        k: the search ends when the first k labels can change places no more, and
        max_open_mass: no more probability than this was not looked at.
        max_nodes: beginnings that one pass may read.
    """
    n_held = len(vocabulary.decode(session.held_back))
    search = _Sum(tree, vocabulary, labels, n_held, min(PASS_NODES, max_nodes))
    search.open(session, 0.0, ROOT, log_softmax(first[:, None])[0, 0])
    return go_on(search, k, max_passes, max_open_mass)


class _Sum:
    def __init__(
        self,
        tree: TokenTree,
        vocabulary: Vocabulary,
        labels: dict[str, int],
        n_held: int,
        n_nodes: int,
    ) -> None:
        self.found = Found(summed=True)
        self.frontier: list[_Way] = []
        self._tree, self._vocabulary, self._labels, self._n_held = tree, vocabulary, labels, n_held
        self._n_nodes = n_nodes
        self._n_ways = 0

    def open(self, session: Session, reached: float, node: int, log_probs: Tensor) -> None:
        """Take note of all that can follow; log-probabilities [W]."""
        if session.accepting:
            ended = reached + float(log_probs[list(self._vocabulary.eos_token_ids)].logsumexp(-1))
            text = self._vocabulary.decode(session.token_ids)[self._n_held :].decode()
            label = self._labels[text]
            before = self.found.log_probs.get(label, -math.inf)
            self.found.log_probs[label] = float(np.logaddexp(before, ended))
        token_ids = self._legal(session)
        for token_id, step in zip(token_ids, log_probs[token_ids].tolist(), strict=True):
            way = _Way(-(reached + step), self._n_ways, session, token_id, node)
            self._n_ways += 1
            heapq.heappush(self.frontier, way)

    def _legal(self, session: Session) -> list[int]:
        mask = session.mask()
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        bits[list(self._vocabulary.eos_token_ids)] = 0
        return np.flatnonzero(bits).tolist()

    def measure(self) -> None:
        """Say what the frontier leaves open."""
        self.found.exhausted = not self.frontier
        self.found.log_open = log_sum([-way.cost for way in self.frontier])

    def read_best(self) -> None:
        """Read the most probable ways in one pass."""
        n_ways = min(self._n_nodes, len(self.frontier))
        ways = [heapq.heappop(self.frontier) for _ in range(n_ways)]
        first = self._tree.n_nodes
        logits = self._tree.read([way.token_id for way in ways], [way.parent for way in ways])
        self.found.forward_passes = self._tree.forward_passes
        log_probs = log_softmax(logits)[0]  # [K, W]
        for place, way in enumerate(ways):
            session = way.session.fork()
            session.advance(way.token_id)
            self.open(session, -way.cost, first + place, log_probs[place])
