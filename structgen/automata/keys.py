"""Frames of object keys that the schema does not name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from structgen.automata.frames import (
    CHAIN,
    END,
    FLAG_BITS,
    FLAGS,
    ROW,
    WIDE,
    Frame,
    FrameBuilder,
    IntArray,
)
from structgen.automata.strings import canonical_characters

START = 1
"""The state behind the opening quote; it reads what `INSIDE` does, and nothing leads back to it."""
INSIDE = 2
_written = json.JSONEncoder(ensure_ascii=False).encode
"""`json.dumps` makes an encoder for each call with options."""

FLAG_MASK = (1 << FLAG_BITS) - 1


def other_key_frame(names: Iterable[str]) -> Frame:
    """Any key but `names`: an undeclared key must not overwrite a declared property.

    The key is written canonically, so that no escape can spell a forbidden name differently.
    A state for each beginning of a name reads what the state of any key at the same place reads,
    except that the bytes of names lead to the states of longer beginnings, or nowhere.
    """
    base, moves = _any_key(), _moves()
    stands_for, splits = _trie(sorted(_written(name).encode()[1:] for name in names))
    # Beginning i is state `numbers[i]`: the first is START, the others stand behind the base.
    n_base = len(base.states)
    numbers = [START, *range(n_base, n_base + len(stands_for) - 1)]
    classes, sample = _split_classes({byte for _, byte, _ in splits})
    likes = np.array([*range(n_base), *stands_for[1:]], np.int32)
    table = moves[:, sample][likes]
    at = np.array([numbers[source] for source, _, _ in splits], np.int32)
    columns = np.array([classes[byte] for _, byte, _ in splits], np.int32)
    to = np.array([numbers[target] if target >= 0 else -1 for _, _, target in splits], np.int32)
    entries = to << FLAG_BITS | table[at, columns] & FLAG_MASK
    table[at, columns] = np.where(to < 0, -1, entries)
    return _with_rows(base, likes, table, bytes(classes))


@cache
def _any_key() -> Frame:
    """Every key, written canonically."""
    b = FrameBuilder("other key")
    b.literal(b'"')
    start, inside = b.state(), b.state()
    closed = b.state(accept=True)
    b.bytes_edge(inside, b'"', closed, END)
    canonical_characters(b, inside)
    for edge in b.edges_of(inside):
        b.edge(start, *edge)
    return b.frame(loop=inside, chars=True, wide=True)


@cache
def _moves() -> IntArray:
    """int32[S, 256]: the table's entry of each state of any key and byte, chains included."""
    base = _any_key()
    moves = np.full((len(base.states), 256), -1, np.int32)
    for state, columns in enumerate(base.states):
        if columns[ROW] >= 0:
            moves[state] = base.table[columns[ROW] + base.classes.astype(np.int32)]
        elif columns[CHAIN] >= 0:
            moves[state, columns[CHAIN]] = state + 1 << FLAG_BITS
    return moves


def _trie(texts: Iterable[bytes]) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The beginnings of `texts`: which state of any key each stands for, and how they go on.

    The second are (beginning, byte, longer beginning or -1 for a whole text).
    """
    moves = _targets()
    stands_for = [INSIDE]
    longer: dict[tuple[int, int], int] = {}
    for text in texts:
        at = 0
        for byte in text[:-1]:
            to = longer.setdefault((at, byte), len(stands_for))
            if to == len(stands_for):
                stands_for.append(moves[stands_for[at]][byte])
            at = to
        longer[at, text[-1]] = -1
    return stands_for, [(at, byte, to) for (at, byte), to in longer.items()]


@cache
def _targets() -> list[list[int]]:
    """The state after each byte in each state of any key, negative where there is none."""
    return (_moves() >> FLAG_BITS).tolist()


def _split_classes(alone: Iterable[int]) -> tuple[bytearray, list[int]]:
    """Byte classes in which each byte of `alone` is alone: the class of each byte, one of each.

    All bytes of a class of any key do the same there, so one that has left it stands for it too.
    """
    first, sizes = _any_classes()
    classes, sample = bytearray(_any_key().classes), first.copy()
    for byte in alone:
        if sizes[classes[byte]] > 1:
            classes[byte] = len(sample)
            sample.append(byte)
    return classes, sample


@cache
def _any_classes() -> tuple[list[int], list[int]]:
    """The first byte of each class of any key, and how many there are."""
    _, first, sizes = np.unique(_any_key().classes, return_index=True, return_counts=True)
    return first.tolist(), sizes.tolist()


def _with_rows(base: Frame, likes: IntArray, table: IntArray, classes: bytes) -> Frame:
    """The base frame with further states that stand for `likes`, and their rows of `table`."""
    n_base = len(base.states)
    states = base.states[np.where(np.arange(len(likes)) < n_base, likes, START)]
    has_row = states[:, ROW] >= 0
    states[has_row, ROW] = np.arange(np.count_nonzero(has_row)) * table.shape[1]
    # What begins a key, or is in the middle of a character, reads too little to be kept apart.
    states[0, FLAGS] &= ~WIDE
    states[n_base:][likes[n_base:] != INSIDE, FLAGS] &= ~WIDE
    likes[START] = INSIDE
    rows = table[has_row].ravel()
    return replace(
        base, states=states, table=rows, classes=np.frombuffer(classes, np.uint8), like=likes
    )
