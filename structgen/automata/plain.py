"""Numbers in one spelling only, for arrays whose items must differ: equal text is equal value.

`1`, but not `1.0`, `1e0` or `-0`; at most 15 digits that count, which a double tells apart.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import NamedTuple

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

MOST_DIGITS = 15
DIGITS = b"0123456789"
MINUS, POINT, ZERO = 0x2D, 0x2E, 0x30


class Spelling(NamedTuple):
    """How a number was written so far."""

    place: str = "start"
    """start, sign, zero, whole, point or fraction."""
    digits: int = 0
    """Digits that count: all but zeros before the first other one."""
    negative: bool = False
    may_end: bool = False


@lru_cache(maxsize=256)
def plain_number_frame(frame: Frame) -> Frame | None:
    """Those texts of a number's frame that are in the one spelling; None if there are none."""
    edges: dict[tuple[int, Spelling], list[tuple[int, tuple[int, Spelling]]]] = {}
    start: tuple[int, Spelling] = (0, Spelling())
    pending = deque([start])
    while pending:
        at = pending.popleft()
        if at in edges:
            continue
        state, spelling = at
        edges[at] = []
        for byte in (*DIGITS, MINUS, POINT):
            to, after = _move(frame, state, byte), _read(spelling, byte)
            if to >= 0 and after is not None:
                edges[at].append((byte, (to, after)))
                pending.append((to, after))
    accepting = {at for at in edges if at[1].may_end and frame.states[at[0], FLAGS] & ACCEPT}
    return _frame(start, edges, accepting)


def _move(frame: Frame, state: int, byte: int) -> int:
    """The state after a byte of a frame without calls and counters, or -1."""
    columns = frame.states[state]
    if columns[CHAIN] >= 0:
        return state + 1 if columns[CHAIN] == byte else -1
    if columns[ROW] < 0:
        return -1
    entry = int(frame.table[columns[ROW] + int(frame.classes[columns[CLASSES] + byte])])
    return entry >> FLAG_BITS if entry >= 0 else -1


def _read(at: Spelling, byte: int) -> Spelling | None:
    """The spelling after one more character, None where it is not the one spelling."""
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
    edges: dict[tuple[int, Spelling], list[tuple[int, tuple[int, Spelling]]]],
    accepting: set[tuple[int, Spelling]],
) -> Frame | None:
    """The automaton without states from which nothing can be finished."""
    sources: dict[tuple[int, Spelling], list[tuple[int, Spelling]]] = {}
    for at, outgoing in edges.items():
        for _, to in outgoing:
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
        for byte, to in edges[at]:
            if to in numbers:
                b.edge(number, byte, byte, numbers[to])
    return b.frame()
