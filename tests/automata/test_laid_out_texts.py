"""Frames of texts that are laid out on arrays are those that are built piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata import patterns
from structgen.automata.frames import (
    COUNT,
    END,
    EXTRA,
    ROOM,
    Frame,
    FrameBuilder,
)
from structgen.regex import ByteDfa, Dfa, bounded, distances, search, to_bytes

DFAS = [
    search(pattern, "ecma")
    for pattern in (
        "^[a-c]*$", "^é{2,}$", "ab|ba", "^(😀|aaé)+b$", '^"+\\\\$', "^[^a]*a[^a]*$", "\n", "",
        "^(?:\\S+\\s+){0,3}\\S+$", "^[\\u0000-\\u00ff]{3}x", "^\\p{Lu}", "^(a{9}){0,9}b$",
    )
]  # fmt: skip


def order(automaton: ByteDfa) -> list[int]:
    """States as they come: those inside of characters before the first one that they lead to."""
    n, first = automaton.characters, {state: state for state in range(automaton.characters)}
    for state in range(n, len(automaton)):
        first[state] = min(first[to] for _, _, to, _ in automaton.edges[state])
    # What leads to a state comes before it, except that nothing comes before the first one.
    return sorted(first, key=lambda state: (max(first[state], state >= n), state < n, -state))


def built(automaton: ByteDfa, left: tuple[int, ...] | None) -> tuple[Frame, int]:
    """What `_quoted` makes, edge by edge."""
    needs = list(left or [0] * automaton.characters)
    for state in range(automaton.characters, len(automaton)):
        needs.append(min(needs[to] for _, _, to, _ in automaton.edges[state]))
    b = FrameBuilder("pattern")
    b.literal(b'"')
    numbers = {state: b.state() for state in order(automaton)}
    closed = b.state(accept=True)
    most = 0
    # Rows are laid out in the order in which their states get edges.
    for state, number in numbers.items():
        for first, last, to, begins in automaton.edges[state]:
            units = (begins + needs[to] - needs[state]) if left is not None else 0
            most = max(most, units)
            flags = ROOM + COUNT + EXTRA * (units - 1) if units else 0
            b.edge(number, first, last, numbers[to], flags)
        if automaton.accepting[state]:
            b.edge(number, 0x22, 0x22, closed, END * (left is not None))
    widest = max(sum(last - first + 1 for first, last, _, _ in row) for row in automaton.edges)
    slack = max(needs) or None
    wide = widest > patterns.WIDE_EDGES and len(automaton) <= patterns.MOST_WIDE
    return b.frame(loop=-1 if left is None else numbers[0], wide=wide, slack=slack), most


@settings(deadline=None)
@given(
    st.sampled_from(DFAS), st.integers(0, 3), st.none() | st.integers(3, 9), st.sampled_from("lcn")
)
def test_laid_out_is_built(dfa: Dfa, least: int, most: int | None, kind: str) -> None:
    dfa = bounded(dfa, least, most)
    if not dfa.accepting:
        return
    automaton = to_bytes(dfa, "json")
    left = {"l": distances(dfa), "c": (0,) * len(dfa), "n": None}[kind]
    made, units = patterns._quoted(automaton, left)  # pyright: ignore[reportPrivateUsage]
    expected, most_units = built(automaton, left)
    assert units == most_units
    for name in ("states", "table", "classes"):
        found, wanted = getattr(made, name), getattr(expected, name)
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted), name
    assert (made.name, len(made.calls), made.digest) == ("pattern", 0, expected.digest)
    assert (made.slack, made.max_tokens) == (expected.slack, None)


@pytest.mark.parametrize("count", [126, 127, 128, 300])
def test_moves_that_take_too_many_units_are_told(count: int) -> None:
    dfa = search(f"^(a{{{count}}})*$", "ecma")
    _, units = patterns._quoted(to_bytes(dfa, "json"), distances(dfa))  # pyright: ignore[reportPrivateUsage]
    assert units == count
