r"""Automaton over characters -> automaton over the bytes that write them.

The bytes of a set of characters are worked out once for each way in which a state splits up the
characters (its *shape*), as nodes with numbered exits, and then copied for each set of targets.
Many states are worked on together, as arrays.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.later import later
from structgen.regex.charsets import CharSet
from structgen.regex.dfa import Dfa, Interval, mask_set
from structgen.regex.limits import STATES, Meter
from structgen.regex.tables import IntArray, flags

if TYPE_CHECKING:
    import structgen.regex.copies as copies
else:
    copies = later("structgen.regex.copies")

Encoding: TypeAlias = Literal["json", "raw"]
"""`raw`: UTF-8; `json`: the inside of a JSON string as `json.dumps(ensure_ascii=False)` writes."""

FEW_STATES = 192
"""States up to which their shapes are told apart."""
MOST_EDGES = 2**21
"""Edges of nodes, with an exit for each letter, times states: a bound on the work."""

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
    moves = _by_letter(dfa, encoding, meter) if len(dfa) > FEW_STATES else None
    if moves is None:
        moves = _by_shape(dfa, encoding, meter)
    n_states = max(len(dfa), int(moves[-1, 0]) + 1 if len(moves) else 0)
    return ByteDfa(moves, flags(dfa.accepting, n_states), len(dfa))


def _by_letter(dfa: Dfa, encoding: Encoding, meter: Meter) -> IntArray | None:
    """The moves over bytes, with an exit for each letter; None if that takes too much memory."""
    shapes = _Shapes(dfa.letters, escaped=encoding == "json")
    first_bytes = shapes.shape(tuple(1 << letter for letter in range(len(dfa.letters))))
    if (len(first_bytes) + sum(map(len, shapes.nodes))) * len(dfa) > MOST_EDGES:
        return None
    targets = np.ascontiguousarray(dfa.table.T).ravel()
    return copies.copied(shapes.nodes, [(first_bytes, range(len(dfa)), targets)], len(dfa), meter)


def _by_shape(dfa: Dfa, encoding: Encoding, meter: Meter) -> IntArray:
    """The moves over bytes, with an exit for each arc, worked out for each shape."""
    shapes = _Shapes(dfa.letters, escaped=encoding == "json")
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for state, arcs in enumerate(dfa.arcs):
        by_shape.setdefault(tuple([mask for mask, _ in arcs]), []).append(state)
    groups: list[copies.Shape] = []
    for masks, states in by_shape.items():
        targets = array("i", [to for state in states for _, to in dfa.arcs[state]])
        groups.append((shapes.shape(masks), states, np.array(targets, np.int32)))
    return copies.copied(shapes.nodes, groups, len(dfa), meter)


class _Shapes:
    """Nodes inside of characters, where a target is another node or `~exit`."""

    def __init__(self, letters: tuple[CharSet, ...], *, escaped: bool) -> None:
        self.nodes: list[list[Interval]] = []
        """(first byte, last byte, target) by node."""
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
            self.nodes.append(list(key))
        return number


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
