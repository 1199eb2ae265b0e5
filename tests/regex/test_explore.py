"""Shortcuts on the way to the smallest automaton: it is the same one without them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import regex
from structgen.regex import explore, nfa, superfluous
from structgen.regex.limits import Meter
from structgen.regex.nfa import Nfa, build_nfa
from structgen.regex.parser import parse
from structgen.regex.search import _compiled  # pyright: ignore[reportPrivateUsage]
from structgen.regex.syntax import NOTHING, Chain, Choice, Node, Repeat

CHARS = ["a", "b", "[ab]", "[a-c]", "[^a]", ".", r"\s", "-"]
PLACES = [r"\b", r"\B", "^", "$", "(?=a)", "(?!b)", "(?=.*c)", "(?<=a)", "(?<!b)"]


def bounds() -> st.SearchStrategy[str]:
    """Quantifiers, some of which have enough rounds to be worked out together."""
    counted = st.tuples(st.integers(0, 3), st.integers(0, 12)).map(
        lambda pair: f"{{{pair[0]},{sum(pair)}}}"
    )
    return counted | st.sampled_from(["", "?", "*", "+", "{0,9}", "{2,}"])


def patterns(leaves: list[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=4).map("".join),
            st.lists(inner, min_size=2, max_size=2).map(lambda two: f"(?:{'|'.join(two)})"),
            st.tuples(inner, bounds()).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        ),
        max_leaves=6,
    )


def anchored(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    ends = st.tuples(st.sampled_from(["^", "^", ""]), inner, st.sampled_from(["$", "$", ""]))
    return ends.map("".join)


def compiled(pattern: str) -> regex.Dfa | None:
    """The automaton, none if it is too large."""
    regex.search.cache_clear()
    try:
        return regex.search(pattern, "ecma", limit=3000)
    except regex.PatternTooLarge:
        return None


class Untouched(superfluous.Superfluous):
    """Keeps loops, and what they make superfluous."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # pyright: ignore[reportArgumentType]
        self._loops = None


@settings(deadline=None, max_examples=300)
@given(anchored(patterns(CHARS)) | anchored(patterns(CHARS + PLACES)))
def test_the_automaton_is_the_one_without_shortcuts(pattern: str) -> None:
    found = compiled(pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explore, "FEWEST_ROUNDS", 10**9)
        patch.setattr("structgen.regex.subsets.Superfluous", Untouched)
        patch.setattr("structgen.regex.threads.Superfluous", Untouched)
        slow = compiled(pattern)
    if found is not None and slow is not None:
        assert found == slow
    else:
        assert slow is None, "a shortcut takes no more room"


def written_out(node: Node) -> Node:
    """The tree without counted repeats."""
    match node:
        case Chain(parts):
            return Chain(tuple(map(written_out, parts)))
        case Choice(options):
            return Choice(tuple(map(written_out, options)))
        case Repeat(body, least, None):
            body = written_out(body)
            return Chain((*[body] * least, Repeat(body, 0, None)))
        case Repeat(body, least, int(most)):
            body = written_out(body)
            nested: Node = NOTHING
            for _ in range(most - least):
                nested = Choice((NOTHING, Chain((body, nested))))
            return Chain((*[body] * least, nested))
        case _:
            return node


@settings(deadline=None, max_examples=200)
@given(patterns(CHARS + PLACES))
def test_rounds_are_what_is_added_again(pattern: str) -> None:
    tree = parse(pattern, "ecma")
    if nfa.nfa_size(tree) > 200:
        return
    found, slow = (small_enough(node) for node in (tree, written_out(tree)))
    assert slow is None or found == slow  # written out, it may take more states on the way


def small_enough(tree: Node) -> regex.Dfa | None:
    """The automaton, None where it is too large."""
    try:
        return _compiled(tree, "ecma", Meter(20_000))
    except regex.PatternTooLarge:
        return None


def edges(made: Nfa, state: int) -> set[int]:
    conditional = [to for _, to in made.conditional.get(state, ())]
    return {*(to for _, to in made.moves[state]), *made.empty[state], *conditional}


@settings(deadline=None, max_examples=200)
@given(patterns(CHARS + PLACES))
def test_nothing_leads_back_into_repeats_that_are_worked_out_together(pattern: str) -> None:
    tree = parse(pattern, "ecma")
    if nfa.nfa_size(tree) > 400:
        return
    made = build_nfa(tree, Meter(10_000))
    for first, period, rounds in made.alike:
        stop = first + period * rounds
        for state in range(stop, len(made.moves)):
            assert min(edges(made, state), default=stop) >= stop
        for state in range(first, stop - 2 * period):
            later = {to + period if to < stop else to for to in edges(made, state)}
            assert edges(made, state + period) == later
            assert max((to for to in later if to < stop), default=0) < state + 3 * period


def test_a_state_may_not_be_dropped_where_a_loop_ends_too_late() -> None:
    dfa = regex.search("^(?:[ab]*c|a{1,20})$", "ecma")
    assert regex.matches(dfa, "a" * 20)
    assert not regex.matches(dfa, "a" * 21)
    assert regex.matches(dfa, "a" * 21 + "c")


@pytest.mark.parametrize(
    "pattern",
    [r"^[-.a-z]{1,2000}\.[a-z()]{1,6}\b([-a-z().#]*)$", r"^(?:\S+\s+){0,1000}\S+$"],
)
def test_rounds_are_worked_out_once(pattern: str) -> None:
    start = time.process_time()
    assert len(regex.search(pattern, "ecma")) > 1000
    assert time.process_time() - start < 1.5
