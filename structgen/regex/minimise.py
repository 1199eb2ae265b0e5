"""Any deterministic automaton -> the smallest one of the same language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from structgen.later import later
from structgen.regex.charsets import CharSet, bits_of, charset
from structgen.regex.dfa import EMPTY, Dfa
from structgen.regex.tables import Arc

if TYPE_CHECKING:
    import structgen.regex.refine as refine
else:
    refine = later("structgen.regex.refine")

MANY_STATES = 16
"""From so many states on they are told apart on arrays."""
MOST_CELLS = 2**22
"""States times letters of these arrays, which bounds their memory."""


def minimal(letters: tuple[CharSet, ...], arcs: list[list[Arc]], accepting: Iterable[int]) -> Dfa:
    """The smallest automaton, from one whose states may be useless or alike; state 0 starts."""
    if is_large(len(arcs), len(letters)):
        found = refine.smallest(arcs, len(letters), accepting)
        return from_table(letters, found)
    return _minimal(letters, arcs, accepting)


def is_large(n_states: int, n_letters: int) -> bool:
    """Whether an automaton is worked on as arrays."""
    return n_states >= MANY_STATES and n_states * n_letters <= MOST_CELLS


def _minimal(letters: tuple[CharSet, ...], arcs: list[list[Arc]], accepting: Iterable[int]) -> Dfa:
    """The same state by state."""
    alive = _alive(arcs, accepting)
    if 0 not in alive:
        return EMPTY
    kept = _kept(arcs, alive)
    ends = alive.intersection(accepting)
    return coarse(letters, *_numbered(kept, _Blocks(kept, alive, ends).refined(), ends))


def trimmed(letters: tuple[CharSet, ...], arcs: list[list[Arc]], accepting: Iterable[int]) -> Dfa:
    """The automaton without useless states, from one without two states that are alike."""
    alive = _alive(arcs, accepting)
    if 0 not in alive:
        return EMPTY
    rows, ends = _numbered(_kept(arcs, alive), range(len(arcs)), alive.intersection(accepting))
    return Dfa(letters, tuple(map(tuple, rows)), ends)


def _kept(arcs: list[list[Arc]], alive: set[int]) -> list[list[Arc]]:
    return [
        [arc for arc in row if arc[1] in alive] if state in alive else []
        for state, row in enumerate(arcs)
    ]


def _alive(arcs: list[list[Arc]], accepting: Iterable[int]) -> set[int]:
    """The states that can be reached and lead to acceptance."""
    reached = _closure([0], [[to for _, to in row] for row in arcs])
    before: list[list[int]] = [[] for _ in arcs]
    for state in reached:
        for _, to in arcs[state]:
            before[to].append(state)
    return _closure([state for state in accepting if state in reached], before)


def _closure(start: list[int], near: list[list[int]]) -> set[int]:
    seen = set(start)
    stack = list(start)
    while stack:
        for state in near[stack.pop()]:
            if state not in seen:
                seen.add(state)
                stack.append(state)
    return seen


class _Blocks:
    """Partition refinement: states stay in one block while they cannot be told apart.

    A state is looked at again only if a target of it changed its block. When a block is split its
    largest part keeps the name, so a state changes blocks at most log2(states) times.
    """

    def __init__(self, arcs: list[list[Arc]], alive: set[int], accepting: set[int]) -> None:
        self._arcs = arcs
        self._alive = alive
        self._block = [int(state in accepting) for state in range(len(arcs))]
        self._members = {0: alive - accepting, 1: set(accepting)}
        self._next = 2
        self._before: list[list[int]] = [[] for _ in arcs]
        for state in alive:
            for _, to in arcs[state]:
                self._before[to].append(state)

    def refined(self) -> list[int]:
        """The block of each state, when no block can be split further."""
        dirty = self._alive
        while dirty:
            moved = [state for part in self._split(dirty) for state in part]
            dirty = {near for state in moved for near in self._before[state]}
        return self._block

    def _split(self, dirty: set[int]) -> list[set[int]]:
        """Split blocks by where their states lead; returns the parts with a new name."""
        groups: dict[int, dict[frozenset[Arc], set[int]]] = {}
        for state in dirty:
            signature = self._signature(state)
            groups.setdefault(self._block[state], {}).setdefault(signature, set()).add(state)
        renamed: list[set[int]] = []
        for block, parts in groups.items():
            found = list(parts.values())
            # States that were not looked at again are as alike as before, and differ from these.
            if others := len(self._members[block]) - sum(map(len, found)):
                largest = max(found, key=len)
                if len(largest) > others:
                    found.append(self._members[block].difference(*found))
                else:
                    found.append(set())  # stands for the others, which keep the name
                    renamed.extend(self._rename(block, part) for part in found if part)
                    continue
            found.sort(key=len)
            renamed.extend(self._rename(block, part) for part in found[:-1])
        return renamed

    def _rename(self, block: int, part: set[int]) -> set[int]:
        self._members[block] -= part
        self._members[self._next] = part
        for state in part:
            self._block[state] = self._next
        self._next += 1
        return part

    def _signature(self, state: int) -> frozenset[Arc]:
        row = self._arcs[state]
        if len(row) == 1:
            return frozenset(((row[0][0], self._block[row[0][1]]),))
        masks: dict[int, int] = {}
        for mask, to in row:
            block = self._block[to]
            masks[block] = masks.get(block, 0) | mask
        return frozenset((mask, block) for block, mask in masks.items())


def _numbered(
    arcs: list[list[Arc]], blocks: Sequence[int], accepting: set[int]
) -> tuple[list[list[Arc]], frozenset[int]]:
    """One state a block, numbered in the order in which they are reached.

    Arcs are taken by their first letter, so equal languages get equal automata.
    """
    numbers = {blocks[0]: 0}
    members = [0]
    rows: list[list[Arc]] = []
    for state in members:  # grows while it is read
        masks: dict[int, int] = {}
        for mask, to in sorted(arcs[state], key=_first_letter):
            number = numbers.setdefault(blocks[to], len(members))
            if number == len(members):
                members.append(to)
            masks[number] = masks.get(number, 0) | mask
        rows.append([(mask, number) for number, mask in masks.items()])
    return rows, frozenset(numbers[blocks[state]] for state in accepting)


def _first_letter(arc: Arc) -> int:
    return arc[0] & -arc[0]


def coarse(letters: tuple[CharSet, ...], rows: list[list[Arc]], accepting: frozenset[int]) -> Dfa:
    """Merge letters that no state tells apart."""
    groups = [(1 << len(letters)) - 1]
    for mask in {mask for row in rows for mask, _ in row}:
        if len(groups) == len(letters):
            break
        groups = [part for group in groups for part in (group & mask, group & ~mask) if part]
    groups.sort(key=lambda group: group & -group)
    if len(groups) < len(letters):
        known: dict[int, int] = {}
        for mask in {mask for row in rows for mask, _ in row}:
            known[mask] = sum(1 << i for i, group in enumerate(groups) if group & mask)
        rows = [[(known[mask], to) for mask, to in row] for row in rows]
        letters = tuple(
            charset(part for letter in bits_of(group) for part in letters[letter])
            for group in groups
        )
    return Dfa(letters, tuple(tuple(row) for row in rows), accepting)


def from_table(letters: tuple[CharSet, ...], found: refine.Smallest | None) -> Dfa:
    """The same on arrays, from the smallest automaton; None is the empty one."""
    if found is None:
        return EMPTY
    table, accepting, rows = found
    if len(table) < len(letters):
        groups: list[list[tuple[int, int]]] = [[] for _ in table]
        for row, chars in zip(rows, letters, strict=True):
            groups[row].extend(chars)
        letters = tuple(map(charset, groups))
    return Dfa.of_table(letters, table, accepting)
