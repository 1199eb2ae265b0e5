"""Large automata on arrays: what two have in common, and which states are alike (Hopcroft)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from structgen.regex.dfa import Arc, letter_table
from structgen.regex.limits import Meter

# The kernels have signatures, so they are compiled when this file is imported for the first time,
# not while the time that one schema may take is running.

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
Masks = npt.NDArray[np.int64]

MOST_BITS = 62
"""Letters up to which the mask of an arc is an int64."""


Table: TypeAlias = tuple[IntArray, frozenset[int]]
"""(int32[letters, states] of where each letter leads, -1 for nowhere; the accepting states)"""


def smallest(
    arcs: Sequence[Sequence[Arc]], n_letters: int, accepting: Iterable[int]
) -> Table | None:
    """The smallest automaton; None if it accepts nothing.

    States are numbered in the order in which they are reached by ascending letters.
    """
    ends = np.zeros(len(arcs), np.bool_)
    ends[list(accepting)] = True
    return _smallest(letter_table(arcs, n_letters), ends)


def product(a: Table, b: Table, meter: Meter) -> Table | None:
    """The same of what two automata have in common."""
    most = meter.limit + 1
    table, pairs = _product(a[0], b[0], most)
    meter.states(len(pairs))
    ends = [np.zeros(part[0].shape[1], np.bool_) for part in (a, b)]
    ends[0][list(a[1])] = True
    ends[1][list(b[1])] = True
    return _smallest(table, ends[0][pairs[:, 0]] & ends[1][pairs[:, 1]])


def _smallest(table: IntArray, accepting: BoolArray) -> Table | None:
    if not _without_dead(table, accepting):
        return None
    blocks, members = _numbered(table, _refined(table, accepting))
    ends = frozenset(np.flatnonzero(accepting[members]).tolist())
    return blocks[table[:, members]], ends


def arcs_of(table: IntArray) -> list[list[Arc]]:
    """The moves of each state, from a table of letters."""
    targets = np.ascontiguousarray(table.T)
    return _few_letters(targets) if len(table) <= MOST_BITS else _many_letters(targets)


def _many_letters(table: IntArray) -> list[list[Arc]]:
    """The moves of each state, from where each letter leads: int32[states, letters]."""
    rows: list[list[Arc]] = []
    for targets in table.tolist():
        masks: dict[int, int] = {}
        for letter, to in enumerate(targets):
            if to >= 0:
                masks[to] = masks.get(to, 0) | 1 << letter
        rows.append([(mask, to) for to, mask in masks.items()])
    return rows


def _few_letters(table: IntArray) -> list[list[Arc]]:
    """The same where masks fit a machine word."""
    starts, masks, targets = _arcs(table)
    arcs = list(zip(masks.tolist(), targets.tolist(), strict=True))
    return [arcs[first:end] for first, end in pairwise(starts.tolist())]


@numba.njit("(int32[:, ::1],)", cache=True, nogil=True)
def _arcs(table: IntArray) -> tuple[IntArray, Masks, IntArray]:
    """The arcs of all states, by state and first letter: where they begin, masks and targets.

    table: int32[states, letters], where each letter leads or -1.
    """
    n, n_letters = table.shape
    starts = np.zeros(n + 1, np.int32)
    masks = np.zeros(n * n_letters, np.int64)
    targets = np.empty(n * n_letters, np.int32)
    end = 0
    for state in range(n):
        for letter in range(n_letters):
            to = table[state, letter]
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


@numba.njit("(int32[:, ::1],)", cache=True, nogil=True)
def _inverse(table: IntArray) -> tuple[IntArray, IntArray]:
    """The states that lead to each state by each letter: where they begin, and all of them."""
    n_letters, n = table.shape
    starts = np.zeros((n_letters, n + 1), np.int32)
    before = np.empty(n_letters * n, np.int32)
    at = 0
    for letter in range(n_letters):
        counts = np.zeros(n, np.int32)
        for state in range(n):
            if table[letter, state] >= 0:
                counts[table[letter, state]] += 1
        for state in range(n):
            starts[letter, state] = at
            at += counts[state]
        starts[letter, n] = at
        for state in range(n):
            to = table[letter, state]
            if to >= 0:
                counts[to] -= 1
                before[starts[letter, to] + counts[to]] = state
    return starts, before


@numba.njit("(int32[:, ::1], boolean[::1])", cache=True, nogil=True)
def _refined(table: IntArray, accepting: BoolArray) -> IntArray:
    """int32[states], the block of each state.

    The members of a block stand together in `order`. A waiting block splits every block whose
    states lead into it by some letter only partly; of a block that is split, the smaller part
    waits next, or both if the whole was waiting. What leads nowhere is never waited for: it is
    the one block that may be left out.
    """
    n_letters, n = table.shape
    starts, before = _inverse(table)
    order = np.empty(n, np.int32)
    place = np.empty(n, np.int32)
    block = np.zeros(n, np.int32)
    first = np.zeros(n + 1, np.int32)
    end = np.zeros(n + 1, np.int32)
    marked = np.zeros(n + 1, np.int32)
    at = 0
    for part in range(2):
        first[part] = at
        for state in range(n):
            if accepting[state] == (part == 0):
                order[at], place[state], block[state] = state, at, part
                at += 1
        end[part] = at
    n_blocks = 2
    waiting = np.zeros(n + 1, np.bool_)
    queue = np.empty(n + 1, np.int32)
    queue[0], queue[1] = 0, 1
    waiting[:2] = True
    n_queue = 2
    members = np.empty(n, np.int32)
    touched = np.empty(n + 1, np.int32)
    while n_queue:
        n_queue -= 1
        splitter = queue[n_queue]
        waiting[splitter] = False
        n_members = end[splitter] - first[splitter]
        members[:n_members] = order[first[splitter] : end[splitter]]
        for letter in range(n_letters):
            n_touched = 0
            for index in range(n_members):
                to = members[index]
                for source in before[starts[letter, to] : starts[letter, to + 1]]:
                    found = block[source]
                    if not marked[found]:
                        touched[n_touched] = found
                        n_touched += 1
                    front = first[found] + marked[found]
                    other, back = order[front], place[source]
                    order[front], order[back] = source, other
                    place[source], place[other] = front, back
                    marked[found] += 1
            for index in range(n_touched):
                old = touched[index]
                size, count = end[old] - first[old], marked[old]
                marked[old] = 0
                if count == size:
                    continue
                new = n_blocks
                n_blocks += 1
                if 2 * count <= size:
                    first[new], end[new] = first[old], first[old] + count
                    first[old] += count
                else:
                    first[new], end[new] = first[old] + count, end[old]
                    end[old] = first[old] + count
                for spot in range(first[new], end[new]):
                    block[order[spot]] = new
                queue[n_queue] = new  # the smaller part; the other waits if the whole did
                waiting[new] = True
                n_queue += 1
    return block


@numba.njit("(int32[:, ::1], int32[:, ::1], int64)", cache=True, nogil=True)
def _product(a: IntArray, b: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """int32[letters, pairs], where pairs of states lead, and int32[pairs, 2]; stops at `most`."""
    n_letters = len(a)
    numbers = np.full((a.shape[1], b.shape[1]), -1, np.int32)
    most = min(most, numbers.size)
    table = np.full((n_letters, most), -1, np.int32)
    pairs = np.zeros((most, 2), np.int32)
    numbers[0, 0] = 0
    n, at = 1, 0
    while at < n:
        for letter in range(n_letters):
            left, right = a[letter, pairs[at, 0]], b[letter, pairs[at, 1]]
            if left < 0 or right < 0:
                continue
            if numbers[left, right] < 0:
                if n == most:
                    return table, pairs
                numbers[left, right] = n
                pairs[n, 0], pairs[n, 1] = left, right
                n += 1
            table[letter, at] = numbers[left, right]
        at += 1
    return table[:, :n].copy(), pairs[:n]


@numba.njit("(int32[:, ::1], boolean[::1])", cache=True, nogil=True)
def _without_dead(table: IntArray, accepting: BoolArray) -> bool:
    """Drop moves to states that do not lead to acceptance; whether the first state does."""
    n_letters, n = table.shape
    starts, before = _inverse(table)
    alive = accepting.copy()
    stack = np.empty(n, np.int32)
    size = 0
    for state in range(n):
        if alive[state]:
            stack[size] = state
            size += 1
    while size:
        size -= 1
        to = stack[size]
        for letter in range(n_letters):
            for source in before[starts[letter, to] : starts[letter, to + 1]]:
                if not alive[source]:
                    alive[source] = True
                    stack[size] = source
                    size += 1
    for letter in range(n_letters):
        for state in range(n):
            if table[letter, state] >= 0 and not alive[table[letter, state]]:
                table[letter, state] = -1
    return alive[0]


@numba.njit("(int32[:, ::1], int32[::1])", cache=True, nogil=True)
def _numbered(table: IntArray, block: IntArray) -> tuple[IntArray, IntArray]:
    """The number of each state's block as it is reached, and a state of each; -1 comes last."""
    n_letters, n = table.shape
    numbers = np.full(n + 1, -1, np.int32)  # one block may be without states
    members = np.zeros(n, np.int32)
    numbers[block[0]] = 0
    count, at = 1, 0
    while at < count:
        for letter in range(n_letters):
            to = table[letter, members[at]]
            if to >= 0 and numbers[block[to]] < 0:
                numbers[block[to]] = count
                members[count] = to
                count += 1
        at += 1
    found = np.full(n + 1, -1, np.int32)
    for state in range(n):
        found[state] = numbers[block[state]]
    return found, members[:count]
