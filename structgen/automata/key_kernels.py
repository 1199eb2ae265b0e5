"""The states that tell an undeclared key from the declared names, made on arrays.

The tests have the same piece by piece, as a trie of dicts.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from structgen.automata.frames import FLAG_BITS, FLAGS, ROW, WIDE, IntArray

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

START = 1
"""The state behind the opening quote; it reads what `INSIDE` does, and nothing leads back to it."""
INSIDE = 2

FLAG_MASK = (1 << FLAG_BITS) - 1
_SIGNATURE = "(uint8[::1], int64[::1], int32[:, ::1], int32[:, ::1], uint8[::1])"


@numba.njit(nogil=True)
def _split_classes(text: Bytes, classes: Bytes) -> tuple[Bytes, IntArray]:
    """Byte classes in which each byte of `text` is alone: the class of each byte, one of each.

    All bytes of a class do the same elsewhere, so one that has left it stands for it too.
    """
    sizes, sample = np.zeros(256, np.int32), np.zeros(512, np.int32)
    split = classes.copy()
    count = 0
    for byte in range(255, -1, -1):
        sample[classes[byte]] = byte
        sizes[classes[byte]] += 1
        count = max(count, classes[byte] + 1)
    for byte in text:
        if sizes[split[byte]] > 1:
            sizes[split[byte]] -= 1
            split[byte] = count
            sample[count], sizes[count] = byte, 1
            count += 1
    return split, sample[:count]


@numba.njit(_SIGNATURE, cache=True, nogil=True)
def other_keys(
    text: Bytes, starts: Longs, states: IntArray, moves: IntArray, classes: Bytes
) -> tuple[IntArray, IntArray, Bytes, IntArray]:
    """A frame of any key but some names: (states, table, classes, likes) as a `Frame` has them.

    The empty beginning of all names is `START`; each other one has a state behind those of any
    key, which is like one of them but for the bytes with which names go on.

    Args:
        text: all names one after another, each with its closing quote; sorted, none twice.
        starts: int64[N + 1], where each begins.
        states: int32[S, 8] of the frame of any key.
        moves: int32[S, 256], the table's entry of each of these states and each byte.
        classes: uint8[256], their byte classes.
    """
    n_base, n_rows = len(states), 0
    split, sample = _split_classes(text, classes)
    n_classes = len(sample)
    made = np.empty((n_base + len(text), 8), np.int32)
    table = np.empty((n_base + len(text), n_classes), np.int32)
    likes = np.empty(n_base + len(text), np.int32)
    for state in range(n_base):
        made[state] = states[state]
        likes[state] = state
        if states[state, ROW] >= 0:
            for column in range(n_classes):
                table[n_rows, column] = moves[state, sample[column]]
            made[state, ROW] = n_rows * n_classes
            n_rows += 1
    made[0, FLAGS] &= ~WIDE
    likes[START] = INSIDE
    path = np.empty(len(text) + 1, np.int32)
    path[0] = START
    size, before, shared = n_base, 0, 0
    for name in range(len(starts) - 1):
        start, last = starts[name], starts[name + 1] - 1
        depth = 0
        if name:
            before = starts[name - 1]
            while text[start + depth] == text[before + depth]:
                depth += 1
        shared = depth
        for at in range(start + shared, last):
            column, state = split[text[at]], path[at - start]
            row = made[state, ROW] // n_classes
            entry = table[row, column]
            # The state of any key behind the same bytes, before this one leads to a name's.
            like = entry >> FLAG_BITS
            table[row, column] = size << FLAG_BITS | entry & FLAG_MASK
            made[size] = states[START]
            likes[size] = like
            if like != INSIDE:
                made[size, FLAGS] &= ~WIDE
            for other in range(n_classes):
                table[n_rows, other] = moves[like, sample[other]]
            made[size, ROW] = n_rows * n_classes
            path[at - start + 1] = size
            size += 1
            n_rows += 1
        table[made[path[last - start], ROW] // n_classes, split[text[last]]] = -1
    return made[:size], table[:n_rows].copy(), split, likes[:size]
