"""Boolean operations on automata, and automata of simple sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from structgen.later import later
from structgen.regex.charsets import ALL, CharSet, bits_of, letters_of
from structgen.regex.charsets import complement as other_chars
from structgen.regex.dfa import ANYTHING, Dfa, is_empty
from structgen.regex.limits import STATES, Meter
from structgen.regex.minimise import MANY_STATES, from_table, is_large, minimal, trimmed
from structgen.regex.tables import Arc, flags

if TYPE_CHECKING:
    import structgen.regex.refine as refine
else:
    refine = later("structgen.regex.refine")


def complement(dfa: Dfa) -> Dfa:
    """Accepts exactly the texts that `dfa` does not."""
    if is_empty(dfa):
        return ANYTHING
    everything = (1 << len(dfa.letters)) - 1
    sink = len(dfa)
    rows: list[list[Arc]] = []
    for arcs in dfa.arcs:
        missing = everything
        for mask, _ in arcs:
            missing ^= mask
        rows.append([*arcs, (missing, sink)] if missing else list(arcs))
    rows.append([(everything, sink)])
    accepting = [state for state in range(len(rows)) if state not in dfa.accepting]
    return trimmed(dfa.letters, rows, accepting)


def intersect(a: Dfa, b: Dfa, limit: int = STATES) -> Dfa:
    """Accepts exactly the texts that both accept.

    Raises:
        PatternTooLarge: That takes more than `limit` states.
    """
    meter = Meter(limit)
    letters, masks_a, masks_b = _common(a, b)
    if is_large(len(a) * len(b), 1) and is_large(max(len(a), len(b), MANY_STATES), len(letters)):
        return from_table(letters, refine.product(_table(a, masks_a), _table(b, masks_b), meter))
    rows_a, rows_b = translated(a, masks_a), translated(b, masks_b)
    return _intersect(letters, (rows_a, a.accepting), (rows_b, b.accepting), meter)


def _table(dfa: Dfa, masks: list[int]) -> refine.Table:
    """The table of an automaton that is read by other letters; `masks` as in `translated`."""
    owner = {letter: own for own, mask in enumerate(masks) for letter in bits_of(mask)}
    owners = np.array([owner[letter] for letter in range(len(owner))], np.int32)
    return dfa.table, flags(dfa.accepting, len(dfa)), owners


def _intersect(
    letters: tuple[CharSet, ...],
    a: tuple[list[list[Arc]], frozenset[int]],
    b: tuple[list[list[Arc]], frozenset[int]],
    meter: Meter,
) -> Dfa:
    """The same pair by pair, from (moves, accepting states)."""
    rows_a, rows_b = a[0], b[0]
    numbers = {(0, 0): 0}
    pairs = [(0, 0)]
    rows: list[list[Arc]] = []
    for p, q in pairs:  # grows while it is read
        row: list[Arc] = []
        meter.spend(len(rows_a[p]) * len(rows_b[q]))
        for mask, to_a in rows_a[p]:
            for other, to_b in rows_b[q]:
                if both := mask & other:
                    number = numbers.setdefault((to_a, to_b), len(pairs))
                    if number == len(pairs):
                        pairs.append((to_a, to_b))
                        meter.states(len(pairs))
                    row.append((both, number))
        rows.append(row)
    accepting = [n for n, (p, q) in enumerate(pairs) if p in a[1] and q in b[1]]
    return minimal(letters, rows, accepting)


def union(a: Dfa, b: Dfa, limit: int = STATES) -> Dfa:
    """Accepts exactly the texts that at least one accepts.

    Raises:
        PatternTooLarge: That takes more than `limit` states.
    """
    return complement(intersect(complement(a), complement(b), limit))


def _common(a: Dfa, b: Dfa) -> tuple[tuple[CharSet, ...], list[int], list[int]]:
    """Letters that suit both automata, and which of them make up each letter of either."""
    if a.letters == b.letters:
        masks = [1 << letter for letter in range(len(a.letters))]
        return a.letters, masks, masks
    letters, masks = letters_of([*a.letters, *b.letters])
    split = len(a.letters)
    return letters, masks[:split], masks[split:]


def translated(dfa: Dfa, masks: list[int]) -> list[list[Arc]]:
    """The moves over other letters; `masks` tells which make up each letter of `dfa`."""
    known: dict[int, int] = {}
    for mask in {mask for row in dfa.arcs for mask, _ in row}:
        known[mask] = sum(masks[letter] for letter in bits_of(mask))
    return [[(known[mask], to) for mask, to in row] for row in dfa.arcs]


def lengths(least: int, most: int | None) -> Dfa:
    """Accepts every text with at least `least` and at most `most` characters."""
    count = least if most is None else most
    rows: list[list[Arc]] = [[(1, state + 1)] for state in range(count)]
    rows.append([(1, count)] if most is None else [])
    return trimmed((ALL,), rows, range(least, count + 1))


def bounded(dfa: Dfa, least: int, most: int | None, limit: int = STATES) -> Dfa:
    """Accepts the texts of `dfa` whose number of characters is within the bounds.

    Raises:
        PatternTooLarge: That takes more than `limit` states.
    """
    if least <= 0 and most is None:
        return dfa
    Meter(limit).states(max(least, most or 0) + 1)
    return intersect(dfa, lengths(least, most), limit)


def literals(words: Iterable[str]) -> Dfa:
    """Accepts exactly the given words; one with a lone surrogate is left out."""
    trie: list[dict[str, int]] = [{}]
    ends: set[int] = set()
    for word in words:
        if any("\ud800" <= char <= "\udfff" for char in word):
            continue
        state = 0
        for char in word:
            to = trie[state].setdefault(char, len(trie))
            if to == len(trie):
                trie.append({})
            state = to
        ends.add(state)
    return _from_trie(trie, ends)


def _from_trie(trie: list[dict[str, int]], ends: set[int]) -> Dfa:
    """Merge equal subtrees from the leaves up; a child's number is above its parent's."""
    chars = sorted({char for row in trie for char in row})
    single: list[CharSet] = [((ord(char), ord(char)),) for char in chars]
    others = other_chars(tuple(interval for (interval,) in single))
    letters = sorted([*single, others])
    bits = {chr(first): 1 << index for index, ((first, _), *_) in enumerate(letters)}
    known: dict[tuple[bool, frozenset[tuple[str, int]]], int] = {}
    same = [0] * len(trie)
    for state in reversed(range(len(trie))):
        row = frozenset((char, same[to]) for char, to in trie[state].items())
        same[state] = known.setdefault((state in ends, row), state)
    rows: list[list[Arc]] = [[] for _ in trie]
    for state, row in enumerate(trie):
        if same[state] == state:
            masks: dict[int, int] = {}
            for char, to in row.items():
                masks[same[to]] = masks.get(same[to], 0) | bits[char]
            rows[state] = [(mask, to) for to, mask in masks.items()]
    return trimmed(tuple(letters), rows, [state for state in ends if same[state] == state])
