"""Frames of strings whose text a regular expression restricts.

Each character is written in one way only, as `json.dumps` does: the automaton of a pattern is over
characters, and every spelling of each would multiply it.
"""

from __future__ import annotations

from structgen.automata.frames import (
    COUNT,
    END,
    EXTRA,
    MOST_EXTRA,
    NO_LIMIT,
    ROOM,
    Frame,
    FrameBuilder,
)
from structgen.regex import (
    ByteDfa,
    all_accepting,
    distances,
    endless,
    remembered,
    to_bytes,
)
from structgen.schema.nodes import Pattern, String
from structgen.schema.strings import content_dfa, string_dfa

UNIT = ROOM | COUNT
MOST_BYTES = 64 * 2**20
"""Frames of each kind that are remembered."""
WIDE_EDGES = 48
"""A state that reads more different bytes than this is taken as the inside of free text."""
MOST_WIDE = 200
"""In a frame with more states than this few are met twice: their masks are not kept apart."""


def pattern_frame(node: String) -> tuple[Frame, int, int]:
    """The frame of a JSON string with patterns or exclusions, and its first registers.

    The registers count the characters, so that a long text costs no more states than a short one.
    """
    dfa = content_dfa(node.patterns, node.excluded)
    # One needed character is measured exactly in every state; more would be an estimate.
    counts_least = node.min_length == 0 or (node.min_length == 1 and endless(dfa))
    if counts_least and (node.max_length is None or all_accepting(dfa)):
        room = NO_LIMIT if node.max_length is None else min(node.max_length, NO_LIMIT)
        return _counted_frame(node.patterns, node.excluded), node.min_length, room
    least = String(node.min_length, None, node.patterns, excluded=node.excluded)
    if node.max_length is None:
        return _unrolled_frame(least), 0, NO_LIMIT
    found = _spare_frame(least)
    if found is None:
        return _unrolled_frame(node), 0, NO_LIMIT
    frame, shortest = found
    return frame, 0, min(node.max_length - shortest, NO_LIMIT)


def _frame_size(frame: Frame) -> int:
    return frame.states.nbytes + frame.table.nbytes


def _spare_size(found: tuple[Frame, int] | None) -> int:
    return _frame_size(found[0]) if found else 1


@remembered(_frame_size, capacity=MOST_BYTES)
def _counted_frame(patterns: tuple[Pattern, ...], excluded: tuple[str, ...]) -> Frame:
    """Texts that may end wherever they are long enough: every character takes a unit of room."""
    automaton = to_bytes(content_dfa(patterns, excluded), "json")
    return _quoted(automaton, [0] * len(automaton.edges))


@remembered(_frame_size, capacity=MOST_BYTES)
def _unrolled_frame(node: String) -> Frame:
    """Texts whose lengths are states of the automaton."""
    return _quoted(to_bytes(string_dfa(node), "json"), None)


@remembered(_spare_size, capacity=MOST_BYTES)
def _spare_frame(node: String) -> tuple[Frame, int] | None:
    """Texts that need some characters more to end well, and the fewest of them at the start.

    What is left of the longest text is more than what the shortest way to an end takes: the room
    is the difference. An edge takes one unit and as many as it makes that way longer, so that the
    shortest way itself is free and never closed. None where an edge would take too many.
    """
    dfa = string_dfa(node)
    automaton = to_bytes(dfa, "json")
    left = distances(dfa)
    for edges in automaton.edges[automaton.characters :]:  # each stands behind all it leads to
        left.append(min(left[to] for _, _, to, _ in edges))
    units = (
        begins + left[to] - left[state]
        for state, edges in enumerate(automaton.edges)
        for _, _, to, begins in edges
    )
    if max(units, default=0) > MOST_EXTRA:
        return None
    return _quoted(automaton, left), left[0]


def _quoted(automaton: ByteDfa, left: list[int] | None) -> Frame:
    """Quotes around the texts of `automaton`.

    Args:
        left: for each state the characters that the shortest way to an end takes, as far as they
            are kept free; None where characters are not counted.
    """
    b = FrameBuilder("pattern")
    b.literal(b'"')
    inside = b.next_state
    for _ in automaton.edges:
        b.state()
    closed = b.state(accept=True)
    widest = 0
    for state, edges in enumerate(automaton.edges):
        for first, last, to, begins in edges:
            units = begins + left[to] - left[state] if left else 0
            flags = UNIT | EXTRA * (units - 1) if units else 0
            b.edge(inside + state, first, last, inside + to, flags)
        if automaton.accepting[state]:
            b.edge(inside + state, 0x22, 0x22, closed, END * (left is not None))
        widest = max(widest, sum(last - first + 1 for first, last, _, _ in edges))
    slack = max(left, default=0) if left else 0
    wide = widest > WIDE_EDGES and len(automaton.edges) <= MOST_WIDE
    return b.frame(loop=-1 if left is None else inside, wide=wide, slack=slack or None)
