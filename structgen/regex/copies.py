"""The bytes of many states of a character automaton at once: copies of the nodes in characters.

What one state takes is worked out node by node in `utf8`; here each node is copied for all states
that need it by a few operations on arrays. Copies with the same moves are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.regex.dfa import Interval
from structgen.regex.limits import Meter

IntArray: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]

Group: TypeAlias = tuple[list[Interval], list[int], list[list[int]]]
"""(moves of a shape, the states with this shape, the targets of each by exit)"""


def copied(
    nodes: Sequence[list[Interval]], groups: Sequence[Group], characters: int, meter: Meter
) -> IntArray:
    """The moves of all states, int32[E, 4] of (state, first byte, last byte, target), sorted.

    Args:
        nodes: (first byte, last byte, target) by node, where `~exit` is an exit and other targets
            are earlier nodes.
        groups: the states with each shape; states from `characters` on are the copies.
    """
    return _Copies(nodes, groups, characters, meter).moves()


class _Copies:
    def __init__(
        self, nodes: Sequence[list[Interval]], groups: Sequence[Group], first: int, meter: Meter
    ) -> None:
        self._nodes = nodes
        self._groups = groups
        self._targets = [np.array(targets, np.int64).T for _, _, targets in groups]
        self._next = first
        self._meter = meter
        self._copies: dict[tuple[int, int], Longs] = {}
        """The copy of a node for each state of a group."""
        self._found: list[Longs] = []

    def moves(self) -> IntArray:
        for members in _by_height(self._nodes, [shape for shape, _, _ in self._groups]):
            self._copy(members)
        for group, (shape, states, _) in enumerate(self._groups):
            for first, last, to in shape:
                self._add(np.array(states, np.int64), first, last, self._reached(group, to))
        found = np.concatenate(self._found, axis=1) if self._found else np.zeros((4, 0), np.int64)
        order = np.argsort(found[0] << 8 | found[1])
        return np.ascontiguousarray(found.T[order], np.int32)

    def _copy(self, members: list[tuple[int, int]]) -> None:
        """Copy nodes that read the same bytes: (group, node)."""
        rows = [self._nodes[node] for _, node in members]
        columns = [
            np.concatenate([self._reached(group, to) for (group, _), (_, _, to) in part])
            for part in (
                list(zip(members, edges, strict=True)) for edges in zip(*rows, strict=True)
            )
        ]
        index, number = _different(columns)
        states = self._next + np.arange(len(index))
        self._next += len(index)
        self._meter.states(self._next)
        for column, (first, last, _) in zip(columns, rows[0], strict=True):
            self._add(states, first, last, column[index])
        at = 0
        for group, node in members:
            size = len(self._groups[group][1])
            self._copies[group, node] = states[number[at : at + size]]
            at += size

    def _reached(self, group: int, to: int) -> Longs:
        return self._targets[group][~to] if to < 0 else self._copies[group, to]

    def _add(self, states: Longs, first: int, last: int, to: Longs) -> None:
        fixed = [np.full(len(states), byte, np.int64) for byte in (first, last)]
        self._found.append(np.stack([states, *fixed, to]))


def _different(columns: list[Longs]) -> tuple[Longs, Longs]:
    """The rows that differ: where each is first, and the number of each row among them."""
    keys = columns[0]
    for column in columns[1:]:
        keys = np.unique(keys, return_inverse=True)[1] << 32 | column
    _, index, number = np.unique(keys, return_index=True, return_inverse=True)
    return index, number


def _by_height(
    nodes: Sequence[list[Interval]], shapes: list[list[Interval]]
) -> list[list[tuple[int, int]]]:
    """(shape, node) for all nodes of each shape, those together that read the same bytes.

    Nodes stand behind all that they lead to. Only nodes from which the longest ways are equally
    long can have equal copies.
    """
    height = [0] * len(nodes)
    for node, edges in enumerate(nodes):
        height[node] = 1 + max((height[to] for _, _, to in edges if to >= 0), default=0)
    alike: dict[tuple[int, tuple[tuple[int, int], ...]], list[tuple[int, int]]] = {}
    for index, shape in enumerate(shapes):
        seen: set[int] = set()
        stack = [to for _, _, to in shape if to >= 0]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(to for _, _, to in nodes[node] if to >= 0)
        for node in sorted(seen):
            bytes_read = tuple((first, last) for first, last, _ in nodes[node])
            alike.setdefault((height[node], bytes_read), []).append((index, node))
    return [alike[key] for key in sorted(alike, key=lambda key: key[0])]
