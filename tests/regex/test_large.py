"""What is done on arrays for large automata is what is done state by state for small ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import regex
from structgen.regex import algebra, copies, minimise, refine, utf8
from structgen.regex.charsets import CharSet
from structgen.regex.dfa import Arc, letter_table
from structgen.regex.limits import Meter
from structgen.regex.refine import product, smallest

LETTERS: tuple[CharSet, ...] = (
    ((0x61, 0x61),),
    ((0x22, 0x22), (0x5C, 0x5C), (0xE9, 0x7FF)),
    ((0x0, 0x21), (0x23, 0x5B), (0x5D, 0x60), (0x62, 0xE8), (0x800, 0xD7FF), (0xE000, 0x10FFFF)),
)


@st.composite
def automata(draw: st.DrawFn) -> tuple[list[list[Arc]], list[int]]:
    """Moves and accepting states, some of them useless or alike."""
    n = draw(st.integers(1, 12))
    targets = st.lists(st.integers(-1, n - 1), min_size=3, max_size=3)
    rows: list[list[Arc]] = []
    for _ in range(n):
        masks: dict[int, int] = {}
        for letter, to in enumerate(draw(targets)):
            if to >= 0:
                masks[to] = masks.get(to, 0) | 1 << letter
        rows.append([(mask, to) for to, mask in masks.items()])
    return rows, draw(st.lists(st.integers(0, n - 1), unique=True))


@settings(deadline=None)
@given(automata())
def test_the_smallest_automaton(made: tuple[list[list[Arc]], list[int]]) -> None:
    rows, accepting = made
    by_state = minimise._minimal(LETTERS, rows, accepting)  # pyright: ignore[reportPrivateUsage]
    found = minimise.from_table(LETTERS, smallest(rows, 3, accepting))
    assert found == by_state
    assert np.array_equal(found.table, letter_table(found.arcs, len(found.letters)))


@given(st.lists(st.lists(st.integers(-1, 5), min_size=4, max_size=4), min_size=1))
def test_arcs_of_a_table(rows: list[list[int]]) -> None:
    table = np.array(rows, np.int32)
    by_letter = refine._many_letters(table)  # pyright: ignore[reportPrivateUsage]
    assert refine._few_letters(table) == by_letter  # pyright: ignore[reportPrivateUsage]


@given(st.lists(st.integers(-2, 9), min_size=1))
def test_ranks(keys: list[int]) -> None:
    index, number = copies._ranked(np.array(keys, np.int64))  # pyright: ignore[reportPrivateUsage]
    values = sorted(set(keys))
    assert index.tolist() == [keys.index(value) for value in values]
    assert number.tolist() == [values.index(key) for key in keys]


@settings(deadline=None)
@given(automata(), automata())
def test_what_two_have_in_common(
    a: tuple[list[list[Arc]], list[int]], b: tuple[list[list[Arc]], list[int]]
) -> None:
    left, right = (a[0], frozenset(a[1])), (b[0], frozenset(b[1]))
    by_pair = algebra._intersect(LETTERS, left, right, Meter(1000))  # pyright: ignore[reportPrivateUsage]
    first = (letter_table(left[0], 3), left[1])
    second = (letter_table(right[0], 3), right[1])
    assert minimise.from_table(LETTERS, product(first, second, Meter(1000))) == by_pair


def test_a_product_stops_at_its_limit() -> None:
    long, short = regex.search("^(a{70})*$", "ecma"), regex.search("^(a{71})*$", "ecma")
    assert len(regex.intersect(long, short)) == 70 * 71
    assert len(regex.intersect(long, short, limit=70 * 71)) == 70 * 71
    with pytest.raises(regex.PatternTooLarge):
        regex.intersect(long, short, limit=70 * 71 - 1)


def texts(automaton: regex.ByteDfa) -> tuple[object, ...]:
    """The automaton with its states numbered in the order in which they are reached."""
    numbers = {0: 0}
    order = [0]
    rows: list[list[tuple[int, int, int, bool]]] = []
    for state in order:  # grows while it is read
        row: list[tuple[int, int, int, bool]] = []
        for first, last, to, begins in automaton.edges[state]:
            if to not in numbers:
                numbers[to] = len(order)
                order.append(to)
            row.append((first, last, numbers[to], begins))
        rows.append(row)
    return rows, [bool(automaton.accepting[state]) for state in order]


@pytest.mark.parametrize("encoding", ["json", "raw"])
@settings(deadline=None)
@given(made=automata())
def test_the_bytes_of_many_states(
    encoding: utf8.Encoding, made: tuple[list[list[Arc]], list[int]]
) -> None:
    dfa = minimise.minimal(LETTERS, *made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utf8, "FEW_STATES", 0)
        layered = regex.to_bytes(dfa, encoding)
        patch.setattr(utf8, "FEW_STATES", 10**9)
        patch.setattr(utf8, "FEW_COPIES", 10**9)
        by_state = regex.to_bytes(dfa, encoding)
        patch.setattr(utf8, "FEW_COPIES", 0)
        together = regex.to_bytes(dfa, encoding)
    for found in (together, layered):
        assert texts(found) == texts(by_state)
        assert len(found) == len(by_state)
        assert np.all(np.diff(found.moves[:, 0].astype(np.int64) << 8 | found.moves[:, 1]) > 0)
        inside = found.moves[found.moves[:, 0] >= found.characters]
        assert np.all(inside[:, 3] < inside[:, 0])
