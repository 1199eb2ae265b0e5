"""Frames of JSON text inside a JSON string: the same language with quotes and backslashes escaped.

Such text is compact and holds no control characters, so nothing else needs an escape.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from structgen.automata.frames import (
    ACCEPT,
    CHAIN,
    CHARS,
    CLASSES,
    COUNT,
    END,
    EXTRA,
    FLAG_BITS,
    FLAGS,
    LOOP,
    ROOM,
    ROW,
    SPARE,
    WIDE,
    Frame,
    FrameBuilder,
    IntArray,
)

ESCAPED = (0x22, 0x5C)
BACKSLASH = 0x5C

Moved = Callable[[object, int, int], tuple[object, int, int]]
"""Where the callee of the inner automaton is found in the outer one, and its registers."""


def escaped_text(text: bytes) -> bytes:
    """Text as it stands inside a JSON string."""
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def escaped_frame(frame: Frame, moved: Moved) -> Frame:
    """The frame whose every quote and backslash is written with a backslash before it."""
    b = FrameBuilder(frame.name)
    states = frame.states
    for flags in states[:, FLAGS].tolist():
        b.state(accept=bool(flags & ACCEPT))
    for state in range(len(states)):
        chain, row = int(states[state, CHAIN]), int(states[state, ROW])
        if chain >= 0:
            _edge(b, state, chain, state + 1, 0)
        if row >= 0:
            classes = frame.classes[states[state, CLASSES] : states[state, CLASSES] + 256]
            entries = frame.table[row + classes.astype(np.intp)]
            _row(b, state, entries, _first_units(entries) if states[0, FLAGS] & SPARE else 0)
    for state, call in frame.calls:
        callee, first, second = moved(call.callee, call.a, call.b)
        b.add_call(state, call._replace(callee=callee, a=first, b=second))
    common = int(states[0, FLAGS])
    return b.frame(
        loop=int(states[0, LOOP]),
        chars=bool(common & CHARS),
        wide=bool(common & WIDE),
        slack=frame.slack if common & SPARE else None,
    )


def _first_units(entries: IntArray) -> int:
    """Units of room that every escaped byte of a row takes: the backslash takes them already.

    Else it could be written where there is no room for anything behind it.
    """
    found = [int(entries[byte]) for byte in ESCAPED if entries[byte] >= 0]
    return min((_units(entry & (1 << FLAG_BITS) - 1) for entry in found), default=0)


def _units(flags: int) -> int:
    return 1 + flags // EXTRA if flags & ROOM else 0


def _with_units(flags: int, units: int) -> int:
    return flags & END | (ROOM | COUNT | EXTRA * (units - 1) if units else 0)


def _row(b: FrameBuilder, state: int, entries: IntArray, before: int) -> None:
    """Edges for the entries int32[256] of a row, one for each range of bytes that agree.

    `before` units are taken by the backslash of an escaped byte instead of the byte.
    """
    starts = np.flatnonzero(np.diff(entries, prepend=-2))
    cuts = sorted({*starts.tolist(), *ESCAPED, *(byte + 1 for byte in ESCAPED), 256})
    for first, after in itertools.pairwise(cuts):
        entry = int(entries[first])
        if entry < 0:
            continue
        to, flags = entry >> FLAG_BITS, entry & (1 << FLAG_BITS) - 1
        if first in ESCAPED:
            rest = _with_units(flags, _units(flags) - before) if before else flags
            _edge(b, state, first, to, rest, _with_units(0, before))
        else:
            b.edge(state, first, after - 1, to, flags)


def _edge(
    b: FrameBuilder, state: int, byte: int, to: int, flags: int, backslash_flags: int = 0
) -> None:
    if byte not in ESCAPED:
        b.edge(state, byte, byte, to, flags)
        return
    # One backslash may begin several escaped bytes, which share the state behind it.
    between = next((t for first, _, t, _ in b.edges_of(state) if first == BACKSLASH), None)
    if between is None:
        between = b.state()
        b.edge(state, BACKSLASH, BACKSLASH, between, backslash_flags)
    b.edge(between, byte, byte, to, flags)
