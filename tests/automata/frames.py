"""Reading a single frame byte by byte, without kernels."""

from __future__ import annotations

from structgen.automata.frames import (
    ACCEPT,
    CHAIN,
    COUNT,
    END,
    FLAG_BITS,
    FLAGS,
    NO_LIMIT,
    ROOM,
    ROW,
    Frame,
)


def accepts(frame: Frame, text: bytes, need: int = 0, room: int = NO_LIMIT) -> bool:
    """Whether a frame that calls no others reads exactly `text`."""
    state = 0
    for byte in text:
        after = _step(frame, state, byte, need, room)
        if after is None:
            return False
        state, flags = after
        if flags & COUNT:
            need, room = max(need - 1, 0), room - 1
    return bool(frame.states[state, FLAGS] & ACCEPT)


def _step(frame: Frame, state: int, byte: int, need: int, room: int) -> tuple[int, int] | None:
    chain, row = int(frame.states[state, CHAIN]), int(frame.states[state, ROW])
    if chain >= 0:
        return (state + 1, 0) if chain == byte else None
    entry = int(frame.table[row + int(frame.classes[byte])]) if row >= 0 else -1
    flags = entry & ((1 << FLAG_BITS) - 1)
    refused = entry < 0 or (flags & ROOM and room == 0) or (flags & END and need > 0)
    return None if refused else (entry >> FLAG_BITS, flags)
