"""The moves of automata from lists of arcs to arrays and back, in numba."""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# The kernels have signatures, so they are compiled when this file is imported for the first time,
# not while the time that one schema may take is running.


@numba.njit("(int64[::1], int64[::1], int64)", cache=True, nogil=True)
def table_of(flat: Longs, counts: Longs, n_letters: int) -> IntArray:
    """`letter_table` from all arcs, mask and target one after the other, and how many by state."""
    table = np.full((n_letters, len(counts)), -1, np.int32)
    at = 0
    for state in range(len(counts)):
        for _ in range(counts[state]):
            mask, to = flat[at], flat[at + 1]
            at += 2
            letter = 0
            while mask:
                if mask & 1:
                    table[letter, state] = to
                mask >>= 1
                letter += 1
    return table


@numba.njit("(int32[:, ::1],)", cache=True, nogil=True)
def all_arcs(table: IntArray) -> tuple[IntArray, Longs, IntArray]:
    """The arcs of all states, by state and first letter: where they begin, masks and targets."""
    n_letters, n = table.shape
    starts = np.zeros(n + 1, np.int32)
    masks = np.zeros(n * n_letters, np.int64)
    targets = np.empty(n * n_letters, np.int32)
    end = 0
    for state in range(n):
        for letter in range(n_letters):
            to = table[letter, state]
            if to < 0:
                continue
            arc = starts[state]
            while arc < end and targets[arc] != to:
                arc += 1
            targets[arc] = to
            masks[arc] |= np.int64(1) << letter
            end = max(end, arc + 1)
        starts[state + 1] = end
    return starts, masks[:end], targets[:end]


@numba.njit("(int32[:, ::1], boolean[::1])", cache=True, nogil=True)
def steps_left(table: IntArray, accepting: BoolArray) -> IntArray:
    """int32[states]: the fewest letters to an accepting state, which every state leads to."""
    n_letters, n = table.shape
    starts = np.zeros(n + 1, np.int32)
    for letter in range(n_letters):
        for state in range(n):
            if table[letter, state] >= 0:
                starts[table[letter, state]] += 1
    for state in range(n):
        starts[state + 1] += starts[state]
    before = np.empty(starts[n], np.int32)
    for letter in range(n_letters):
        for state in range(n):
            to = table[letter, state]
            if to >= 0:
                starts[to] -= 1
                before[starts[to]] = state
    found = np.full(n, -1, np.int32)
    level = np.empty(n, np.int32)
    size = 0
    for state in range(n):
        if accepting[state]:
            level[size], found[state] = state, 0
            size += 1
    at = 0
    while at < size:
        state = level[at]
        at += 1
        for source in before[starts[state] : starts[state + 1]]:
            if found[source] < 0:
                found[source] = found[state] + 1
                level[size] = source
                size += 1
    return found
