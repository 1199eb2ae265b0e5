"""States of a set that allow nothing which another state of the set does not allow too."""

from __future__ import annotations

from structgen.regex.limits import Meter
from structgen.regex.nfa import Closures, Nfa


class Superfluous:
    r"""Drops superfluous states from sets, so that fewer sets are told apart while they are found.

    The smallest automaton would be the same without this, but `a.{0,99}b` would first have 2 ** 99
    states, and every text that agrees with the end of `[a-z]{1,99}\.[a-z.]*` two.
    """

    def __init__(self, nfa: Nfa, masks: list[int], closures: Closures, meter: Meter) -> None:
        self._rounds = _Rounds(nfa, meter) if nfa.spans else None
        self._loops = _Loops(nfa, masks, closures, meter) if nfa.loops else None

    def without(self, states: frozenset[int]) -> frozenset[int]:
        """The states that are left."""
        if len(states) > 1:
            if self._rounds:
                states = self._rounds.earliest(states)
            if self._loops:
                states = self._loops.without(states)
        return states


class _Rounds:
    """In the optional rounds of a counted repeat, a state allows whatever the same state of a
    later round does, so only the earliest is kept.
    """

    def __init__(self, nfa: Nfa, meter: Meter) -> None:
        self._keys: dict[int, list[int]] = {}
        key = 0
        for first, size, rounds in nfa.spans:
            meter.spend(size * rounds)
            for state in range(first, first + size * rounds):
                self._keys.setdefault(state, []).append(key + (state - first) % size)
            key += size

    def earliest(self, states: frozenset[int]) -> frozenset[int]:
        """The states without those that are the same as an earlier one but for the round."""
        first: dict[int, int] = {}
        dropped: list[int] = []
        for state in sorted(states):
            for key in self._keys.get(state, ()):
                if first.setdefault(key, state) != state:
                    dropped.append(state)
                    break
        return states.difference(dropped) if dropped else states


class _Loops:
    """A loop that accepts and reads all characters of a set over and over allows whatever a state
    does from which only characters of this set can be read.
    """

    def __init__(self, nfa: Nfa, masks: list[int], closures: Closures, meter: Meter) -> None:
        self._nfa = nfa
        self._masks = masks
        self._closures = closures
        self._meter = meter
        self._sets: dict[int, int] = {}
        """The letters of each loop that may end, 0 for others."""
        self._within: dict[tuple[int, int], bool] = {}
        """(set of letters, state): whether nothing else can be read from the state on."""

    def without(self, states: frozenset[int]) -> frozenset[int]:
        """The states that allow something which no loop among them allows."""
        if self._nfa.final not in states or self._nfa.loops.isdisjoint(states):
            return states
        for loop in sorted(self._nfa.loops.intersection(states)):
            self._meter.spend(len(states) // 8 + 1)
            if loop in states and (letters := self._letters(loop)):
                kept = {loop, self._nfa.final}
                states = frozenset(
                    state for state in states if state in kept or not self._reads(letters, state)
                )
        return states

    def _letters(self, loop: int) -> int:
        """The letters that the loop reads; none if the text may not end there."""
        letters = self._sets.get(loop)
        if letters is None:
            letters = 0
            if self._nfa.final in self._closures[loop]:
                for chars, to in self._nfa.moves[loop]:
                    if loop in self._closures[to]:
                        letters |= self._masks[chars]
            self._sets[loop] = letters
        return letters

    def _reads(self, letters: int, state: int) -> bool:
        """Whether nothing but `letters` can be read from `state` on."""
        known = self._within.get((letters, state))
        if known is None:
            known = self._look_ahead(letters, state)
        return known

    def _look_ahead(self, letters: int, start: int) -> bool:
        """The same, from what can be reached; the answer holds for all states on the way too."""
        before: dict[int, int] = {start: -1}
        stack = [start]
        while stack:
            state = stack.pop()
            self._meter.spend(1)
            moves = self._nfa.moves[state]
            known = self._within.get((letters, state))
            if known is False or any(self._masks[chars] & ~letters for chars, _ in moves):
                while state >= 0:
                    self._within[letters, state] = False
                    state = before[state]
                return False
            if known is None:
                near = [to for _, to in moves] + self._nfa.empty[state]
                near += [to for _, to in self._nfa.conditional.get(state, ())]
                for to in near:
                    if to not in before:
                        before[to] = state
                        stack.append(to)
        self._within.update(((letters, state), True) for state in before)
        return True
