"""Threads: alternatives of a text read so far, each with duties on the text to come."""

from __future__ import annotations

from typing import TypeAlias

from structgen.regex.limits import Meter
from structgen.regex.looks import Table
from structgen.regex.nfa import Closures, Condition, Nfa
from structgen.regex.superfluous import Superfluous
from structgen.regex.tables import Arc

Duty: TypeAlias = tuple[int, int]
"""(index of a look-ahead automaton, its state)"""


class Threads:
    """Threads as numbers, with what each one does."""

    def __init__(self, nfa: Nfa, masks: list[int], tables: list[Table], meter: Meter) -> None:
        self._nfa = nfa
        self._masks = masks
        self._tables = tables
        self._meter = meter
        self._closures = Closures(nfa, meter)
        self._superfluous = Superfluous(nfa, masks, self._closures, meter)
        self._duties: list[frozenset[Duty]] = [frozenset()]
        self._numbers: dict[frozenset[Duty], int] = {frozenset(): 0}
        self._arcs: dict[int, list[tuple[int, frozenset[int]]]] = {}
        self._simplest: dict[frozenset[int], tuple[frozenset[int], bool]] = {}
        self._conditional = frozenset(nfa.conditional)
        self._size = len(nfa.moves)

    def enter(self, state: int, duties: int) -> frozenset[int]:
        """The threads in a state and those that it reaches without conditions."""
        offset = duties * self._size
        if not offset:
            return self._closures[state]
        return frozenset(offset + near for near in self._closures[state])

    def conditions(self, thread: int) -> list[tuple[Condition, int]]:
        """The conditional moves of a thread: (condition, state)."""
        return self._nfa.conditional.get(thread % self._size, [])

    def unresolved(self, threads: frozenset[int]) -> list[int]:
        """The threads with conditional moves."""
        conditional, size = self._conditional, self._size
        return [thread for thread in threads if thread % size in conditional]

    def with_duty(self, thread: int, duty: Duty) -> int:
        """The number of the thread's duties with one more."""
        return self._number(self._duties[thread // self._size] | {duty})

    def duties_of(self, thread: int) -> int:
        """The number of the thread's duties."""
        return thread // self._size

    def accepts(self, thread: int) -> bool:
        """Whether the text may end here."""
        return thread % self._size == self._nfa.final and all(
            state in self._tables[look].accepting
            for look, state in self._duties[thread // self._size]
        )

    def simplest(self, threads: frozenset[int]) -> tuple[frozenset[int], bool]:
        """The threads without superfluous ones, and whether any of them has conditional moves."""
        known = self._simplest.get(threads)
        if known is None:
            kept = self._earliest(threads)
            if max(kept, default=0) < self._size:
                conditional = not self._conditional.isdisjoint(kept)
            else:
                conditional = any(thread % self._size in self._conditional for thread in kept)
            known = self._simplest[threads] = kept, conditional
        return known

    def _earliest(self, threads: frozenset[int]) -> frozenset[int]:
        """The threads without those that another one makes superfluous."""
        if max(threads, default=0) < self._size:
            return self._superfluous.without(threads)
        by_duties: dict[int, list[int]] = {}
        for thread in threads:
            by_duties.setdefault(thread // self._size, []).append(thread % self._size)
        return frozenset(
            duties * self._size + state
            for duties, states in by_duties.items()
            for state in self._superfluous.without(frozenset(states))
        )

    def arcs(self, thread: int) -> list[tuple[int, frozenset[int]]]:
        """Where a thread leads: (mask of letters, threads)."""
        known = self._arcs.get(thread)
        if known is None:
            duties, state = divmod(thread, self._size)
            known = self._arcs[thread] = [
                (mask & kept, self.enter(to, after))
                for kept, after in self._after(duties)
                for chars, to in self._nfa.moves[state]
                if (mask := self._masks[chars]) & kept
            ]
            self._meter.spend(1 + sum(len(entered) for _, entered in known))
        return known

    def _after(self, duties: int) -> list[Arc]:
        """How duties go on: (mask of letters, number of the duties after one of them)."""
        paths: list[tuple[int, frozenset[Duty]]] = [(-1, frozenset())]
        for look, state in self._duties[duties]:
            table = self._tables[look]
            self._meter.spend(len(paths) * len(table.arcs[state]))
            paths = [
                (both, kept if to in table.free else kept | {(look, to)})
                for mask, kept in paths
                for other, to in table.arcs[state]
                if (both := mask & other)
            ]
        return [(mask, self._number(kept)) for mask, kept in paths]

    def _number(self, duties: frozenset[Duty]) -> int:
        number = self._numbers.setdefault(duties, len(self._duties))
        if number == len(self._duties):
            self._duties.append(duties)
        return number
