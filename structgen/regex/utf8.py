r"""Automaton over characters -> automaton over the bytes that write them.

The bytes of a set of characters are worked out once for each way in which a state splits up the
characters (its *shape*), as nodes with numbered exits, and then copied for each set of targets.
Many states are worked on together, as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.regex.charsets import CharSet
from structgen.regex.copies import IntArray, copied
from structgen.regex.dfa import Dfa, Interval, mask_set
from structgen.regex.layers import layered, matrix_size
from structgen.regex.limits import STATES, Meter

Encoding: TypeAlias = Literal["json", "raw"]
"""`raw`: UTF-8; `json`: the inside of a JSON string as `json.dumps(ensure_ascii=False)` writes."""

FEW_STATES = 192
"""States up to which each is worked on alone, or with those that have the same shape."""
MOST_LAYERED = 2**21
"""Cells of the largest matrix with which states are worked on whatever their shape."""
FEW_COPIES = 16
"""States with the same shape, on average, from which on they are copied together."""
MOST_CELLS = 2**21
"""Nodes times states that are copied together, which bounds the memory."""

ByteEdge: TypeAlias = tuple[int, int, int, bool]
"""(first byte, last byte, target, whether it is the first byte of a character)"""

_SHORT_ESCAPES = {
    0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x5C: b"\\",
}  # fmt: skip
# Code points by number of bytes: (first, last, mark of the lead byte, continuation bytes).
_LENGTHS = (
    (0x80, 0x7FF, 0xC0, 1),
    (0x800, 0xFFFF, 0xE0, 2),
    (0x10000, 0x10FFFF, 0xF0, 3),
)


@dataclass(frozen=True)
class ByteDfa:
    """A deterministic automaton over bytes; state 0 is the start.

    States below `characters` are those of the character automaton, with the same numbers: the
    bytes read so far are whole characters. The others are inside of a character, and each of them
    stands behind the ones that it leads to.
    """

    moves: IntArray
    """int32[E, 4] of (state, first byte, last byte, target): sorted, disjoint."""
    accepting: npt.NDArray[np.bool_]
    """bool[S]: whether each state accepts."""
    characters: int

    def __len__(self) -> int:
        return len(self.accepting)

    @cached_property
    def edges(self) -> list[list[ByteEdge]]:
        """The moves of each state, sorted and disjoint."""
        found: list[list[ByteEdge]] = [[] for _ in self.accepting]
        for state, first, last, to in self.moves.tolist():
            found[state].append((first, last, to, state < self.characters))
        return found


def to_bytes(dfa: Dfa, encoding: Encoding, limit: int = 10 * STATES) -> ByteDfa:
    """The automaton of the bytes of the accepted texts, each character in exactly one way.

    Raises:
        PatternTooLarge: That takes more than `limit` states.
    """
    meter = Meter(limit)
    moves = _layered(dfa, encoding, meter) if len(dfa) > FEW_STATES else None
    if moves is None:
        moves = _by_shape(dfa, encoding, meter)
    accepting = np.zeros(max(len(dfa), int(moves[:, 0].max(initial=0)) + 1), np.bool_)
    accepting[list(dfa.accepting)] = True
    return ByteDfa(moves, accepting, len(dfa))


def _layered(dfa: Dfa, encoding: Encoding, meter: Meter) -> IntArray | None:
    """The moves over bytes, worked out letter by letter; None if that takes too much memory."""
    shapes = _Shapes(dfa.letters, escaped=encoding == "json")
    first_bytes = shapes.shape(tuple(1 << letter for letter in range(len(dfa.letters))))
    if matrix_size(shapes.nodes, len(dfa)) > MOST_LAYERED:
        return None
    return layered(shapes.nodes, shapes.exits, first_bytes, dfa.table, meter)


def _by_shape(dfa: Dfa, encoding: Encoding, meter: Meter) -> IntArray:
    """The moves over bytes, worked out shape by shape."""
    shapes = _Shapes(dfa.letters, escaped=encoding == "json")
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for state, arcs in enumerate(dfa.arcs):
        by_shape.setdefault(tuple(mask for mask, _ in arcs), []).append(state)
    for masks in by_shape:
        shapes.shape(masks)
    cells = len(shapes.nodes) * len(dfa)
    together = len(dfa) >= FEW_COPIES * len(by_shape) and cells <= MOST_CELLS
    expand = _many if together else _one_by_one
    return expand(dfa, shapes, by_shape, meter)


def _one_by_one(
    dfa: Dfa, shapes: _Shapes, by_shape: dict[tuple[int, ...], list[int]], meter: Meter
) -> IntArray:
    """The moves over bytes, copied state by state."""
    copier = _Copier(shapes, len(dfa), meter)
    for masks, states in by_shape.items():
        for state in states:
            copier.write(state, shapes.shape(masks), [to for _, to in dfa.arcs[state]])
    flat = [
        (state, first, last, to)
        for state, edges in enumerate(copier.edges)
        for first, last, to, _ in edges
    ]
    return np.array(flat, np.int32).reshape(-1, 4)


def _many(
    dfa: Dfa, shapes: _Shapes, by_shape: dict[tuple[int, ...], list[int]], meter: Meter
) -> IntArray:
    """The same, copied for all states of a shape at once."""
    groups = [
        (shapes.shape(masks), states, [[to for _, to in dfa.arcs[state]] for state in states])
        for masks, states in by_shape.items()
    ]
    return copied(shapes.nodes, groups, len(dfa), meter)


class _Shapes:
    """Nodes inside of characters, where a target is another node or `~exit`."""

    def __init__(self, letters: tuple[CharSet, ...], *, escaped: bool) -> None:
        self.nodes: list[list[Interval]] = []
        """(first byte, last byte, target) by node."""
        self.exits: list[tuple[int, ...]] = []
        """The exits that each node leads to."""
        self._letters = letters
        self._escaped = escaped
        self._sets: dict[int, CharSet] = {}
        self._shapes: dict[tuple[int, ...], list[Interval]] = {}
        self._tails: dict[tuple[int, tuple[Interval, ...]], int] = {}
        self._numbers: dict[tuple[Interval, ...], int] = {}

    def shape(self, masks: tuple[int, ...]) -> list[Interval]:
        """The moves of a state that leads by exit i where a character is in the i-th mask."""
        known = self._shapes.get(masks)
        if known is None:
            row = [
                (first, last, ~exit_)
                for exit_, mask in enumerate(masks)
                for first, last in self._set(mask)
            ]
            known = self._shapes[masks] = self._written(sorted(row))
        return known

    def _set(self, mask: int) -> CharSet:
        if mask not in self._sets:
            self._sets[mask] = mask_set(self._letters, mask)
        return self._sets[mask]

    def _written(self, row: list[Interval]) -> list[Interval]:
        """The bytes of sorted intervals of code points."""
        edges: list[Interval] = []
        escapes: dict[int, int] = {}
        for first, last, to in _clipped(row, 0, 0x7F):
            if self._escaped:
                _split_escapes(edges, escapes, first, last, to)
            else:
                edges.append((first, last, to))
        if escapes:
            edges.append((0x5C, 0x5C, self._escape(escapes)))
            edges.sort()
        for low, high, mark, rest in _LENGTHS:
            edges.extend(self._blocks(_clipped(row, low, high), rest, mark))
        return edges

    def _blocks(self, row: list[Interval], rest: int, mark: int) -> list[Interval]:
        """The edges of a lead or continuation byte that `rest` bytes follow.

        `row` counts code points from where this byte would be `mark` and the others 0x80.
        """
        width = 64**rest
        edges: list[Interval] = []
        parts: dict[int, list[Interval]] = {}
        for first, last, to in row:
            while first <= last:
                block = first // width
                whole = (last + 1) // width - block
                if first == block * width and whole > 0:
                    tail = self._tail(rest, ((0, width - 1, to),))
                    edges.append((mark + block, mark + block + whole - 1, tail))
                    first = (block + whole) * width
                else:
                    stop = min(last, (block + 1) * width - 1)
                    parts.setdefault(block, []).append((first % width, stop % width, to))
                    first = stop + 1
        for block, part in parts.items():
            edges.append((mark + block, mark + block, self._tail(rest, tuple(part))))
        return _joined(edges)

    def _tail(self, rest: int, row: tuple[Interval, ...]) -> int:
        """The node before the last `rest` bytes of a character; `row` counts from its block."""
        if rest == 0:
            return row[0][2]
        node = self._tails.get((rest, row))
        if node is None:
            node = self._node(self._blocks(list(row), rest - 1, 0x80))
            self._tails[rest, row] = node
        return node

    def _escape(self, escapes: dict[int, int]) -> int:
        r"""The node after the backslash of short escapes and of `\u00XX`."""
        edges: list[Interval] = []
        by_high: dict[int, list[Interval]] = {}
        for char, to in escapes.items():
            if char in _SHORT_ESCAPES:
                byte = _SHORT_ESCAPES[char][0]
                edges.append((byte, byte, to))
            else:
                digit = b"0123456789abcdef"[char % 16]
                by_high.setdefault(0x30 + char // 16, []).append((digit, digit, to))
        if by_high:
            node = self._node([(high, high, self._node(low)) for high, low in by_high.items()])
            for byte in b"00":
                node = self._node([(byte, byte, node)])
            edges.append((0x75, 0x75, node))
        return self._node(edges)

    def _node(self, edges: list[Interval]) -> int:
        """The node with these moves, the same one for the same moves."""
        key = tuple(_joined(edges))
        number = self._numbers.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            exits: set[int] = set()
            for _, _, to in key:
                exits.update((~to,) if to < 0 else self.exits[to])
            self.nodes.append(list(key))
            self.exits.append(tuple(sorted(exits)))
        return number


class _Copier:
    """Copies nodes for the targets that their exits lead to; equal copies are made once."""

    def __init__(self, shapes: _Shapes, characters: int, meter: Meter) -> None:
        self.edges: list[list[ByteEdge]] = [[] for _ in range(characters)]
        self._shapes = shapes
        self._meter = meter
        self._copies: dict[tuple[int, ...], int] = {}
        self._numbers: dict[tuple[ByteEdge, ...], int] = {}

    def write(self, state: int, shape: list[Interval], targets: list[int]) -> None:
        """Add the moves of a character state whose exit i leads to the i-th target."""
        self.edges[state] = [
            (first, last, targets[~to] if to < 0 else self._copy(to, targets), True)
            for first, last, to in shape
        ]

    def _copy(self, node: int, targets: list[int]) -> int:
        key = (node, *[targets[exit_] for exit_ in self._shapes.exits[node]])
        state = self._copies.get(key)
        if state is None:
            moves = tuple(
                (first, last, targets[~to] if to < 0 else self._copy(to, targets), False)
                for first, last, to in self._shapes.nodes[node]
            )
            state = self._copies[key] = self._numbers.setdefault(moves, len(self.edges))
            if state == len(self.edges):
                self.edges.append(list(moves))
                self._meter.states(len(self.edges))
        return state


def _clipped(row: list[Interval], low: int, high: int) -> list[Interval]:
    return [
        (max(first, low), min(last, high), to)
        for first, last, to in row
        if first <= high and last >= low
    ]


def _split_escapes(
    edges: list[Interval], escapes: dict[int, int], first: int, last: int, to: int
) -> None:
    """Sort ASCII characters into those written raw and those that are escaped."""
    for char in (*range(first, min(last, 0x1F) + 1), 0x22, 0x5C):
        if first <= char <= last:
            escapes[char] = to
    for low, high in ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F)):
        if first <= high and last >= low:
            edges.append((max(first, low), min(last, high), to))


def _joined(edges: list[Interval]) -> list[Interval]:
    """Sort ranges and merge neighbours with the same target."""
    joined: list[Interval] = []
    for first, last, to in sorted(edges):
        if joined and joined[-1][1] + 1 == first and joined[-1][2] == to:
            joined[-1] = (joined[-1][0], last, to)
        else:
            joined.append((first, last, to))
    return joined
