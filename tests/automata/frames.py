"""Reading a single frame byte by byte, without kernels."""

from __future__ import annotations

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import (
    ACCEPT,
    CHAIN,
    COUNT,
    END,
    EXTRA,
    FLAG_BITS,
    FLAGS,
    ROOM,
    ROW,
    Frame,
)


def accepts(frame: Frame, text: bytes, need: int = 0, room: int = NO_LIMIT) -> bool:
    """Whether a frame that calls no others reads exactly `text`."""
    state = 0
    for byte in text:
        after = step(frame, state, byte, need, room)
        if after is None:
            return False
        state, need, room = after
    return bool(frame.states[state, FLAGS] & ACCEPT)


def step(frame: Frame, state: int, byte: int, need: int, room: int) -> tuple[int, int, int] | None:
    """(state, need, room) after one byte, None where it is not legal."""
    chain, row = int(frame.states[state, CHAIN]), int(frame.states[state, ROW])
    if chain >= 0:
        return (state + 1, need, room) if chain == byte else None
    entry = int(frame.table[row + int(frame.classes[byte])]) if row >= 0 else -1
    flags = entry & ((1 << FLAG_BITS) - 1)
    units = 1 + flags // EXTRA
    if entry < 0 or (flags & ROOM and room < units) or (flags & END and need > 0):
        return None
    if flags & COUNT:
        need, room = max(need - 1, 0), room if room == NO_LIMIT else room - units
    return entry >> FLAG_BITS, need, room
