"""No pattern may take long or much memory, however it is built."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from structgen import regex

ENDS_QUICKLY = [
    "(a|a)*b{1000}", "(a*)*b", "(x+x+)+y", "^(a?){1000}$", "^((a|b)?c?){300}$", "a.{1,1000}b",
    r"^(\w+\s?){1,100}$", "^((a{0,10}b?){0,10}c?){0,10}$", "(?:.*a){20}", ".*.*.*.*.*.*x",
    "^.{3,1000}", "^(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[a-zA-Z0-9]{8,64}$",
    "^(?!-)[a-z-]{1,63}(?<!-)$",
    r"^https?:\/\/(www\.)?[-a-zA-Z0-9@:%._\+~#=]{1,256}\.[a-zA-Z0-9()]{1,6}\b([-a-zA-Z0-9()@:%]*)$",
    "^(" + "|".join(f"word{n}" for n in range(1500)) + ")$", "^((?!foo|bar).){0,200}$",
]  # fmt: skip
TOO_LARGE = [
    "(.{1,1000}){1,1000}", "((a{1,100}){1,100}){1,100}", "[01]*1[01]{30}", "^[01]*1[01]{30}$",
    "^.{0,100000000}$", "^(?=.*[01]*1[01]{30}).*$", "(((((((a{9}){9}){9}){9}){9}){9}){9}){9}",
    "^(?=.*a.{0,50}b)(?=.*c.{0,50}d)(?=.*e.{0,50}f).*$", "a{9999}{9999}{9999}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ENDS_QUICKLY, ids=lambda pattern: pattern[:30])
def test_patterns_that_are_hard_elsewhere_end_quickly(pattern: str):
    start = time.process_time()
    regex.to_bytes(regex.search(pattern, "ecma"), "json")
    assert time.process_time() - start < 3


@pytest.mark.parametrize("pattern", TOO_LARGE, ids=lambda pattern: pattern[:30])
def test_patterns_beyond_the_limit_are_refused_quickly(pattern: str):
    start = time.process_time()
    with pytest.raises(regex.PatternTooLarge):
        regex.search(pattern, "rust" if "(?" not in pattern else "ecma")
    assert time.process_time() - start < 6


def test_a_refused_pattern_takes_little_memory():
    tracemalloc.start()
    with pytest.raises(regex.PatternTooLarge):
        regex.search("^[01]*1[01]{30}$", "ecma")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6


@pytest.mark.parametrize(
    "pattern", ["(" * 2000, "(?:" * 101 + ")" * 101, "a" + "*" * 500, "[a" * 300, "(?i:" * 500]
)
def test_deep_nesting_is_refused(pattern: str):
    with pytest.raises(regex.PatternError, match=r"more than 100|not closed"):
        regex.search(pattern, "rust")


def test_nesting_within_the_limit_is_read():
    pattern = "^" + "(?:a|" * 100 + "b" + ")*" * 100 + "$"
    assert regex.matches(regex.search(pattern, "ecma"), "abba")


def test_limits_are_those_of_the_caller():
    assert len(regex.search("^a{50}$", "ecma", limit=60)) == 51
    with pytest.raises(regex.PatternTooLarge, match="60 states"):
        regex.search("^a{100}$", "ecma", limit=60)
    a, b = regex.lengths(0, 200), regex.search("^(aaa)*$", "ecma")
    with pytest.raises(regex.PatternTooLarge):
        regex.intersect(a, b, limit=60)
    with pytest.raises(regex.PatternTooLarge):
        regex.bounded(b, 0, 10**9)


def test_thousands_of_words_are_quick():
    start = time.process_time()
    dfa = regex.literals(f"item number {n * 7919 % 100_003}" for n in range(5000))
    assert regex.finite_size(dfa, 5000) == 5000
    assert time.process_time() - start < 3
