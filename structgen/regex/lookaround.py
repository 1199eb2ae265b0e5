r"""Automaton whose empty moves depend on the place -> deterministic automaton.

Beside its set of *threads*, a state knows what kind of character came last, which decides `^`
and `\b`, and how far the text before agrees with each look-behind. A thread is a state of the
automaton with *duties*: states of look-ahead automata that must accept what follows. So threads
are alternatives, the duties of one thread hold together, and everything stays a finite automaton.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from structgen.regex.charsets import letters_of
from structgen.regex.dfa import Dfa
from structgen.regex.explore import Explorer
from structgen.regex.kinds import OTHER, Kind, Kinds, holds
from structgen.regex.limits import Meter
from structgen.regex.looks import Compile, Looks, conditions_in
from structgen.regex.minimise import minimal
from structgen.regex.nfa import Condition, Nfa
from structgen.regex.subsets import split_masks
from structgen.regex.syntax import At, Dialect, Look
from structgen.regex.threads import Threads

Sides: TypeAlias = tuple[Kind, Kind]
"""The kinds of what comes before and after the whole text."""

Place: TypeAlias = tuple[frozenset[int], tuple[Kind, tuple[int, ...]]]
"""(numbers of threads, (kind of the last character, states of the look-behind automata))"""


def determinise_with_conditions(
    nfa: Nfa, dialect: Dialect, meter: Meter, compiled: Compile, sides: Sides
) -> Dfa:
    """The smallest deterministic automaton of the same language."""
    return _Places(nfa, dialect, meter, compiled, sides).dfa()


class _Places:
    """The construction, from the start of the text on."""

    def __init__(
        self, nfa: Nfa, dialect: Dialect, meter: Meter, compiled: Compile, sides: Sides
    ) -> None:
        self._meter = meter
        self._nfa = nfa
        self._rests = nfa.rests  # a thread without duties has the number of its state
        self._sides = sides
        conditions = nfa.conditions()
        looks = list(dict.fromkeys(part for part in conditions if isinstance(part, Look)))
        self._ahead = Looks([look for look in looks if look.ahead], compiled)
        self._behind = Looks([look for look in looks if not look.ahead], compiled)
        kinds = _kinds(conditions, dialect)
        groups = [nfa.sets, self._ahead.sets(), self._behind.sets(), kinds.sets()]
        self._letters, masks = letters_of([chars for group in groups for chars in group])
        first, second = len(groups[0]), len(groups[0]) + len(groups[1])
        self._ahead.translate(masks[first:second])
        self._behind.translate(masks[second:])
        self._threads = Threads(nfa, masks, self._ahead.tables, meter)
        self._kinds: dict[Kind, int] = {}
        for letter, chars in enumerate(self._letters):
            kind = kinds.kind(chars[0][0])
            self._kinds[kind] = self._kinds.get(kind, 0) | 1 << letter

    def dfa(self) -> Dfa:
        """Follow every letter from every place."""
        trackers = (0,) * len(self._behind.tables)
        start = self._place(self._threads.enter(0, 0), self._sides[0], trackers)
        explorer = Explorer(self._nfa, self._followers, self._accepts, self._meter)
        return minimal(self._letters, *explorer.explored(start))

    def _accepts(self, place: Place) -> bool:
        """Whether the text may end here."""
        return any(map(self._threads.accepts, self._spread(place, self._sides[1])))

    def _place(self, threads: frozenset[int], kind: Kind, trackers: tuple[int, ...]) -> Place:
        """A place in its simplest form."""
        if threads & self._rests:
            # Whatever follows is accepted: all such places are one.
            return self._threads.enter(min(self._rests), 0), (OTHER, (-1,) * len(trackers))
        threads, conditional = self._threads.simplest(threads)
        return threads, (kind if conditional else OTHER, trackers)

    def _followers(self, place: Place) -> list[tuple[int, Place]]:
        """(mask of letters, place after them) wherever a thread goes on."""
        threads, (_, trackers) = place
        if not self._threads.simplest(threads)[1]:
            # What comes next decides nothing, so all kinds are looked at together.
            cells = self._cells(threads, -1)
        else:
            cells = [
                cell
                for kind, letters in self._kinds.items()
                for cell in self._cells(self._spread(place, kind), letters)
            ]
        masks: dict[Place, int] = {}
        for mask, after in self._places_after(cells, self._tracker_arcs(trackers)):
            masks[after] = masks.get(after, 0) | mask
        return [(mask, after) for after, mask in masks.items()]

    def _cells(self, threads: frozenset[int], letters: int) -> list[tuple[int, frozenset[int]]]:
        """Where threads lead over each of `letters`: (mask of letters, threads after them)."""
        targets: dict[int, set[int]] = {}
        steps = 0
        for thread in threads:
            for mask, to in self._threads.arcs(thread):
                if both := mask & letters:
                    targets.setdefault(both, set()).update(to)
                    steps += 1
        cells = split_masks([(mask, mask) for mask in targets])
        self._meter.spend(steps + len(targets) * len(cells))
        return [
            (cell, frozenset[int]().union(*[targets[mask] for mask in members]))
            for cell, members in cells
        ]

    def _places_after(
        self,
        cells: list[tuple[int, frozenset[int]]],
        tracked: list[tuple[int, tuple[int, ...]]],
    ) -> Iterator[tuple[int, Place]]:
        for cell, threads in cells:
            conditional = self._threads.simplest(threads)[1]
            for kind, letters in self._kinds.items() if conditional else ((OTHER, -1),):
                for other, trackers in tracked:
                    if both := cell & letters & other:
                        yield both, self._place(threads, kind, trackers)

    def _tracker_arcs(self, trackers: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """How the look-behinds go on: (mask of letters, their states after one of them)."""
        paths: list[tuple[int, tuple[int, ...]]] = [(-1, ())]
        for table, state in zip(self._behind.tables, trackers, strict=True):
            arcs = list(table.arcs[state]) if state >= 0 else []
            arcs.append((~sum(mask for mask, _ in arcs), -1))
            paths = [
                (both, (*states, to))
                for mask, states in paths
                for other, to in arcs
                if (both := mask & other)
            ]
        return paths

    def _spread(self, place: Place, after: Kind) -> frozenset[int]:
        """The threads of a place before a character of kind `after`, conditions resolved."""
        threads, (before, trackers) = place
        stack = self._threads.unresolved(threads)
        if not stack:
            return threads
        seen = set(threads)
        while stack:
            thread = stack.pop()
            for condition, to in self._threads.conditions(thread):
                duties = self._passed(condition, thread, before, after, trackers)
                if duties is not None:
                    new = self._threads.enter(to, duties) - seen
                    self._meter.spend(len(new) + 1)
                    seen |= new
                    stack.extend(new)
        return frozenset(seen)

    def _passed(
        self, condition: Condition, thread: int, before: Kind, after: Kind,
        trackers: tuple[int, ...],
    ) -> int | None:  # fmt: skip
        """The number of a thread's duties after a condition, None if it does not hold."""
        duties = self._threads.duties_of(thread)
        if isinstance(condition, At):
            return duties if holds(condition.where, before, after) else None
        if condition.ahead:
            look = self._ahead.index(condition, before)
            table = self._ahead.tables[look]
            if table.dead:
                return None
            return duties if 0 in table.free else self._threads.with_duty(thread, (look, 0))
        look = self._behind.index(condition, after)
        return duties if trackers[look] in self._behind.tables[look].accepting else None


def _kinds(conditions: list[Condition], dialect: Dialect) -> Kinds:
    """The kinds that the conditions and those in their look-arounds can tell apart."""
    found = [part for condition in conditions for part in conditions_in(condition)]
    return Kinds({part.where for part in found if isinstance(part, At)}, dialect)
