"""The frame of a JSON string, laid out on arrays from the automaton of the bytes inside of it.

The tests build the same frames piece by piece.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from structgen.automata.frames import (
    ACCEPT,
    CHAIN,
    COUNT,
    END,
    EXTRA,
    FLAG_BITS,
    FLAGS,
    FRAME,
    LOOP,
    ROOM,
    ROW,
    TAIL,
    IntArray,
)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

QUOTE = 0x22
UNIT = ROOM | COUNT


@numba.njit(nogil=True)
def _numbers(reached: Longs, characters: int) -> IntArray:
    """int32[S], new numbers of the states: those inside of characters stand before what they reach.

    The costs of a frame are worked out from its last state to its first one, so a text is gone
    through once, not once for each of its characters. The first state stays the first.
    """
    n = len(reached)
    at = np.zeros(2 * characters + 2, np.int32)  # where the states of each place begin
    places = np.empty(n, np.int32)
    for state in range(n):
        inside = state >= characters
        places[state] = max(2 * reached[state] - inside, inside)
        at[places[state] + 1] += 1
    for place in range(1, len(at)):
        at[place] += at[place - 1]
    numbers = np.empty(n, np.int32)
    for state in range(n - 1, -1, -1):
        numbers[state] = at[places[state]]
        at[places[state]] += 1
    return numbers


@numba.njit(nogil=True)
def _to_least(moves: IntArray, values: Longs, characters: int) -> None:
    """Bring the values of states inside of characters to the least of what they lead to.

    Each stands behind the ones inside of characters that it leads to, so these are known.
    """
    for move in range(len(moves)):
        state = moves[move, 0]
        if state >= characters:
            values[state] = min(values[state], values[moves[move, 3]])


@numba.njit(nogil=True)
def _classify(moves: IntArray, classes: Bytes) -> int:
    """Number the classes of bytes that no state tells apart."""
    cuts = np.zeros(257, np.bool_)
    cuts[QUOTE] = cuts[QUOTE + 1] = True
    for move in range(len(moves)):
        cuts[moves[move, 1]] = cuts[moves[move, 2] + 1] = True
    count = 0
    for byte in range(1, 256):
        count += cuts[byte]
        classes[byte] = count
    return count + 1


@numba.njit("(int32[:, ::1], boolean[::1], int64[::1], boolean)", cache=True, nogil=True)
def lay_out_text(
    moves: IntArray, accepting: Flags, left: Longs, counts: bool
) -> tuple[IntArray, IntArray, Bytes, int, int]:
    """The states, table and byte classes of a frame that reads a text in quotes.

    Behind them come how many different bytes some state reads at most, and the most units of room
    that a move takes: one for a character, and what it makes the shortest way to an end longer.

    Args:
        moves: int32[E, 4] of (state, first byte, last byte, target), by ascending state; each state
            inside of a character stands behind the ones that it leads to.
        accepting: bool[S], whether the text may end in each state.
        left: by state that is not inside of a character, how many characters the shortest way to
            an end takes, as far as they are kept free.
        counts: whether the characters take units of room at all.
    """
    n, characters = len(accepting), len(left)
    reached, spare = np.full(n, characters, np.int64), np.full(n, np.int64(2**60))
    for state in range(characters):
        reached[state], spare[state] = state, left[state]
    _to_least(moves, reached, characters)
    _to_least(moves, spare, characters)
    numbers = _numbers(reached, characters)
    classes = np.zeros(256, np.uint8)
    n_classes = _classify(moves, classes)
    states = np.zeros((n + 2, 8), np.int32)
    for state in range(n + 2):
        states[state, CHAIN] = states[state, ROW] = states[state, LOOP] = states[state, FRAME] = -1
    states[0, CHAIN], states[n + 1, FLAGS] = QUOTE, ACCEPT | TAIL
    widths = np.zeros(n, np.int64)
    for move in range(len(moves)):
        state, first, last, _ = moves[move]
        widths[state] += last - first + 1
        states[1 + numbers[state], ROW] = 0
    for state in range(n):
        if accepting[state]:
            states[1 + numbers[state], ROW] = 0
    size = 0
    for state in range(n + 2):
        if states[state, ROW] == 0:
            states[state, ROW] = size
            size += n_classes
    table = np.full(size, -1, np.int32)
    most = 0
    for move in range(len(moves)):
        state, first, last, to = moves[move]
        entry = np.int64(1 + numbers[to]) << FLAG_BITS
        if counts:
            units = (state < characters) + spare[to] - spare[state]
            most = max(most, units)
            if units > 0:
                entry |= UNIT | EXTRA * (units - 1)
        row = states[1 + numbers[state], ROW]
        for column in range(classes[first], classes[last] + 1):
            table[row + column] = entry
    for state in range(n):
        if accepting[state]:
            row = states[1 + numbers[state], ROW]
            table[row + classes[QUOTE]] = np.int64(n + 1) << FLAG_BITS | END * counts
    return states, table, classes, widths.max() if n else 0, most
