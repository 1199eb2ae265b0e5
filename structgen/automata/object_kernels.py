"""The states of an object that counts no properties, laid out on arrays.

It is what `structures` builds piece by piece for any object, and the tests compare the two. Most
objects of most schemas are of this kind, and building them took a third of compiling.

A *chain* is the text before a value, and then a state that calls the value's frame: `"key": ` of
each declared property, `: ` of each kind of undeclared ones, whose keys are called frames too.
Behind the chains comes the text between two properties. A trie of the keys that may come next is
a list of cells (byte, what follows, next cell); a trie with one key more shares all but the cells
along that key, and a cell hides the ones behind it that have its byte.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from structgen.automata.calls import CALLEE, STATE, TO, A, B
from structgen.automata.frames import (
    ACCEPT,
    CALL_FROM,
    CALL_TO,
    CALLS,
    CHAIN,
    FLAG_BITS,
    FLAGS,
    FRAME,
    LOOP,
    ROW,
    TAIL,
    IntArray,
)

# Only `lay_out` has a signature: it is compiled when this file is imported for the first time, and
# what it calls with it; later imports load it alone.

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Laid = tuple[IntArray, IntArray, Bytes, IntArray]
Keys = tuple[Bytes, Longs, Flags]
"""(text, starts, required) of `lay_out`."""
Tries = tuple[IntArray, IntArray, IntArray]
"""(roots, cells, counts) of `_tries`."""
Ways = tuple[IntArray, IntArray, IntArray]
"""(begins, source, choices): where each chain begins, the source that each state calls or -1, and
int32[..., 3] of a choice's row, the declared properties before it, whether it is the first."""
Places = tuple[IntArray, IntArray, IntArray, IntArray]
"""(chain, rows, commas, nodes): each state's chain byte or -1, the rows, the state behind each
place's comma or -1, the state of the trie that begins with each cell."""

NOTHING = -1
"""No key. The trie of a single one is `-2 - key`, any other is the number of its first cell."""
BYTE, CHILD, NEXT, DEPTH = range(4)
"""Columns of the cells. DEPTH: how many bytes of the keys were read before the cell's."""
NO_NODE = -1
"""In place of the depth: no trie begins with this cell."""
AT, TRIE, DEPTH_READ = range(3)
"""Columns of the rows: a state, what may be read in it, how many bytes of that were read before."""
_SIGNATURE = "(uint8[::1], int64[::1], boolean[::1], int32[:, ::1], int64[:, ::1], int64)"
BRACE, QUOTE, COMMA = 0x7D, 0x22, 0x2C


@numba.njit(nogil=True)
def _set(rows: IntArray, at: int, first: Any, second: Any, third: Any) -> None:
    """Write a row of three numbers."""
    rows[at, 0], rows[at, 1], rows[at, 2] = first, second, third


@numba.njit(nogil=True)
def _child(cells: IntArray, cell: int, byte: int) -> int:
    """What follows `byte` in the trie that begins with a cell."""
    while cell >= 0:
        if cells[cell, BYTE] == byte:
            return cells[cell, CHILD]
        cell = cells[cell, NEXT]
    return NOTHING


@numba.njit(nogil=True)
def _tries(
    text: Bytes, starts: Longs, required: Flags, begun: int
) -> tuple[IntArray, IntArray, IntArray]:
    """The trie of the keys that may come next in each place, int32[n + 1], and all cells.

    Behind them comes how many cells there are with each place's: it is made from the next one's.
    """
    n = len(required)
    roots, counts = np.full(n + 1, NOTHING, np.int32), np.zeros(n + 1, np.int32)
    cells = np.empty((starts[n] + 2 * n, 4), np.int32)
    path = np.empty(len(text), np.int32)
    count = 0
    for index in range(n - 1, begun - 1, -1):
        start, depth = starts[index], 0
        below = NOTHING if required[index] else roots[index + 1]
        while below >= 0:
            path[depth] = below
            below = _child(cells, below, text[start + depth])
            depth += 1
        made, end = -2 - index, depth
        if below != NOTHING:  # another key, so far the only one that goes on like this
            other = starts[-2 - below]
            while text[start + end] == text[other + end]:
                end += 1
            _set(cells, count, text[other + end], below, -1)
            _set(cells, count + 1, text[start + end], made, count)
            cells[count, DEPTH], cells[count + 1, DEPTH] = NO_NODE, end
            count += 2
            made = count - 1
        for at in range(end - 1, -1, -1):
            byte, behind = text[start + at], path[at] if at < depth else -1
            if behind >= 0 and cells[behind, BYTE] == byte:
                behind = cells[behind, NEXT]
            _set(cells, count, byte, made, behind)
            cells[count, DEPTH] = at
            made = count
            count += 1
        roots[index], counts[index] = made, count
    return roots, cells[:count], counts


@numba.njit(nogil=True)
def _write(text: Bytes, first: int, end: int, chain: IntArray, size: int) -> int:
    """Add chain states for a part of `text`; the new number of states."""
    for at in range(first, end):
        chain[size] = text[at]
        size += 1
    return size


@numba.njit(nogil=True)
def _lay_place(
    keys: Keys, tries: Tries, place: int, is_first: bool, size: int, n_rows: int, laid: Places
) -> tuple[int, int]:
    """Lay out what reads the keys that may come in a place; (states, rows).

    It stands before all that it reads, so that costs are known after one pass from the end.
    """
    text, starts, required = keys
    roots, cells, counts = tries
    chain, rows, commas, nodes = laid
    n, n_chains = len(required), len(starts) - 2
    if not is_first:
        commas[place] = size
        size = _write(text, starts[n_chains] + 1, starts[n_chains + 1], chain, size)
        _set(rows, n_rows, size, roots[place], 0)
        size += 1
        n_rows += 1
    made = counts[place + 1] if place < n else counts[place]
    for cell in range(counts[place] - 1, made - 1, -1):
        if cells[cell, DEPTH] > 0:
            nodes[cell] = size
            _set(rows, n_rows, size, cell, cells[cell, DEPTH])
            size += 1
            n_rows += 1
    return size, n_rows


@numba.njit(nogil=True)
def _lay(
    keys: Keys, tries: Tries, begun: int, ways: Ways, laid: Places
) -> tuple[int, int, int, int]:
    """Lay everything out; (states, rows, choices, the state that ends the object).

    Where a required property comes next, or the end, what stands between is part of the chain;
    everywhere else is a state among the `choices`.
    """
    text, starts, required = keys
    chain, rows, commas, _ = laid
    begins, source, choices = ways
    n, n_chains = len(required), len(starts) - 2
    size, n_rows, n_choices, closed = 0, 0, 0, -1
    if not begun:
        chain[0] = 0x7B
        size = 1
    for index in range(begun - 1, n_chains):
        if index >= begun:
            begins[index] = size
            size = _write(text, starts[index], starts[index + 1], chain, size)
            source[size] = index
            size += 1
        place, is_first = min(index + 1, n), index < begun and not begun
        if place < n and required[place]:
            if not is_first:
                size = _write(text, starts[n_chains], starts[n_chains + 1], chain, size)
        elif n_chains == n and place == n and not n_choices:
            chain[size] = BRACE
            size += 1
        else:
            _set(choices, n_choices, n_rows, place, is_first)
            _set(rows, n_rows, size, tries[0][place] if is_first else NOTHING, 0)
            n_choices += 1
            size += 1
            n_rows += 1
            if is_first or (commas[place] < 0 and (place < n or n_chains > n)):
                size, n_rows = _lay_place(keys, tries, place, is_first, size, n_rows, laid)
        if index == n - 1:
            closed = size
            size += 1
    return size, n_rows, n_choices, closed


@numba.njit(nogil=True)
def _classify(cells: IntArray, found: Bytes) -> int:
    """Number the classes of bytes: each that some row reads is alone, all others are class 0."""
    found[BRACE] = found[QUOTE] = found[COMMA] = 1
    for cell in range(len(cells)):
        found[cells[cell, BYTE]] = 1
    count = 0
    for byte in range(256):
        if found[byte]:
            count += 1
            found[byte] = count
    return count + 1


@numba.njit(nogil=True)
def _wire(
    choices: IntArray, settled: int, closed: int, commas: IntArray, table: IntArray, classes: Bytes
) -> None:
    """Let the choices end the object or go on behind a comma."""
    for choice in range(len(choices)):
        row, place, is_first = choices[choice]
        if place >= settled:
            table[row, classes[BRACE]] = closed << FLAG_BITS
        if not is_first and commas[place] >= 0:
            table[row, classes[COMMA]] = commas[place] << FLAG_BITS


@numba.njit(nogil=True)
def _fill(
    keys: Keys,
    cells: IntArray,
    begins: IntArray,
    nodes: IntArray,
    rows: IntArray,
    table: IntArray,
    classes: Bytes,
) -> None:
    """Let each row read its trie."""
    text, starts, _ = keys
    seen = np.full(256, -1, np.int32)
    for row in range(len(rows)):
        trie, depth = rows[row, TRIE], rows[row, DEPTH_READ]
        if trie < NOTHING:
            key = -2 - trie
            byte = text[starts[key] + depth]
            table[row, classes[byte]] = begins[key] + depth + 1 << FLAG_BITS
        while trie >= 0:
            byte, child = cells[trie, BYTE], cells[trie, CHILD]
            trie = cells[trie, NEXT]
            if seen[byte] != row:
                seen[byte] = row
                to = begins[-2 - child] + depth + 1 if child < 0 else nodes[child]
                table[row, classes[byte]] = to << FLAG_BITS


@numba.njit(nogil=True)
def _add_calls(calls: IntArray, end: int, state: int, to: int, ways: IntArray, span: Longs) -> int:
    """Let a state call any of some ways and go on in `to`; the new number of calls."""
    for way in range(span[0], span[1]):
        calls[end, STATE], calls[end, TO] = state, to
        calls[end, CALLEE], calls[end, A], calls[end, B] = ways[way]
        end += 1
    return end


@numba.njit(nogil=True)
def _call(
    states: IntArray,
    source: IntArray,
    calls_keys: Flags,
    begins: IntArray,
    ways: IntArray,
    spans: Longs,
    n: int,
) -> IntArray:
    """Note in the states what they call; the rows of the calls, by ascending state."""
    n_chains = len(begins)
    n_extras = n_chains - n
    most, of_keys = 0, 0
    for index in range(len(spans)):
        width = spans[index, 1] - spans[index, 0]
        most += width if index < n_chains else 0
        of_keys += width if index >= n_chains else 0
    calls = np.zeros((most + of_keys * calls_keys.sum(), 7), np.int32)
    end = 0
    for state in range(len(states)):
        begin = end
        if source[state] >= 0:
            end = _add_calls(calls, end, state, state + 1, ways, spans[source[state]])
        for extra in range(n_extras if calls_keys[state] else 0):
            end = _add_calls(calls, end, state, begins[n + extra], ways, spans[n_chains + extra])
        if end > begin:
            states[state, CALL_FROM], states[state, CALL_TO] = begin, end
            states[state, FLAGS] |= CALLS
    return calls[:end]


@numba.njit(_SIGNATURE, cache=True, nogil=True)
def lay_out(
    text: Bytes, starts: Longs, required: Flags, ways: IntArray, spans: Longs, begun: int
) -> Laid:
    """The states, table and byte classes of a frame, and the rows of its calls.

    Args:
        text: the chains of all declared properties and of all kinds of undeclared ones, and then
            what stands between two properties.
        starts: int64[..., + 1], where each of these begins, and the end.
        required: of each declared property.
        ways: int32[..., 3], (callee, a, b) of calls.
        spans: int64[..., 2], first and end among `ways`: how the value behind each chain can be
            written, and then the key of each kind of undeclared properties.
        begun: declared properties that were written before the frame begins.
    """
    n, n_chains = len(required), len(starts) - 2
    keys, tries = (text, starts, required), _tries(text, starts, required, begun)
    _, cells, _ = tries
    most_choices = n_chains + 2
    n_comma = starts[n_chains + 1] - starts[n_chains]
    most = len(text) + most_choices * (n_comma + 3) + n_chains + len(cells)
    chain, source = np.full(most, -1, np.int32), np.full(most, -1, np.int32)
    begins, commas = np.full(n_chains, -1, np.int32), np.full(n + 1, -1, np.int32)
    choices = np.empty((most_choices, 3), np.int32)
    rows = np.empty((2 * most_choices + len(cells), 3), np.int32)
    nodes = np.empty(len(cells), np.int32)
    size, n_rows, n_choices, closed = _lay(
        keys, tries, begun, (begins, source, choices), (chain, rows, commas, nodes)
    )
    settled = n
    while settled and not required[settled - 1]:
        settled -= 1
    classes = np.zeros(256, np.uint8)
    table = np.full((n_rows, _classify(cells, classes)), -1, np.int32)
    _wire(choices[:n_choices], settled, closed, commas, table, classes)
    _fill(keys, cells, begins, nodes, rows[:n_rows], table, classes)
    states = np.zeros((size, 8), np.int32)
    calls_keys = np.zeros(size, np.bool_)
    for state in range(size):
        states[state, CHAIN] = chain[state]
        states[state, ROW] = states[state, LOOP] = states[state, FRAME] = -1
    for place in range(settled, n + 1):
        if commas[place] >= 0:
            calls_keys[commas[place] + n_comma - 1] = True
    if n_choices and choices[0, 2]:
        calls_keys[rows[choices[0, 0], AT]] = choices[0, 1] >= settled
    for row in range(n_rows):
        states[rows[row, AT], ROW] = row * table.shape[1]
    states[closed, FLAGS] = ACCEPT | TAIL
    calls = _call(states, source, calls_keys, begins, ways, spans, n)
    return states, table, classes, calls
