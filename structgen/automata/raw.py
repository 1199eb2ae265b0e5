"""Frames of what is not JSON: free text, and parts that stand one behind another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from structgen.automata.calls import NO_LIMIT, Call
from structgen.automata.frames import COUNT, ROOM, Frame, FrameBuilder
from structgen.automata.patterns import WIDE_EDGES
from structgen.automata.structures import Target
from structgen.regex import ByteDfa, Dfa, all_accepting, to_bytes
from structgen.schema.nodes import Raw, String
from structgen.schema.raw import endings, has_lengths, within

MOST_WIDE = 64
"""Masks of the inside of a text are kept for each state, megabytes each: not for long automata."""


def raw_frames(node: Raw) -> list[tuple[Frame, int, tuple[str, ...]]]:
    """The ways to write free text: frame, room, and the stop strings of which one follows."""
    return [
        (replace(frame, max_tokens=node.max_tokens), room, stops)
        for frame, room, stops in _frames(replace(node, max_tokens=None))
    ]


@lru_cache(maxsize=256)
def _frames(node: Raw) -> tuple[tuple[Frame, int, tuple[str, ...]], ...]:
    return tuple(
        (*_content_frame(ending.content, node.content), ending.stops)
        for ending in endings(node)
        if has_lengths(ending.content, node.content)
    )


def _content_frame(dfa: Dfa, node: String) -> tuple[Frame, int]:
    """The frame of a text and its room, which counts characters where it may end after each."""
    is_counted = node.min_length == 0 and node.max_length is not None and all_accepting(dfa)
    if is_counted:
        frame = _written(to_bytes(dfa, "raw"), counted=True)
        return frame, min(node.max_length or 0, NO_LIMIT)
    return _written(to_bytes(within(dfa, node), "raw"), counted=False), NO_LIMIT


def _written(automaton: ByteDfa, *, counted: bool) -> Frame:
    """The texts of an automaton; a counted unit is taken at a character's first byte."""
    b = FrameBuilder("text")
    widest = 0
    for accepting in automaton.accepting:
        b.state(accept=accepting)
    for state, edges in enumerate(automaton.edges):
        for first, last, to, begins in edges:
            b.edge(state, first, last, to, (ROOM | COUNT) * (counted and begins))
        widest = max(widest, sum(last - first + 1 for first, last, _, _ in edges))
    is_wide = widest > WIDE_EDGES and automaton.characters <= MOST_WIDE
    return b.frame(loop=0 if counted else -1, chars=counted, wide=is_wide)


def stopped_frame(ways: Sequence[tuple[Target, Sequence[bytes]]]) -> Frame:
    """Free text and then a stop string; each way is (text, the stop strings behind it)."""
    b = FrameBuilder("stopped text")
    start = b.state()
    end = b.state(accept=True)
    for (callee, a, room), stops in ways:
        behind = b.state()
        b.add_call(start, Call(callee, behind, a, room))
        _add_texts(b, behind, end, stops)
    return b.frame()


def _add_texts(b: FrameBuilder, start: int, end: int, texts: Sequence[bytes]) -> None:
    """Let `start` read any of the texts, none of which begins another, and go to `end`.

    Not as labels: these states are walked into from every character of the text, and of a label
    it takes longer to find that a byte is refused.
    """
    states = {b"": start}
    for text in texts:
        for at in range(1, len(text) + 1):
            if text[:at] not in states:
                to = states[text[:at]] = b.state() if at < len(text) else end
                b.edge(states[text[: at - 1]], text[at - 1], text[at - 1], to)


def sequence_frame(parts: Sequence[bytes | Sequence[Target]]) -> Frame:
    """Constant texts and calls, each behind the one before."""
    b = FrameBuilder("sequence")
    for part in parts:
        if isinstance(part, bytes):
            b.literal(part)
        else:
            b.call(part)
    b.state(accept=True)
    return b.frame()
