"""Frames of strings whose text a regular expression restricts.

Each character is written in one way only, as `json.dumps` does: the automaton of a pattern is over
characters, and every spelling of each would multiply it.
"""

from __future__ import annotations

from functools import lru_cache

from structgen.automata.frames import COUNT, END, NO_LIMIT, ROOM, Frame, FrameBuilder
from structgen.regex import ByteDfa, Dfa, all_accepting, endless, to_bytes
from structgen.schema.nodes import String
from structgen.schema.strings import content_dfa, string_dfa

WIDE_EDGES = 48
"""A state that reads more different bytes than this is taken as the inside of free text."""


@lru_cache(maxsize=256)
def pattern_frame(node: String) -> tuple[Frame, int, int]:
    """The frame of a JSON string with patterns or exclusions, and its first registers.

    Where lengths and pattern cannot contradict each other the registers count the characters, so
    that a long text costs no more states than a short one.
    """
    dfa = content_dfa(node.patterns, node.excluded)
    if _can_count(dfa, node):
        room = NO_LIMIT if node.max_length is None else min(node.max_length, NO_LIMIT)
        return _quoted(to_bytes(dfa, "json"), counted=True), node.min_length, room
    return _quoted(to_bytes(string_dfa(node), "json"), counted=False), 0, NO_LIMIT


def _can_count(dfa: Dfa, node: String) -> bool:
    """Whether every text can end as soon as it is long enough, and grow until then."""
    may_end = node.max_length is None or all_accepting(dfa)
    # One needed character is measured exactly in every state; more would be an estimate.
    may_grow = node.min_length == 0 or (node.min_length == 1 and endless(dfa))
    return may_end and may_grow


def _quoted(automaton: ByteDfa, *, counted: bool) -> Frame:
    """Quotes around the texts of `automaton`; a counted unit is taken at a character's start."""
    b = FrameBuilder("pattern")
    b.literal(b'"')
    inside = b.next_state
    for _ in automaton.edges:
        b.state()
    closed = b.state(accept=True)
    widest = 0
    for state, edges in enumerate(automaton.edges):
        for first, last, to, begins in edges:
            b.edge(inside + state, first, last, inside + to, (ROOM | COUNT) * (counted and begins))
        if automaton.accepting[state]:
            b.edge(inside + state, 0x22, 0x22, closed, END * counted)
        widest = max(widest, sum(last - first + 1 for first, last, _, _ in edges))
    return b.frame(loop=inside if counted else -1, wide=widest > WIDE_EDGES)
