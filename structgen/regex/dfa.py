"""A deterministic automaton over characters, and the questions that one can ask it."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TypeAlias

from structgen.regex.charsets import ALL, CharSet, bits_of
from structgen.regex.tables import Arc, IntArray, arcs_of, flags, letter_table, steps_left

Interval: TypeAlias = tuple[int, int, int]
"""(first code point, last code point, target)"""


class Dfa:
    """State 0 is the start; every state is reachable and leads to an accepting one.

    Where a state has no arc for a letter, the text is not accepted. The empty language is one
    state that does not accept. Nothing is changed after it is made.
    """

    letters: tuple[CharSet, ...]
    """Sets of characters that the automaton does not tell apart; they make up all characters."""
    accepting: frozenset[int]

    def __init__(
        self,
        letters: tuple[CharSet, ...],
        arcs: tuple[tuple[Arc, ...], ...],
        accepting: frozenset[int],
    ) -> None:
        self.letters = letters
        self.accepting = accepting
        self._size = len(arcs)
        self.__dict__["arcs"] = arcs  # where the property keeps it

    @classmethod
    def of_table(
        cls, letters: tuple[CharSet, ...], table: IntArray, accepting: frozenset[int]
    ) -> Dfa:
        """The automaton with the moves of a table, int32[letters, states].

        Its arcs are made when they are asked for: many automata are only a step towards another.
        """
        made = cls.__new__(cls)
        made.letters = letters
        made.accepting = accepting
        made._size = table.shape[1]
        made.__dict__["table"] = table
        return made

    @cached_property
    def arcs(self) -> tuple[tuple[Arc, ...], ...]:
        """The moves of each state, with masks that share no letter and targets that differ."""
        return arcs_of(self.table)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dfa):
            return NotImplemented
        mine, others = (self.letters, self.accepting), (other.letters, other.accepting)
        return mine == others and self.arcs == other.arcs

    def __hash__(self) -> int:
        return hash((self.letters, self.accepting, self._size))

    def __len__(self) -> int:
        return self._size

    @cached_property
    def edges(self) -> tuple[tuple[Interval, ...], ...]:
        """The moves of each state as sorted intervals of code points."""
        known: dict[int, CharSet] = {}
        rows: list[tuple[Interval, ...]] = []
        for arcs in self.arcs:
            row: list[Interval] = []
            for mask, to in arcs:
                if mask not in known:
                    known[mask] = mask_set(self.letters, mask)
                row.extend((first, last, to) for first, last in known[mask])
            rows.append(tuple(sorted(row)))
        return tuple(rows)

    @cached_property
    def table(self) -> IntArray:
        """int32[letters, states], never written: where each letter leads, -1 for nowhere."""
        return letter_table(self.arcs, len(self.letters))

    @cached_property
    def left(self) -> tuple[int, ...]:
        """The fewest characters to acceptance from each state; empty for the empty language."""
        if not self.accepting:
            return ()
        if "arcs" not in self.__dict__:
            return tuple(steps_left(self.table, flags(self.accepting, len(self))).tolist())
        before: list[list[int]] = [[] for _ in self.arcs]
        for state, arcs in enumerate(self.arcs):
            for _, to in arcs:
                before[to].append(state)
        found = [-1] * len(self)
        level = sorted(self.accepting)
        for state in level:
            found[state] = 0
        for state in level:  # grows while it is read
            for near in before[state]:
                if found[near] < 0:
                    found[near] = found[state] + 1
                    level.append(near)
        return tuple(found)

    @cached_property
    def _letter_table(self) -> tuple[list[int], list[int]]:
        starts = sorted(
            (first, letter) for letter, chars in enumerate(self.letters) for first, _ in chars
        )
        return [first for first, _ in starts], [letter for _, letter in starts]

    def letter(self, char: str) -> int:
        """The index of the letter that holds a character."""
        starts, letters = self._letter_table
        return letters[bisect_right(starts, ord(char)) - 1]

    def step(self, state: int, char: str) -> int:
        """The state after `char`, -1 if there is none."""
        letter = self.letter(char)
        for mask, to in self.arcs[state]:
            if mask >> letter & 1:
                return to
        return -1


USUAL_ARCS = 4
"""Reckoned for a state whose arcs may still be made."""

EMPTY = Dfa((ALL,), ((),), frozenset())
"""Accepts nothing."""

ANYTHING = Dfa((ALL,), (((1, 0),),), frozenset({0}))
"""Accepts every text."""


def mask_set(letters: tuple[CharSet, ...], mask: int) -> CharSet:
    """The characters of all letters in a mask."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(part for letter in bits_of(mask) for part in letters[letter]):
        if merged and first == merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def dfa_size(dfa: Dfa) -> int:
    """About how much memory the automaton takes, in units of about 50 bytes."""
    table = len(dfa) * len(dfa.letters) // 12  # it is made for large automata at least
    arcs = sum(map(len, dfa.arcs)) if "arcs" in dfa.__dict__ else USUAL_ARCS * len(dfa)
    return len(dfa) + arcs + table


def is_empty(dfa: Dfa) -> bool:
    """Whether no text is accepted."""
    return not dfa.accepting


def is_everything(dfa: Dfa) -> bool:
    """Whether every text is accepted, of an automaton that is as small as it can be."""
    return len(dfa) == len(dfa.accepting) == 1 and not _missing(dfa, 0)


def _missing(dfa: Dfa, state: int) -> int:
    """The mask of the letters for which a state has no move."""
    return (1 << len(dfa.letters)) - 1 - sum(mask for mask, _ in dfa.arcs[state])


def matches(dfa: Dfa, text: str) -> bool:
    """Whether the text is accepted; a text with a lone surrogate never is."""
    state = 0
    for char in text:
        if "\ud800" <= char <= "\udfff":
            return False
        state = dfa.step(state, char)
        if state < 0:
            return False
    return state in dfa.accepting


def distances(dfa: Dfa) -> tuple[int, ...]:
    """The fewest characters to acceptance from each state; empty for the empty language."""
    return dfa.left


def shortest(dfa: Dfa) -> str | None:
    """One of the shortest accepted texts, None if there is none."""
    if is_empty(dfa):
        return None
    left = distances(dfa)
    text: list[str] = []
    state = 0
    while left[state]:
        near = [arc for arc in dfa.arcs[state] if left[arc[1]] < left[state]]
        char, state = min((_nice_char(mask_set(dfa.letters, mask)), to) for mask, to in near)
        text.append(chr(char[1]))
    return "".join(text)


def _nice_char(chars: CharSet) -> tuple[int, int]:
    """A readable character of a set, with its rank."""
    wishes = ((0x61, 0x7A), (0x30, 0x39), (0x41, 0x5A), (0x21, 0x7E), (0x20, 0x20))
    for rank, (low, high) in enumerate(wishes):
        for first, last in chars:
            if first <= high and last >= low:
                return rank, max(first, low)
    return len(wishes), chars[0][0]


def all_accepting(dfa: Dfa) -> bool:
    """Whether every state accepts: any accepted text may stop after any character."""
    return len(dfa.accepting) == len(dfa)


def endless(dfa: Dfa) -> bool:
    """Whether every state can go on forever."""
    return not is_empty(dfa) and len(_endless_states(dfa)) == len(dfa)


def _endless_states(dfa: Dfa) -> set[int]:
    before: list[list[int]] = [[] for _ in dfa.arcs]
    left = [len(arcs) for arcs in dfa.arcs]
    for state, arcs in enumerate(dfa.arcs):
        for _, to in arcs:
            before[to].append(state)
    stack = [state for state, count in enumerate(left) if not count]
    ended: set[int] = set(stack)
    while stack:
        for state in before[stack.pop()]:
            left[state] -= 1
            if not left[state]:
                ended.add(state)
                stack.append(state)
    return set(range(len(dfa))) - ended


def finite_size(dfa: Dfa, most: int) -> int | None:
    """How many texts are accepted; None if there are infinitely many or more than `most`."""
    if _endless_states(dfa):
        return None
    counts = [int(state in dfa.accepting) for state in range(len(dfa))]
    for state in _children_first(dfa):
        for mask, to in dfa.arcs[state]:
            width = sum(last - first + 1 for first, last in mask_set(dfa.letters, mask))
            counts[state] += width * counts[to]
        if counts[state] > most:
            return None
    return counts[0]


def _children_first(dfa: Dfa) -> list[int]:
    """The states of an automaton without loops, each after all that it leads to."""
    before: list[list[int]] = [[] for _ in dfa.arcs]
    left = [len(arcs) for arcs in dfa.arcs]
    for state, arcs in enumerate(dfa.arcs):
        for _, to in arcs:
            before[to].append(state)
    order = [state for state, count in enumerate(left) if not count]
    for state in order:  # grows while it is read
        for near in before[state]:
            left[near] -= 1
            if not left[near]:
                order.append(near)
    return order


def strings(dfa: Dfa, most: int) -> list[str]:
    """All accepted texts in the order of their code points.

    Raises:
        ValueError: There are infinitely many, or more than `most`.
    """
    if finite_size(dfa, most) is None:
        raise ValueError(f"the automaton accepts more than {most} texts")
    found: list[str] = []
    stack: list[tuple[int, str]] = [(0, "")]
    while stack:
        state, text = stack.pop()
        if state in dfa.accepting:
            found.append(text)
        for first, last, to in reversed(dfa.edges[state]):
            stack.extend((to, text + chr(char)) for char in range(last, first - 1, -1))
    return found
