"""Large automata on arrays: what two have in common, and which states are alike (Hopcroft)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from structgen.regex.limits import Meter
from structgen.regex.tables import Arc, IntArray, flags, letter_table

# The kernels have signatures, so they are compiled when this file is imported for the first time,
# not while the time that one schema may take is running.

BoolArray: TypeAlias = npt.NDArray[np.bool_]

Table: TypeAlias = tuple[IntArray, BoolArray, IntArray]
"""(int32[own letters, states] of where each letter leads, -1 for nowhere; whether each state
accepts; int32[letters], the own letter that each of the letters of both automata is part of)"""

Smallest: TypeAlias = tuple[IntArray, frozenset[int], list[int]]
"""(the table, with one row for all letters that no state tells apart; the accepting states; the
row of each letter)"""


def smallest(
    arcs: Sequence[Sequence[Arc]], n_letters: int, accepting: Iterable[int]
) -> Smallest | None:
    """The smallest automaton; None if it accepts nothing.

    States are numbered in the order in which they are reached by ascending letters.
    """
    return _found(*_smallest(letter_table(arcs, n_letters), flags(accepting, len(arcs))))


def product(a: Table, b: Table, meter: Meter) -> Smallest | None:
    """The same of what two automata have in common."""
    most = meter.limit + 1
    count, table, accepting, letters = _product(*a, *b, most)
    meter.states(count)
    return _found(table, accepting, letters)


def _found(table: IntArray, accepting: BoolArray, letters: IntArray) -> Smallest | None:
    if not table.size:
        return None
    ends = frozenset([state for state, ends in enumerate(accepting.tolist()) if ends])
    return table, ends, letters.tolist()


@numba.njit(nogil=True)
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


@numba.njit(nogil=True)
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


@numba.njit(nogil=True)
def _pairs(
    a: IntArray, own_a: IntArray, b: IntArray, own_b: IntArray, most: int
) -> tuple[IntArray, IntArray]:
    """int32[letters, pairs], where pairs of states lead, and int32[pairs, 2]; stops at `most`."""
    n_letters = len(own_a)
    numbers = np.full((a.shape[1], b.shape[1]), -1, np.int32)
    most = min(most, numbers.size)
    table = np.full((n_letters, most), -1, np.int32)
    pairs = np.zeros((most, 2), np.int32)
    numbers[0, 0] = 0
    n, at = 1, 0
    while at < n:
        for letter in range(n_letters):
            left, right = a[own_a[letter], pairs[at, 0]], b[own_b[letter], pairs[at, 1]]
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


@numba.njit(nogil=True)
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


@numba.njit(nogil=True)
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


@numba.njit(nogil=True)
def _merged(table: IntArray) -> tuple[IntArray, int]:
    """Move the rows that differ to the front; int32[letters], the new row of each, and how many."""
    n_letters, n = table.shape
    own, hashes = np.empty(n_letters, np.int32), np.zeros(n_letters, np.int64)
    count = 0
    for letter in range(n_letters):
        key = np.int64(0)
        for state in range(n):
            key = key * 1_000_003 + table[letter, state]
        row = 0
        while row < count and not (hashes[row] == key and (table[row] == table[letter]).all()):
            row += 1
        own[letter] = row
        if row == count:
            table[row] = table[letter]
            hashes[row] = key
            count += 1
    return own, count


@numba.njit("(int32[:, ::1], boolean[::1])", cache=True, nogil=True)
def _smallest(table: IntArray, accepting: BoolArray) -> tuple[IntArray, BoolArray, IntArray]:
    """The smallest automaton: its table, whether each state accepts, the row of each letter.

    The table is empty if nothing is accepted. The one that is passed is written to.
    """
    if not _without_dead(table, accepting):
        return np.empty((0, 0), np.int32), np.empty(0, np.bool_), np.empty(0, np.int32)
    blocks, members = _numbered(table, _refined(table, accepting))
    n_letters, n = len(table), len(members)
    found, ends = np.empty((n_letters, n), np.int32), np.empty(n, np.bool_)
    for letter in range(n_letters):
        for state in range(n):
            found[letter, state] = blocks[table[letter, members[state]]]
    for state in range(n):
        ends[state] = accepting[members[state]]
    own, count = _merged(found)
    return found[:count], ends, own


@numba.njit(
    "(int32[:, ::1], boolean[::1], int32[::1], int32[:, ::1], boolean[::1], int32[::1], int64)",
    cache=True,
    nogil=True,
)
def _product(
    a: IntArray,
    ends_a: BoolArray,
    own_a: IntArray,
    b: IntArray,
    ends_b: BoolArray,
    own_b: IntArray,
    most: int,
) -> tuple[int, IntArray, BoolArray, IntArray]:
    """How many pairs of states there are, and their smallest automaton; none from `most` on."""
    table, pairs = _pairs(a, own_a, b, own_b, most)
    if len(pairs) == most:
        return most, np.empty((0, 0), np.int32), np.empty(0, np.bool_), np.empty(0, np.int32)
    accepting = np.empty(len(pairs), np.bool_)
    for pair in range(len(pairs)):
        accepting[pair] = ends_a[pairs[pair, 0]] and ends_b[pairs[pair, 1]]
    found, ends, own = _smallest(table, accepting)
    return len(pairs), found, ends, own
