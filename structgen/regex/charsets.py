"""Sets of code points as sorted intervals, and the algebra on them.

Surrogates are no characters: no set contains U+D800 to U+DFFF.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

CharSet: TypeAlias = tuple[tuple[int, int], ...]
"""Sorted, disjoint and not adjacent (first, last) intervals of code points."""

TOP = 0x10FFFF
NONE: CharSet = ()
ALL: CharSet = ((0, 0xD7FF), (0xE000, TOP))


def charset(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The set of all code points of `ranges`, in any order, without surrogates."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            if last > merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    if any(first <= 0xDFFF and last >= 0xD800 for first, last in merged):
        return intersection(tuple(merged), ALL)
    return tuple(merged)


def of_text(text: str) -> CharSet:
    """The set of the characters of `text`."""
    return charset((ord(char), ord(char)) for char in text)


def union(*sets: CharSet) -> CharSet:
    """Everything in any of `sets`."""
    return charset(interval for chars in sets for interval in chars)


def intersection(a: CharSet, b: CharSet) -> CharSet:
    """Everything in both sets."""
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        first, last = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if first <= last:
            out.append((first, last))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def complement(chars: CharSet) -> CharSet:
    """Every character that is not in the set."""
    gaps: list[tuple[int, int]] = []
    at = 0
    for first, last in chars:
        if first > at:
            gaps.append((at, first - 1))
        at = last + 1
    if at <= TOP:
        gaps.append((at, TOP))
    return intersection(tuple(gaps), ALL)


def difference(a: CharSet, b: CharSet) -> CharSet:
    """Everything in `a` that is not in `b`."""
    return intersection(a, complement(b))


def contains(chars: CharSet, char: int) -> bool:
    """Whether the code point is in the set."""
    index = bisect_right(chars, (char, TOP + 1)) - 1
    return index >= 0 and chars[index][1] >= char


@dataclass(frozen=True, slots=True)
class CharClass:
    r"""A class of a pattern: the characters in it for sure, and those possibly in it.

    They differ by the characters that this Python's Unicode does not know yet: a newer validator
    may count them to `\w` or to `\W`, so neither class has them for sure.
    """

    sure: CharSet
    possible: CharSet

    @staticmethod
    def exactly(chars: CharSet) -> CharClass:
        """The class without any doubt."""
        return CharClass(chars, chars)

    def __invert__(self) -> CharClass:
        return CharClass(complement(self.possible), complement(self.sure))

    def __or__(self, other: CharClass) -> CharClass:
        return CharClass(union(self.sure, other.sure), union(self.possible, other.possible))

    def __and__(self, other: CharClass) -> CharClass:
        sure = intersection(self.sure, other.sure)
        return CharClass(sure, intersection(self.possible, other.possible))

    def __sub__(self, other: CharClass) -> CharClass:
        return self & ~other


def letters_of(sets: Sequence[CharSet]) -> tuple[tuple[CharSet, ...], list[int]]:
    """Split all characters into letters that no set of `sets` tells apart.

    Example: `[[a-z], [a-f]] -> ([a-f], [g-z], everything else), [0b011, 0b001]`

    Returns:
        The letters, and the bit mask of letters that make up each set.
    """
    toggles: dict[int, int] = {}
    for index, chars in enumerate((*sets, ALL)):
        bit = 1 << index
        for first, last in chars:
            toggles[first] = toggles.get(first, 0) ^ bit
            toggles[last + 1] = toggles.get(last + 1, 0) ^ bit
    groups: dict[int, list[tuple[int, int]]] = {}
    members = 0
    cuts = sorted(toggles)
    for cut, following in pairwise(cuts):
        members ^= toggles[cut]
        if members:
            groups.setdefault(members, []).append((cut, following - 1))
    masks = [0] * len(sets)
    for letter, group in enumerate(groups):
        for index in bits_of(group & ~(1 << len(sets))):
            masks[index] |= 1 << letter
    return tuple(charset(ranges) for ranges in groups.values()), masks


def bits_of(mask: int) -> Iterable[int]:
    """The indexes of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
