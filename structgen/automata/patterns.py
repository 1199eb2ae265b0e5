"""Frames of strings whose text a regular expression restricts.

Each character is written in one way only, as `json.dumps` does: the automaton of a pattern is over
characters, and every spelling of each would multiply it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import FLAGS, LOOP, MOST_EXTRA, SPARE, WIDE, Frame, content_digest
from structgen.later import later
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

if TYPE_CHECKING:
    import structgen.automata.text_kernels as text_kernels
else:
    text_kernels = later("structgen.automata.text_kernels")

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
    assert shortest <= node.max_length, "strings without any text have no frame"
    return frame, 0, min(node.max_length - shortest, NO_LIMIT)


def _frame_size(frame: Frame) -> int:
    return frame.states.nbytes + frame.table.nbytes


def _spare_size(found: tuple[Frame, int] | None) -> int:
    return _frame_size(found[0]) if found else 1


@remembered(_frame_size, capacity=MOST_BYTES)
def _counted_frame(patterns: tuple[Pattern, ...], excluded: tuple[str, ...]) -> Frame:
    """Texts that may end wherever they are long enough: every character takes a unit of room."""
    automaton = to_bytes(content_dfa(patterns, excluded), "json")
    return _quoted(automaton, (0,) * automaton.characters)[0]


@remembered(_frame_size, capacity=MOST_BYTES)
def _unrolled_frame(node: String) -> Frame:
    """Texts whose lengths are states of the automaton."""
    return _quoted(to_bytes(string_dfa(node), "json"), None)[0]


@remembered(_spare_size, capacity=MOST_BYTES)
def _spare_frame(node: String) -> tuple[Frame, int] | None:
    """Texts that need some characters more to end well, and the fewest of them at the start.

    What is left of the longest text is more than what the shortest way to an end takes: the room
    is the difference. An edge takes one unit and as many as it makes that way longer, so that the
    shortest way itself is free and never closed. None where an edge would take too many.
    """
    dfa = string_dfa(node)
    left = distances(dfa)
    frame, units = _quoted(to_bytes(dfa, "json"), left)
    return None if units > MOST_EXTRA else (frame, left[0])


def _quoted(automaton: ByteDfa, left: tuple[int, ...] | None) -> tuple[Frame, int]:
    """Quotes around the texts of `automaton`, and the most units of room that a move takes.

    Args:
        left: for each character state the characters that the shortest way to an end takes, as far
            as they are kept free; None where characters are not counted.
    """
    counts = left is not None
    kept = np.array(left, np.int64) if left else np.zeros(automaton.characters, np.int64)
    states, table, classes, widest, units = text_kernels.lay_out_text(
        automaton.moves, automaton.accepting, kept, counts
    )
    slack = int(kept.max())
    wide = widest > WIDE_EDGES and len(automaton) <= MOST_WIDE
    if wide or slack:
        states[:, FLAGS] |= WIDE * wide | SPARE * bool(slack)
    if counts:
        states[:, LOOP] = 1
    digest = content_digest(states, table, classes) if wide else ""
    return Frame("pattern", states, table, classes, digest=digest, slack=slack), units
