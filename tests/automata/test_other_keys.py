"""The states of undeclared keys, made on arrays, are those that a trie of dicts has."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata.frames import FLAG_BITS, FLAGS, ROW, WIDE, Frame
from structgen.automata.key_kernels import FLAG_MASK, INSIDE, START
from structgen.automata.keys import any_key, any_moves, other_key_frame

TEXTS = st.text(st.sampled_from('ab"\\\n\x01\x1f/éè€😀'), max_size=4)


def entries(frame: Frame, state: int) -> list[int]:
    """The table's entry of each byte, of a state with a row."""
    row = int(frame.states[state, ROW])
    return frame.table[row + frame.classes.astype(np.int32)].tolist()


def built(names: set[str]) -> tuple[list[int], list[list[int]]]:
    """For each beginning of a name: the state of any key that it is like, and its entries."""
    moves = any_moves().tolist()
    n_base = len(moves)
    likes, longer = [INSIDE], dict[tuple[int, int], int]()
    for text in sorted(json.dumps(name, ensure_ascii=False).encode()[1:] for name in names):
        at = 0
        for byte in text[:-1]:
            to = longer.setdefault((at, byte), len(likes))
            if to == len(likes):
                likes.append(moves[likes[at]][byte] >> FLAG_BITS)
            at = to
        longer[at, text[-1]] = -1
    rows = [list(moves[like]) for like in likes]
    for (at, byte), to in longer.items():
        state = n_base + to - 1
        rows[at][byte] = -1 if to < 0 else state << FLAG_BITS | rows[at][byte] & FLAG_MASK
    return likes, rows


@given(st.sets(TEXTS, max_size=6))
@settings(max_examples=300)
def test_arrays_hold_the_trie(names):
    frame, base = other_key_frame(names), any_key()
    likes, rows = built(names)
    n_base = len(base.states)
    assert len(frame.states) == n_base + len(likes) - 1
    assert frame.like is not None
    assert frame.like[START] == INSIDE
    numbers = [START, *range(n_base, n_base + len(likes) - 1)]
    for number, like, row in zip(numbers, likes, rows, strict=True):
        assert entries(frame, number) == row
        assert frame.like[number] == like
        assert bool(frame.states[number, FLAGS] & WIDE) is (like == INSIDE)
    for state in set(range(n_base)) - {START}:
        assert frame.like[state] == state
        same = base.states[state].copy()
        if same[ROW] >= 0:
            assert entries(frame, state) == entries(base, state)
            same[ROW] = frame.states[state, ROW]
        if state == 0:
            same[FLAGS] &= ~WIDE
        assert (frame.states[state] == same).all()
    assert len(frame.table) == len(set(frame.classes.tolist())) * (frame.states[:, ROW] >= 0).sum()
