"""Frames of object keys that the schema does not name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.frames import (
    CHAIN,
    END,
    FLAG_BITS,
    ROW,
    Frame,
    FrameBuilder,
    IntArray,
)
from structgen.automata.strings import canonical_characters

Bools: TypeAlias = npt.NDArray[np.bool_]

START = 1
"""The state behind the opening quote; it reads what `INSIDE` does, and nothing leads back to it."""
INSIDE = 2
FLAG_MASK = (1 << FLAG_BITS) - 1


def other_key_frame(names: Iterable[str]) -> Frame:
    """Any key but `names`: an undeclared key must not overwrite a declared property.

    The key is written canonically, so that no escape can spell a forbidden name differently.
    A state for each beginning of a name reads what the state of any key at the same place reads,
    except that the bytes of names lead to the states of longer beginnings, or nowhere.
    """
    base = _any_key()
    like, splits = _trie(
        sorted(json.dumps(name, ensure_ascii=False).encode()[1:] for name in names)
    )
    # Beginning i is state `states[i]`: the first one is START, the others stand behind the base.
    states = np.array([START, *range(len(base.states), len(base.states) + len(like) - 1)], np.int32)
    at, bytes_, to = splits.T
    classes, sample = _split_classes(base, bytes_)
    has_row = np.concatenate([base.states[:, ROW] >= 0, np.ones(len(like) - 1, np.bool_)])
    table = np.concatenate([_moves(), _moves()[like[1:]]])[:, sample]
    flags = table[states[at], classes[bytes_]] & FLAG_MASK
    table[states[at], classes[bytes_]] = np.where(to < 0, -1, states[to] << FLAG_BITS | flags)
    return _with_rows(base, has_row, table[has_row], classes)


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
    return b.frame(loop=inside, chars=True)


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


def _trie(texts: Iterable[bytes]) -> tuple[IntArray, IntArray]:
    """The beginnings of `texts`: like which state of any key each stands, and how they go on.

    Returns:
        int32[B], and int32[M, 3]: (beginning, byte, longer beginning or -1 for a whole text).
    """
    moves = _moves()
    like = [INSIDE]
    longer: dict[tuple[int, int], int] = {}
    for text in texts:
        at = 0
        for byte in text[:-1]:
            to = longer.setdefault((at, byte), len(like))
            if to == len(like):
                like.append(int(moves[like[at], byte]) >> FLAG_BITS)
            at = to
        longer[at, text[-1]] = -1
    splits = [(at, byte, to) for (at, byte), to in longer.items()]
    return np.array(like, np.int32), np.array(splits, np.int32).reshape(-1, 3)


def _split_classes(base: Frame, bytes_: IntArray) -> tuple[IntArray, IntArray]:
    """Byte classes in which each of `bytes_` is alone: the class of each byte, a byte of each."""
    groups = base.classes.astype(np.int32)
    groups[bytes_] = 256 + bytes_
    _, sample, classes = np.unique(groups, return_index=True, return_inverse=True)
    return classes.astype(np.int32), sample.astype(np.int32)


def _with_rows(base: Frame, has_row: Bools, table: IntArray, classes: IntArray) -> Frame:
    """The base frame with further states, and a row of `table` for each that has one."""
    states = np.repeat(base.states[START : START + 1], len(has_row), axis=0)
    states[: len(base.states)] = base.states
    states[has_row, ROW] = np.arange(len(table)) * table.shape[1]
    return replace(base, states=states, table=table.ravel(), classes=classes.astype(np.uint8))
