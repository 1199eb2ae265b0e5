"""Operations on automata against sets of enumerated texts."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import regex

CHARS = "ab€"
TEXTS = ["".join(text) for size in range(5) for text in itertools.product(CHARS, repeat=size)]
PATTERNS = [
    "^a*$",
    "b",
    "^(ab)*€?$",
    "a$",
    "^.{2,3}$",
    "[]",
    "",
    "^(a|ba){1,2}$",
    "^b(?!a)",
    "€.*b",
]


def language(dfa: regex.Dfa) -> set[str]:
    return {text for text in TEXTS if regex.matches(dfa, text)}


def automata() -> st.SearchStrategy[regex.Dfa]:
    found = st.sampled_from(PATTERNS).map(lambda pattern: regex.search(pattern, "ecma"))
    words = st.lists(st.text(CHARS, max_size=4), max_size=6).map(regex.literals)
    return st.recursive(
        found | words,
        lambda inner: st.one_of(
            inner.map(regex.complement),
            st.tuples(inner, inner).map(lambda pair: regex.union(*pair)),
            st.tuples(inner, inner).map(lambda pair: regex.intersect(*pair)),
        ),
        max_leaves=3,
    )


@settings(max_examples=150, deadline=None)
@given(automata(), automata())
def test_boolean_operations_are_those_on_sets(a: regex.Dfa, b: regex.Dfa):
    in_a, in_b = language(a), language(b)
    assert language(regex.intersect(a, b)) == in_a & in_b
    assert language(regex.union(a, b)) == in_a | in_b
    assert language(regex.complement(a)) == set(TEXTS) - in_a
    assert regex.is_empty(regex.intersect(a, regex.complement(a)))


@settings(max_examples=150, deadline=None)
@given(automata())
def test_an_automaton_is_smallest_and_trimmed(a: regex.Dfa):
    twice = regex.complement(regex.complement(a))
    assert len(twice) == len(a)
    assert regex.union(a, a).edges == twice.edges == a.edges
    if not regex.is_empty(a):
        assert min(regex.distances(a)) == 0
    for row in a.edges:
        for (_, last, _), (first, _, _) in itertools.pairwise(row):
            assert last < first
        assert not any(first <= 0xDFFF and last >= 0xD800 for first, last, _ in row)


@settings(max_examples=100, deadline=None)
@given(automata(), st.integers(0, 4), st.none() | st.integers(0, 4))
def test_bounds_cut_by_length(a: regex.Dfa, least: int, most: int | None):
    expected = {t for t in language(a) if len(t) >= least and (most is None or len(t) <= most)}
    assert language(regex.bounded(a, least, most)) == expected


@settings(max_examples=100, deadline=None)
@given(automata())
def test_questions_are_answered_as_by_enumeration(a: regex.Dfa):
    accepted = language(a)
    short = regex.shortest(a)
    assert (short is None) == regex.is_empty(a)
    if short is not None:
        assert regex.matches(a, short)
        assert len(short) == regex.distances(a)[0]
        assert len(short) <= min(map(len, accepted), default=len(short))
    count = regex.finite_size(a, 1000)
    if count is not None:
        texts = regex.strings(a, 1000)
        assert len(texts) == len(set(texts)) == count
        assert texts == sorted(texts)
        assert accepted <= set(texts)
        assert all(regex.matches(a, text) for text in texts)


@given(st.lists(st.text(max_size=8), max_size=20))
def test_literals_are_a_set(words: list[str]):
    dfa = regex.literals(words)
    assert regex.strings(dfa, 100) == sorted(set(words))


def test_literals_leave_out_lone_surrogates():
    assert regex.strings(regex.literals(["a", "\ud800"]), 5) == ["a"]
    assert not regex.matches(regex.complement(regex.literals([])), "\ud800")


def test_infinite_and_large_languages_have_no_size():
    assert regex.finite_size(regex.search("^a*$", "ecma"), 10**9) is None
    assert regex.finite_size(regex.full("[ab]{20}", "ecma"), 1000) is None
    assert regex.finite_size(regex.full("[ab]{20}", "ecma"), 2**20) == 2**20
    with pytest.raises(ValueError, match="more than 3"):
        regex.strings(regex.full("[a-d]", "ecma"), 3)


@pytest.mark.parametrize(
    ("pattern", "everywhere", "forever"),
    [("", True, True), ("^a*$", True, True), ("^a{0,3}$", True, False), ("^a+$", False, True),
     ("^(a*|b)$", True, False), ("a", False, True), ("[]", False, False)],
)  # fmt: skip
def test_where_a_text_may_end_and_go_on(pattern: str, everywhere: bool, forever: bool):
    dfa = regex.search(pattern, "ecma")
    assert regex.all_accepting(dfa) == everywhere
    assert regex.endless(dfa) == forever


def test_equal_languages_have_equal_automata():
    pairs = [("^(a|b)*$", "^[ab]*$"), ("^a{1,3}$", "^a(aa?)?$"), ("^(ab|ac)$", "^a[bc]$"),
             ("a|ab", "a"), ("^.{3,9}", "^..."), ("^(?!a)", "^([^a]|$)")]  # fmt: skip
    for left, right in pairs:
        assert regex.search(left, "ecma").edges == regex.search(right, "ecma").edges


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "ab?", "(a|bb)", "b*"]), st.integers(0, 2),
                          st.integers(0, 4)), min_size=1, max_size=3), st.booleans())  # fmt: skip
def test_counted_repeats_agree_with_re(parts: list[tuple[str, int, int]], nested: bool):
    pattern = "".join(f"(?:{body}){{{low},{low + more}}}" for body, low, more in parts)
    if nested:
        pattern = f"(?:{pattern}€?){{1,3}}"
    dfa = regex.full(pattern, "ecma")
    for text in TEXTS:
        assert regex.matches(dfa, text) == (re.fullmatch(pattern, text) is not None), text
