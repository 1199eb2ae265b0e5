"""Frames of strings whose text a regular expression restricts.

Each character is written in one way only, as `json.dumps` does: the automaton of a pattern is over
characters, and every spelling of each would multiply it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import COUNT, END, EXTRA, MOST_EXTRA, ROOM, Frame, FrameBuilder
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

Longs: TypeAlias = npt.NDArray[np.int64]

UNIT = ROOM | COUNT
MOST_BYTES_INSIDE = 5
r"""Bytes of a character behind its first one: those of `\u001f`."""
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
    return _quoted(automaton, np.zeros(len(automaton), np.int64))


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
    left = _left(automaton, distances(dfa))
    if _units(automaton, left).max(initial=0) > MOST_EXTRA:
        return None
    return _quoted(automaton, left), int(left[0])


def _left(automaton: ByteDfa, distances: tuple[int, ...]) -> Longs:
    """int64[S], the fewest characters to an end: inside of one, those after it."""
    found = np.full(len(automaton), NO_LIMIT, np.int64)
    found[: len(distances)] = distances
    _to_least(automaton, found)
    return found


def _units(automaton: ByteDfa, left: Longs) -> Longs:
    """int64[E], the room that each move takes: one, and what it makes the shortest way longer."""
    state, to = automaton.moves[:, 0], automaton.moves[:, 3]
    return (state < automaton.characters) + left[to] - left[state]


def _order(automaton: ByteDfa) -> Longs:
    """int64[S], new numbers of the states: those inside of characters stand before what they reach.

    The costs of a frame are worked out from its last state to its first one, so a text is gone
    through once, not once for each of its characters. The first state stays the first.
    """
    reached = np.full(len(automaton), len(automaton), np.int64)
    reached[: automaton.characters] = np.arange(automaton.characters)
    _to_least(automaton, reached)
    inside = np.arange(len(automaton)) >= automaton.characters
    order = np.lexsort((-np.arange(len(automaton)), np.maximum(2 * reached - inside, inside)))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return numbers


def _to_least(automaton: ByteDfa, values: Longs) -> None:
    """Bring the values of states inside of characters down to the least of what they lead to."""
    inside = automaton.moves[automaton.moves[:, 0] >= automaton.characters]
    if not len(inside):
        return
    # The moves of a state stand together, and every state inside of a character has some.
    first = np.flatnonzero(np.diff(inside[:, 0], prepend=-1))
    states, targets = inside[first, 0], inside[:, 3]
    for _ in range(MOST_BYTES_INSIDE):
        least = np.minimum.reduceat(values[targets], first)
        values[states] = np.minimum(values[states], least)


def _quoted(automaton: ByteDfa, left: Longs | None) -> Frame:
    """Quotes around the texts of `automaton`.

    Args:
        left: for each state the characters that the shortest way to an end takes, as far as they
            are kept free; None where characters are not counted.
    """
    b = FrameBuilder("pattern")
    b.literal(b'"')
    inside = b.states(len(automaton))
    closed = b.state(accept=True)
    numbers = inside + _order(automaton)
    state, first, last, to = automaton.moves.T
    edges = np.zeros((len(state), 5), np.int32)
    edges[:, :4] = np.stack([numbers[state], first, last, numbers[to]], axis=1)
    if left is not None:
        units = _units(automaton, left)
        edges[:, 4] = np.where(units > 0, UNIT | EXTRA * (units - 1), 0)
    ends = np.flatnonzero(automaton.accepting)
    quotes = np.full((len(ends), 5), 0x22, np.int32)
    quotes[:, 0] = numbers[ends]
    quotes[:, 3:] = closed, END * (left is not None)
    b.edges(np.concatenate([edges, quotes]))
    widest = np.bincount(state, last - first + 1).max(initial=0)
    wide = bool(widest > WIDE_EDGES) and len(automaton) <= MOST_WIDE
    slack = None if left is None else int(left.max(initial=0)) or None
    return b.frame(loop=-1 if left is None else inside, wide=wide, slack=slack)
