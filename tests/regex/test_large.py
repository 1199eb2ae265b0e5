"""What is done on arrays for large automata is what is done state by state for small ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import regex
from structgen.regex import algebra, minimise, tables, utf8
from structgen.regex.charsets import CharSet
from structgen.regex.limits import Meter
from structgen.regex.refine import Table, product, smallest
from structgen.regex.tables import Arc, flags, letter_table

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
    table = np.array(rows, np.int32).T.copy()
    arcs = tables.arcs_of(table)
    assert tables._many_letters(table) == arcs  # pyright: ignore[reportPrivateUsage]
    assert np.array_equal(letter_table(arcs, 4), table)
    assert np.array_equal(tables._wide_table(arcs, 4), table)  # pyright: ignore[reportPrivateUsage]


@settings(deadline=None)
@given(automata())
def test_an_automaton_of_a_table(made: tuple[list[list[Arc]], list[int]]) -> None:
    by_state = minimise._minimal(LETTERS, *made)  # pyright: ignore[reportPrivateUsage]
    found = regex.Dfa.of_table(by_state.letters, by_state.table, by_state.accepting)
    assert found.left == by_state.left
    assert "arcs" not in vars(found)
    assert regex.dfa_size(found) > 0
    assert (len(found), hash(found)) == (len(by_state), hash(by_state))
    assert found == by_state
    assert found.arcs == by_state.arcs
    assert found != (regex.complement(found))


@settings(deadline=None)
@given(automata(), automata())
def test_what_two_have_in_common(
    a: tuple[list[list[Arc]], list[int]], b: tuple[list[list[Arc]], list[int]]
) -> None:
    left, right = (a[0], frozenset(a[1])), (b[0], frozenset(b[1]))
    by_pair = algebra._intersect(LETTERS, left, right, Meter(1000))  # pyright: ignore[reportPrivateUsage]
    first, second = as_table(*a), as_table(*b)
    assert minimise.from_table(LETTERS, product(first, second, Meter(1000))) == by_pair


def as_table(rows: list[list[Arc]], accepting: list[int]) -> Table:
    return letter_table(rows, 3), flags(accepting, len(rows)), np.arange(3, dtype=np.int32)


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


def copied(dfa: regex.Dfa, encoding: utf8.Encoding) -> regex.ByteDfa:
    """What `to_bytes` makes, state by state."""
    shapes = utf8._Shapes(dfa.letters, escaped=encoding == "json")  # pyright: ignore[reportPrivateUsage]
    rows: list[list[tuple[int, int, int]]] = [[] for _ in dfa.arcs]
    numbers: dict[tuple[tuple[int, int, int], ...], int] = {}

    def copy(node: int, targets: list[int]) -> int:
        moves = tuple((first, last, reached(to, targets)) for first, last, to in shapes.nodes[node])
        number = numbers.setdefault(moves, len(rows))
        if number == len(rows):
            rows.append(list(moves))
        return number

    def reached(to: int, targets: list[int]) -> int:
        return targets[~to] if to < 0 else copy(to, targets)

    for state, arcs in enumerate(dfa.arcs):
        shape = shapes.shape(tuple(mask for mask, _ in arcs))
        targets = [to for _, to in arcs]
        rows[state] = [(first, last, reached(to, targets)) for first, last, to in shape]
    moves = [(state, *edge) for state, edges in enumerate(rows) for edge in edges]
    accepting = flags(dfa.accepting, len(rows))
    return regex.ByteDfa(np.array(moves, np.int32).reshape(-1, 4), accepting, len(dfa))


@pytest.mark.parametrize("encoding", ["json", "raw"])
@settings(deadline=None)
@given(made=automata())
def test_the_bytes_of_many_states(
    encoding: utf8.Encoding, made: tuple[list[list[Arc]], list[int]]
) -> None:
    dfa = minimise.minimal(LETTERS, *made)
    expected = copied(dfa, encoding)
    for few_states in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(utf8, "FEW_STATES", few_states)
            found = regex.to_bytes(dfa, encoding)
        assert texts(found) == texts(expected)
        assert len(found) == len(expected)
        assert np.all(np.diff(found.moves[:, 0].astype(np.int64) << 8 | found.moves[:, 1]) > 0)
        inside = found.moves[found.moves[:, 0] >= found.characters]
        assert np.all(inside[:, 3] < inside[:, 0])
