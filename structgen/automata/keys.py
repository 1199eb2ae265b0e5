"""Frames of object keys that the schema does not name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import accumulate

import numpy as np

from structgen.automata.frames import CHAIN, END, FLAG_BITS, ROW, Frame, FrameBuilder, IntArray
from structgen.automata.key_kernels import other_keys
from structgen.automata.strings import canonical_characters

_written = json.JSONEncoder(ensure_ascii=False).encode
"""`json.dumps` makes an encoder for each call with options."""


def other_key_frame(names: Iterable[str]) -> Frame:
    """Any key but `names`: an undeclared key must not overwrite a declared property.

    The key is written canonically, so that no escape can spell a forbidden name differently.
    A state for each beginning of a name reads what the state of any key at the same place reads,
    except that the bytes of names lead to the states of longer beginnings, or nowhere.
    """
    base = any_key()
    texts = sorted({_written(name).encode()[1:] for name in names})
    states, table, classes, likes = other_keys(
        np.frombuffer(bytearray(b"".join(texts)), np.uint8),
        np.array([0, *accumulate(map(len, texts))], np.int64),
        base.states,
        any_moves(),
        base.classes,
    )
    return replace(base, states=states, table=table.ravel(), classes=classes, like=likes)


@cache
def any_key() -> Frame:
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
def any_moves() -> IntArray:
    """int32[S, 256]: the table's entry of each state of any key and byte, chains included."""
    base = any_key()
    moves = np.full((len(base.states), 256), -1, np.int32)
    for state, columns in enumerate(base.states):
        if columns[ROW] >= 0:
            moves[state] = base.table[columns[ROW] + base.classes.astype(np.int32)]
        elif columns[CHAIN] >= 0:
            moves[state, columns[CHAIN]] = state + 1 << FLAG_BITS
    return moves
