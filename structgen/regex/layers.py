"""The bytes of all states of a character automaton at once, whatever characters each tells apart.

What letters take is worked out as nodes inside of characters, as in `utf8`, but with an exit for
each letter. All nodes with equally long ways to an exit are a *layer*: a matrix with a row for each
node and different targets of its exits, and a column for each range of bytes. Bytes with the same
target become one move only here, so it does not matter which letters a state does not tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.regex.copies import IntArray, different
from structgen.regex.dfa import Interval
from structgen.regex.limits import Meter

Longs = npt.NDArray[np.int64]


def layered(
    nodes: Sequence[list[Interval]],
    exits: Sequence[tuple[int, ...]],
    first_bytes: list[Interval],
    table: IntArray,
    meter: Meter,
) -> IntArray:
    """The moves of all states, int32[E, 4] of (state, first byte, last byte, target), sorted.

    Args:
        nodes: (first byte, last byte, target) by node, where `~letter` is an exit and other targets
            are earlier nodes.
        exits: the letters that each node leads to.
        first_bytes: the same moves for the first byte of a character.
        table: int32[letters, states], where each letter leads, -1 for nowhere; states from their
            count on are the copies of nodes.
    """
    layers = _Layers(nodes, exits, table)
    n_states = table.shape[1]
    everywhere = np.arange(n_states)
    moves: list[IntArray] = []
    for members in _by_height(nodes):
        cuts = _cuts([edge for node in members for edge in nodes[node]])
        parts = [layers.alternatives(node) for node in members]
        rows = np.concatenate(
            [
                layers.rows(nodes[node], cuts, index)
                for node, (index, _) in zip(members, parts, strict=True)
            ]
        )
        found, numbers = _numbered(rows, n_states)
        n_states += len(found)
        meter.states(n_states)
        moves.append(_moves(found, cuts, n_states - len(found)))
        layers.add(members, parts, numbers)
    cuts = _cuts(first_bytes)
    moves.insert(0, _moves(layers.rows(first_bytes, cuts, everywhere), cuts, 0))
    return np.concatenate(moves)


def matrix_size(nodes: Sequence[list[Interval]], states: int) -> int:
    """At most so many cells has any of the matrices."""
    layers = ([edge for node in members for edge in nodes[node]] for members in _by_height(nodes))
    return states * max((len(edges) * len(_cuts(edges)) for edges in layers), default=1)


class _Layers:
    """Where nodes lead, layer by layer."""

    def __init__(
        self, nodes: Sequence[list[Interval]], exits: Sequence[tuple[int, ...]], table: IntArray
    ) -> None:
        self._nodes = nodes
        self._exits = exits
        self._table = table
        self._copies: dict[int, IntArray] = {}
        """The copy of a node for each state."""
        self._alternatives: dict[tuple[int, ...], tuple[Longs, Longs]] = {}

    def alternatives(self, node: int) -> tuple[Longs, Longs]:
        """A state for each way in which the exits of a node lead on, and the way of each state."""
        exits = self._exits[node]
        found = self._alternatives.get(exits)
        if found is None:
            found = different([self._table[letter].astype(np.int64) + 1 for letter in exits])
            self._alternatives[exits] = found
        return found

    def rows(self, edges: list[Interval], cuts: list[int], states: Longs) -> IntArray:
        """int32[states, ranges]: the target of each range of bytes, -1 for none."""
        columns = {cut: column for column, cut in enumerate(cuts)}
        rows = np.full((len(states), len(cuts) - 1), -1, np.int32)
        for first, last, to in edges:
            targets = self._table[~to] if to < 0 else self._copies[to]
            rows[:, columns[first] : columns[last + 1]] = targets[states, None]
        return rows

    def add(self, members: list[int], parts: list[tuple[Longs, Longs]], numbers: IntArray) -> None:
        """Add copies of nodes; `numbers` are those of their rows."""
        at = 0
        for node, (index, way) in zip(members, parts, strict=True):
            self._copies[node] = numbers[at : at + len(index)][way]
            at += len(index)


def _by_height(nodes: Sequence[list[Interval]]) -> list[list[int]]:
    """The nodes by the number of bytes on the longest way to an exit."""
    height = [0] * len(nodes)
    layers: list[list[int]] = []
    for node, edges in enumerate(nodes):
        height[node] = 1 + max((height[to] for _, _, to in edges if to >= 0), default=0)
        while len(layers) < height[node]:
            layers.append([])
        layers[height[node] - 1].append(node)
    return layers


def _cuts(edges: list[Interval]) -> list[int]:
    """Where ranges of bytes begin that no edge tells apart, and where the last one ends."""
    return sorted({cut for first, last, _ in edges for cut in (first, last + 1)} or {0})


def _numbered(rows: IntArray, first: int) -> tuple[IntArray, IntArray]:
    """The rows that differ, and the number of each row; one that leads nowhere is -1."""
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, index, number = np.unique(keys, return_index=True, return_inverse=True)
    alive = (rows[index] >= 0).any(axis=1)
    numbers = np.where(alive, first - 1 + np.cumsum(alive), -1).astype(np.int32)
    return rows[index[alive]], numbers[number]


def _moves(rows: IntArray, cuts: list[int], state: int) -> IntArray:
    """The moves of states numbered from `state` on: neighbouring ranges with a target are one."""
    if not rows.size:
        return np.zeros((0, 4), np.int32)
    width = rows.shape[1]
    begins = np.ones(rows.shape, np.bool_)
    np.not_equal(rows[:, 1:], rows[:, :-1], out=begins[:, 1:])
    starts = np.flatnonzero(begins)
    last = np.append(starts[1:], rows.size) - 1
    targets = rows.ravel()[starts]
    alive = targets >= 0
    starts, last, targets = starts[alive], last[alive], targets[alive]
    bounds = np.array(cuts, np.int32)
    return np.stack(
        [
            (state + starts // width).astype(np.int32),
            bounds[starts % width],
            bounds[last % width + 1] - 1,
            targets,
        ],
        axis=1,
    )
