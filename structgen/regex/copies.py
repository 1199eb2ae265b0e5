"""The bytes of all states of a character automaton: copies of the nodes inside of characters.

What the states with one shape take is worked out once in `utf8`, as nodes with numbered exits. Here
each node is copied for every state that needs it, with what the exits of the state lead to; copies
with the same moves are one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import numba
import numpy as np

from structgen.regex.dfa import Interval
from structgen.regex.limits import Meter
from structgen.regex.tables import IntArray

EDGES = 64
"""Edges and copies for which there is room at first."""
FACTOR = 1_000_003
"""Of the hash of a copy's moves."""

Shape = tuple[list[Interval], Sequence[int], IntArray]
"""(moves of a shape, the states with this shape, int32[states * exits], what each leads to by exit
or -1)"""


def copied(
    nodes: Sequence[list[Interval]], shapes: Sequence[Shape], characters: int, meter: Meter
) -> IntArray:
    """The moves of all states, int32[E, 4] of (state, first byte, last byte, target), sorted.

    Args:
        nodes: sorted (first byte, last byte, target) by node, where `~exit` is an exit and other
            targets are earlier nodes.
        shapes: the same of the states; each of the `characters` states has one shape. The copies
            are the states from there on, each behind those that it leads to.
    """
    rows = [moves for moves, _, _ in shapes]
    targets = [own for _, _, own in shapes]
    count, moves = _copied(
        *_flat(nodes),
        *_flat(rows),
        _ints(chain.from_iterable(states for _, states, _ in shapes)),
        _ints(accumulate((len(states) for _, states, _ in shapes), initial=0)),
        targets[0] if len(targets) == 1 else np.concatenate(targets),
        _ints(accumulate(map(len, targets), initial=0)),
        characters,
        meter.limit,
    )
    meter.states(count)
    return moves


def _flat(rows: Sequence[list[Interval]]) -> tuple[IntArray, IntArray]:
    """int32[edges, 3] of all rows, and where each row begins."""
    edges = _ints(chain.from_iterable(chain.from_iterable(rows))).reshape(-1, 3)
    return edges, _ints(accumulate(map(len, rows), initial=0))


def _ints(numbers: Iterable[int]) -> IntArray:
    # By way of an array: numpy looks at each number, which takes three times as long.
    return np.array(array("i", numbers), np.int32)


@numba.njit(nogil=True)
def _needed(row: IntArray, nodes: IntArray, nodes_at: IntArray, found: IntArray) -> int:
    """Write the nodes that a row's edges lead to at last, ascending; how many there are."""
    marked = np.zeros(len(nodes_at), np.bool_)
    last = -1
    for edge in range(len(row)):
        if row[edge, 2] >= 0:
            marked[row[edge, 2]] = True
            last = max(last, row[edge, 2])
    size = 0
    for node in range(last, -1, -1):
        if marked[node]:
            size += 1
            for edge in range(nodes_at[node], nodes_at[node + 1]):
                if nodes[edge, 2] >= 0:
                    marked[nodes[edge, 2]] = True
    at = 0
    for node in range(last + 1):
        if marked[node]:
            found[at] = node
            at += 1
    return size


@numba.njit(nogil=True)
def _write(row: IntArray, copies: IntArray, targets: IntArray, made: IntArray, begin: int) -> int:
    """Write (first byte, last byte, target) of a row's edges that lead somewhere; where they end.

    Neighbours with the same target become one.
    """
    end = begin
    for edge in range(len(row)):
        to = row[edge, 2]
        to = copies[to] if to >= 0 else targets[~to]
        if to < 0:
            continue
        if end > begin and made[end - 1, 2] == to and made[end - 1, 1] + 1 == row[edge, 0]:
            made[end - 1, 1] = row[edge, 1]
        else:
            made[end, 0], made[end, 1], made[end, 2] = row[edge, 0], row[edge, 1], to
            end += 1
    return end


@numba.njit(nogil=True)
def _longer(old: IntArray) -> IntArray:
    """The array with room for twice as many rows."""
    new = np.empty((2 * len(old), old.shape[1]), np.int32)
    new[: len(old)] = old
    return new


@numba.njit(nogil=True)
def _slot(slots: IntArray, made: IntArray, starts: IntArray, begin: int, end: int) -> int:
    """The place in the hash table of the copy with these moves, or for a new one."""
    key = np.int64(end - begin)
    for edge in range(begin, end):
        for column in range(3):
            key = key * FACTOR + made[edge, column]
    mask = len(slots) - 1
    at = (key ^ key >> 31) & mask
    while slots[at] >= 0:
        first = starts[slots[at], 0]
        if starts[slots[at] + 1, 0] - first == end - begin:
            same = True
            for edge in range(end - begin):
                for column in range(3):
                    same = same and made[first + edge, column] == made[begin + edge, column]
            if same:
                break
        at = (at + 1) & mask
    return int(at)


@numba.njit(
    "(int32[:, ::1], int32[::1], int32[:, ::1], int32[::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int64, int64)",
    cache=True,
    nogil=True,
)
def _copied(
    nodes: IntArray,
    nodes_at: IntArray,
    rows: IntArray,
    rows_at: IntArray,
    states: IntArray,
    states_at: IntArray,
    targets: IntArray,
    targets_at: IntArray,
    characters: int,
    most: int,
) -> tuple[int, IntArray]:
    """How many states there are, and the moves of all; none if there are more than `most`."""
    n_nodes = len(nodes_at) - 1
    needed, copies = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
    made, starts = np.empty((EDGES, 3), np.int32), np.zeros((EDGES, 1), np.int32)
    slots = np.full(4 * EDGES, -1, np.int32)
    count, size = 0, 0
    # The moves of the states between characters: at most so many, and as many as there are.
    begins, sizes = np.zeros(characters + 1, np.int64), np.zeros(characters, np.int64)
    for shape in range(len(rows_at) - 1):
        for index in range(states_at[shape], states_at[shape + 1]):
            begins[states[index] + 1] = rows_at[shape + 1] - rows_at[shape]
    for state in range(characters):
        begins[state + 1] += begins[state]
    between = np.empty((begins[characters], 3), np.int32)
    for shape in range(len(rows_at) - 1):
        row = rows[rows_at[shape] : rows_at[shape + 1]]
        n_needed = _needed(row, nodes, nodes_at, needed)
        n_states = states_at[shape + 1] - states_at[shape]
        width = (targets_at[shape + 1] - targets_at[shape]) // max(n_states, 1)
        for index in range(n_states):
            begin = targets_at[shape] + index * width
            own = targets[begin : begin + width]
            for node in needed[:n_needed]:
                inner = nodes[nodes_at[node] : nodes_at[node + 1]]
                while len(made) < size + len(inner):
                    made = _longer(made)
                end = _write(inner, copies, own, made, size)
                copies[node] = -1
                if end == size:
                    continue
                slot = _slot(slots, made, starts, size, end)
                if slots[slot] < 0:
                    if characters + count >= most:
                        return most + 1, np.empty((0, 4), np.int32)
                    slots[slot] = count
                    count += 1
                    size = end
                    if count == len(starts) - 1:
                        starts = _longer(starts)
                    starts[count, 0] = size
                    copies[node] = characters + count - 1
                    if 4 * count > len(slots):
                        slots = np.full(4 * len(slots), -1, np.int32)
                        for copy in range(count):
                            first, stop = starts[copy, 0], starts[copy + 1, 0]
                            slots[_slot(slots, made, starts, first, stop)] = copy
                else:
                    copies[node] = characters + slots[slot]
            state = states[states_at[shape] + index]
            begin = int(begins[state])
            sizes[state] = _write(row, copies, own, between, begin) - begin
    found = np.empty((sizes.sum() + size, 4), np.int32)
    at = 0
    for state in range(characters):
        for edge in range(begins[state], begins[state] + sizes[state]):
            found[at, 0] = state
            found[at, 1:] = between[edge]
            at += 1
    for copy in range(count):
        for edge in range(starts[copy, 0], starts[copy + 1, 0]):
            found[at, 0] = characters + copy
            found[at, 1:] = made[edge]
            at += 1
    return characters + count, found
