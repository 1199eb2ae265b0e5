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
        self._found: list[tuple[Longs, int, int, Longs]] = []

    def moves(self) -> IntArray:
        for members in _by_height(self._nodes, [shape for shape, _, _ in self._groups]):
            self._copy(members)
        for group, (shape, states, _) in enumerate(self._groups):
            numbers = np.array(states, np.int64)
            for first, last, to in shape:
                self._found.append((numbers, first, last, self._reached(group, to)))
        return self._sorted()

    def _sorted(self) -> IntArray:
        if not self._found:
            return np.zeros((0, 4), np.int32)
        states, firsts, lasts, targets = zip(*self._found, strict=True)
        sizes = [len(part) for part in states]
        found = np.empty((sum(sizes), 4), np.int32)
        for column, parts in ((0, states), (3, targets)):
            found[:, column] = np.concatenate(parts)
        for column, bytes_read in ((1, firsts), (2, lasts)):
            found[:, column] = np.repeat(np.array(bytes_read), sizes)
        return found[np.argsort(found[:, 0].astype(np.int64) << 8 | found[:, 1])]

    def _copy(self, members: list[tuple[int, int]]) -> None:
        """Copy nodes that read the same bytes: (group, node)."""
        rows = [self._nodes[node] for _, node in members]
        columns = [
            np.concatenate([self._reached(group, to) for (group, _), (_, _, to) in part])
            for part in (
                list(zip(members, edges, strict=True)) for edges in zip(*rows, strict=True)
            )
        ]
        index, number = different(columns)
        states = self._next + np.arange(len(index))
        self._next += len(index)
        self._meter.states(self._next)
        for column, (first, last, _) in zip(columns, rows[0], strict=True):
            self._found.append((states, first, last, column[index]))
        at = 0
        for group, node in members:
            size = len(self._groups[group][1])
            self._copies[group, node] = states[number[at : at + size]]
            at += size

    def _reached(self, group: int, to: int) -> Longs:
        return self._targets[group][~to] if to < 0 else self._copies[group, to]


def different(columns: list[Longs]) -> tuple[Longs, Longs]:
    """The rows that differ: where each is first, and the number of each row among them."""
    index, number = _ranked(columns[0])
    for column in columns[1:]:
        index, number = _ranked(number << 32 | column)
    return index, number


def _ranked(keys: Longs) -> tuple[Longs, Longs]:
    """As `np.unique` does: where each key is first, and the rank of each; faster for few keys."""
    order = keys.argsort(kind="stable")
    ascending = keys[order]
    is_new = np.ones(len(keys), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    number = np.empty(len(keys), np.int64)
    number[order] = is_new.cumsum() - 1
    return order[is_new], number


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
