"""Automaton with empty moves -> deterministic automaton, where no move has a condition."""

from __future__ import annotations

from typing import TypeAlias

from structgen.regex.charsets import letters_of
from structgen.regex.dfa import Dfa
from structgen.regex.explore import Explorer
from structgen.regex.limits import Meter
from structgen.regex.minimise import minimal
from structgen.regex.nfa import Closures, Nfa
from structgen.regex.superfluous import Superfluous

Place: TypeAlias = tuple[frozenset[int], None]
"""(states, nothing else)"""


def determinise(nfa: Nfa, meter: Meter) -> Dfa:
    """The smallest deterministic automaton of the same language."""
    letters, masks = letters_of(nfa.sets)
    subsets = _Subsets(nfa, masks, meter)
    explorer = Explorer(nfa, subsets.followers, subsets.accepts, meter)
    return minimal(letters, *explorer.explored(subsets.start))


class _Subsets:
    """Where sets of states lead."""

    def __init__(self, nfa: Nfa, masks: list[int], meter: Meter) -> None:
        self._nfa = nfa
        self._masks = masks
        self._meter = meter
        self._closures = Closures(nfa, meter)
        self._superfluous = Superfluous(nfa, masks, self._closures, meter)
        self._moves: dict[int, list[tuple[int, frozenset[int]]]] = {}
        self._cells: dict[frozenset[int], list[tuple[int, tuple[int, ...]]]] = {}
        self._places: dict[frozenset[int], Place] = {}
        self.start = self._place(self._closures[0])

    def accepts(self, place: Place) -> bool:
        """Whether the text may end here."""
        return self._nfa.final in place[0]

    def _place(self, subset: frozenset[int]) -> Place:
        place = self._places.get(subset)
        if place is None:
            kept = subset
            if kept & self._nfa.rests:
                # Whatever follows is accepted: all such sets are one state.
                kept = self._closures[min(self._nfa.rests)]
            place = self._places[subset] = self._superfluous.without(kept), None
        return place

    def followers(self, place: Place) -> list[tuple[int, Place]]:
        """Where each letter leads from a set of states: (mask of letters, set after them)."""
        targets: dict[int, set[int]] = {}
        steps = 1
        for state in place[0]:
            for chars, to in self._moves_of(state):
                steps += 1 + (len(to) >> 3)
                targets.setdefault(chars, set()).update(to)
        self._meter.spend(steps)
        masks: dict[Place, int] = {}
        for mask, members in self._split(frozenset(targets)):
            after = self._place(frozenset().union(*[targets[chars] for chars in members]))
            masks[after] = masks.get(after, 0) | mask
        return [(mask, after) for after, mask in masks.items()]

    def _moves_of(self, state: int) -> list[tuple[int, frozenset[int]]]:
        """The moves of one state: (index of the set, all states after it)."""
        moves = self._moves.get(state)
        if moves is None:
            grouped: dict[int, set[int]] = {}
            for chars, to in self._nfa.moves[state]:
                grouped.setdefault(chars, set()).update(self._closures[to])
            moves = [(chars, frozenset(to)) for chars, to in grouped.items()]
            self._moves[state] = moves
        return moves

    def _split(self, sets: frozenset[int]) -> list[tuple[int, tuple[int, ...]]]:
        """Cells of letters that lie in the same ones of `sets`, with these."""
        cells = self._cells.get(sets)
        if cells is None:
            cells = self._cells[sets] = split_masks([(index, self._masks[index]) for index in sets])
            self._meter.spend(len(cells) * len(sets))
        return cells


def split_masks(masks: list[tuple[int, int]]) -> list[tuple[int, tuple[int, ...]]]:
    """Split the union of masks into cells, each with the names of the masks that it lies in.

    Example: `[(7, 0b011), (8, 0b110)] -> [(0b001, (7,)), (0b010, (7, 8)), (0b100, (8,))]`
    """
    cells: list[tuple[int, tuple[int, ...]]] = []
    for name, mask in masks:
        refined: list[tuple[int, tuple[int, ...]]] = []
        for cell, names in cells:
            if both := cell & mask:
                refined.append((both, (*names, name)))
                mask ^= both
            if cell ^ both:
                refined.append((cell ^ both, names))
        if mask:
            refined.append((mask, (name,)))
        cells = refined
    return cells
