"""Frames of JSON text inside a JSON string: the same language with quotes and backslashes escaped.

Such text is compact and holds no control characters, so nothing else needs an escape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from structgen.automata.frames import (
    ACCEPT,
    CHAIN,
    CHARS,
    CLASSES,
    FLAG_BITS,
    FLAGS,
    LOOP,
    ROW,
    WIDE,
    Frame,
    FrameBuilder,
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
        for byte in range(256) if row >= 0 else ():
            entry = int(frame.table[row + int(frame.classes[states[state, CLASSES] + byte])])
            if entry >= 0:
                _edge(b, state, byte, entry >> FLAG_BITS, entry & (1 << FLAG_BITS) - 1)
    for state, call in frame.calls:
        callee, first, second = moved(call.callee, call.a, call.b)
        b.add_call(state, replace(call, callee=callee, a=first, b=second))
    common = int(states[0, FLAGS])
    return b.frame(loop=int(states[0, LOOP]), chars=bool(common & CHARS), wide=bool(common & WIDE))


def _edge(b: FrameBuilder, state: int, byte: int, to: int, flags: int) -> None:
    if byte not in ESCAPED:
        b.edge(state, byte, byte, to, flags)
        return
    # One backslash may begin several escaped bytes, which share the state behind it.
    between = next((t for first, _, t, _ in b.edges_of(state) if first == BACKSLASH), None)
    if between is None:
        between = b.state()
        b.edge(state, BACKSLASH, BACKSLASH, between)
    b.edge(between, byte, byte, to, flags)
