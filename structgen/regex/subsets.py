"""Automaton with empty moves -> deterministic automaton, where no move has a condition."""

from __future__ import annotations

from structgen.regex.charsets import letters_of
from structgen.regex.dfa import Arc, Dfa
from structgen.regex.limits import Meter
from structgen.regex.minimise import minimal
from structgen.regex.nfa import Closures, Nfa, Rounds


def determinise(nfa: Nfa, meter: Meter) -> Dfa:
    """The smallest deterministic automaton of the same language."""
    letters, masks = letters_of(nfa.sets)
    subsets = _Subsets(nfa, masks, meter)
    # The list grows while it is read.
    arcs = [subsets.arcs_of(subset) for subset in subsets.found]
    accepting = {state for state, subset in enumerate(subsets.found) if nfa.final in subset}
    return minimal(letters, arcs, accepting)


class _Subsets:
    """The sets of states that can be reached, numbered in the order in which they are found."""

    def __init__(self, nfa: Nfa, masks: list[int], meter: Meter) -> None:
        self._nfa = nfa
        self._masks = masks
        self._meter = meter
        self._closures = Closures(nfa, meter)
        self._rounds = Rounds(nfa, meter)
        self._moves: dict[int, list[tuple[int, frozenset[int]]]] = {}
        self._cells: dict[frozenset[int], list[tuple[int, tuple[int, ...]]]] = {}
        self._numbers: dict[frozenset[int], int] = {}
        self._known: dict[frozenset[int], int] = {}
        self.found: list[frozenset[int]] = []
        self._number(self._closures[0])

    def _number(self, subset: frozenset[int]) -> int:
        number = self._known.get(subset)
        if number is None:
            number = self._known[subset] = self._find(subset)
        return number

    def _find(self, subset: frozenset[int]) -> int:
        if subset & self._nfa.rests:
            # Whatever follows is accepted: all such sets are one state.
            subset = self._closures[min(self._nfa.rests)]
        subset = self._rounds.earliest(subset)
        number = self._numbers.setdefault(subset, len(self.found))
        if number == len(self.found):
            self.found.append(subset)
            self._meter.states(len(self.found))
        return number

    def arcs_of(self, subset: frozenset[int]) -> list[Arc]:
        """Where each letter leads from a set of states."""
        targets: dict[int, set[int]] = {}
        steps = 1
        for state in subset:
            for chars, to in self._moves_of(state):
                steps += 1 + (len(to) >> 3)
                targets.setdefault(chars, set()).update(to)
        self._meter.spend(steps)
        by_target: dict[int, int] = {}
        for mask, members in self._split(frozenset(targets)):
            number = self._number(frozenset().union(*[targets[chars] for chars in members]))
            by_target[number] = by_target.get(number, 0) | mask
        return [(mask, number) for number, mask in by_target.items()]

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
