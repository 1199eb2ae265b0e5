"""Remembered results: the same as computed ones, within a bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.regex import PatternError, PatternTooLarge
from structgen.regex.recent import ENTRY, remembered
from tests.strategies import examples


@examples(100)
@given(st.lists(st.integers(0, 12), max_size=60), st.integers(0, 5))
def test_results_and_errors_are_those_of_the_function(numbers, n_entries):
    calls: list[int] = []

    @remembered(len, capacity=n_entries * (ENTRY + 3))
    def letters(number: int) -> str:
        calls.append(number)
        if number > 9:
            raise PatternTooLarge(f"{number} is too large")
        return "abc"[number % 3] * 3

    for number in numbers:
        if number > 9:
            with pytest.raises(PatternTooLarge, match=f"^{number} is too large$"):
                letters(number)
        else:
            assert letters(number) == "abc"[number % 3] * 3
    assert letters.used <= max(n_entries, 1) * (ENTRY + 3)
    assert letters.hits + letters.misses == len(numbers)
    assert letters.misses == len(calls)


def test_the_least_recently_used_result_goes_first():
    calls: list[str] = []

    @remembered(len, capacity=2 * (ENTRY + 1))
    def same(text: str) -> str:
        calls.append(text)
        return text

    for text in "abacab":
        same(text)
    assert calls == ["a", "b", "c", "b"]
    assert same.evictions == 2
    same.cache_clear()
    assert same.used == 0


def test_other_errors_are_not_remembered():
    calls: list[int] = []

    @remembered(len, capacity=1000)
    def fails(number: int, *, times: int = 1) -> str:
        calls.append(number)
        if len(calls) <= times:
            raise MemoryError
        if number < 0:
            raise PatternError("negative")
        return ""

    with pytest.raises(MemoryError):
        fails(1)
    assert fails(1) == fails(1) == ""
    for _ in range(2):
        with pytest.raises(PatternError, match="negative"):
            fails(-1, times=1)
    assert calls == [1, 1, -1]
