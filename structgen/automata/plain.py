"""Numbers in one spelling only, for arrays whose items must differ: equal text is equal value.

`1`, but not `1.0`, `1e0` or `-0`; at most 15 digits that count, which a double tells apart.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from structgen.automata.frames import (
    ACCEPT,
    CHAIN,
    CLASSES,
    FLAG_BITS,
    FLAGS,
    ROW,
    Frame,
    FrameBuilder,
)
from structgen.automata.numbers import number_frame

MOST_DIGITS = 15
MINUS, POINT, ZERO, ONE = 0x2D, 0x2E, 0x30, 0x31
NUMERALS = np.frombuffer(b"-.0123456789", np.uint8)


class Spelling(NamedTuple):
    """How a number was written so far."""

    place: str = "start"
    """start, sign, zero, whole, point or fraction."""
    digits: int = 0
    """Digits that count: all but zeros before the first other one."""
    negative: bool = False
    may_end: bool = False


_Edges: TypeAlias = dict[tuple[int, Spelling], list[tuple[int, int, tuple[int, Spelling]]]]


def plain_number_frame(frame: Frame) -> Frame | None:
    """Those texts of a number's frame that are in the one spelling; None if there are none."""
    return _any_plain_number() if frame is number_frame() else _plain(frame)


@cache
def _any_plain_number() -> Frame | None:
    return _plain(number_frame())


@lru_cache(maxsize=256)
def _plain(frame: Frame) -> Frame | None:
    edges: _Edges = {}
    start = (0, Spelling())
    pending: deque[tuple[int, Spelling]] = deque([start])
    moves = [_moves(frame, state) for state in range(len(frame.states))]
    while pending:
        at = pending.popleft()
        if at in edges:
            continue
        state, spelling = at
        edges[at] = []
        for first, last, to in moves[state]:
            after = _read(spelling, first)
            if after is not None:
                edges[at].append((first, last, (to, after)))
                pending.append((to, after))
    accepting = {at for at in edges if at[1].may_end and frame.states[at[0], FLAGS] & ACCEPT}
    return _frame(start, edges, accepting)


def _moves(frame: Frame, state: int) -> list[tuple[int, int, int]]:
    """(first byte, last byte, state after them) of a frame without calls and counters.

    Zero is on its own: to the spelling, all other digits are alike.
    """
    columns: list[int] = frame.states[state].tolist()
    if columns[CHAIN] >= 0:
        return [(columns[CHAIN], columns[CHAIN], state + 1)]
    if columns[ROW] < 0:
        return []
    classes = frame.classes[columns[CLASSES] :][NUMERALS].astype(np.int32)
    entries: list[int] = frame.table[columns[ROW] + classes].tolist()
    found: list[tuple[int, int, int]] = []
    for byte, entry in zip(NUMERALS.tolist(), entries, strict=True):
        to = entry >> FLAG_BITS
        if found and found[-1] == (found[-1][0], byte - 1, to) and byte > ONE:
            found[-1] = (found[-1][0], byte, to)
        elif entry >= 0:
            found.append((byte, byte, to))
    return found


@cache
def _read(at: Spelling, byte: int) -> Spelling | None:
    """The spelling after one more character, None where it is not the one spelling.

    Any digit but zero may stand for all of them.
    """
    if byte == MINUS:
        return Spelling("sign", 0, True) if at.place == "start" else None
    if byte == POINT:
        return Spelling("point", at.digits, at.negative) if at.place in ("zero", "whole") else None
    if at.place == "zero" or (at.digits == MOST_DIGITS):
        return None
    if at.place in ("start", "sign") and byte == ZERO:
        return Spelling("zero", 0, at.negative, not at.negative)
    counts = byte != ZERO or at.digits > 0
    if at.place in ("point", "fraction"):
        return Spelling("fraction", at.digits + counts, at.negative, byte != ZERO)
    return Spelling("whole", at.digits + counts, at.negative, True)


def _frame(
    start: tuple[int, Spelling],
    edges: _Edges,
    accepting: set[tuple[int, Spelling]],
) -> Frame | None:
    """The automaton without states from which nothing can be finished."""
    sources: dict[tuple[int, Spelling], list[tuple[int, Spelling]]] = {}
    for at, outgoing in edges.items():
        for _, _, to in outgoing:
            sources.setdefault(to, []).append(at)
    live, pending = set(accepting), list(accepting)
    while pending:
        for source in sources.get(pending.pop(), ()):
            if source not in live:
                live.add(source)
                pending.append(source)
    if start not in live:
        return None
    b = FrameBuilder("number")
    numbers = {start: b.state(accept=start in accepting)}
    for at in edges:
        if at in live and at != start:
            numbers[at] = b.state(accept=at in accepting)
    for at, number in numbers.items():
        for first, last, to in edges[at]:
            if to in numbers:
                b.edge(number, first, last, numbers[to])
    return b.frame()
