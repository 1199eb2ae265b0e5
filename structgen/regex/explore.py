"""Following every letter from every place: the automaton before it is made small.

A *place* is a set of states of the automaton with empty moves, and whatever else decides how a text
may go on. Rounds of a counted repeat look alike, so what follows a place in one round also follows
it in the next ones, moved on by as many rounds: it is worked out once for all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from typing import Generic, TypeAlias, TypeVar

from structgen.regex.limits import Meter
from structgen.regex.nfa import Nfa, Span
from structgen.regex.tables import Arc

More = TypeVar("More", bound=Hashable)

Place: TypeAlias = tuple[frozenset[int], More]
"""(numbers of states, what else matters); a number's remainder by the count of states is one."""

FEWEST_ROUNDS = 6
"""Repeats with fewer rounds are worked out round by round."""


class Family(Generic[More]):
    """A place and the same place in later rounds."""

    def __init__(self, place: Place[More], span: Span | None, size: int, accepts: bool) -> None:
        self.place = place
        """The place in the first round."""
        self.span = span
        self.accepts = accepts
        self.numbers: dict[int, int] = {}
        """Number of the place by round."""
        self.arcs: list[tuple[int, Family[More], int, int]] | None = None
        """(mask of letters, family, round, rounds that it moves on by round of this place)."""
        self.last = -1
        """The last round in which `arcs` hold."""
        if span is not None:
            first, period, rounds = span
            stop = first + period * rounds
            inside = [state for state in (number % size for number in place[0]) if state < stop]
            # A character leads at most two rounds further, and what is superfluous there depends
            # on whether another round can follow.
            self.last = rounds - 4 - (max(inside) - first) // period


class Explorer(Generic[More]):
    """Finds all places and numbers them in the order in which they are found."""

    def __init__(
        self,
        nfa: Nfa,
        followers: Callable[[Place[More]], list[tuple[int, Place[More]]]],
        accepts: Callable[[Place[More]], bool],
        meter: Meter,
    ) -> None:
        self._followers = followers
        self._accepts = accepts
        self._meter = meter
        self._size = len(nfa.moves)
        self._spans = [span for span in nfa.alike if span[2] >= FEWEST_ROUNDS]
        self._firsts = [first for first, _, _ in self._spans]
        self._families: dict[Place[More], Family[More]] = {}
        self._found: list[tuple[Family[More], int]] = []

    def explored(self, start: Place[More]) -> tuple[list[list[Arc]], list[int]]:
        """The moves of all places, and the places that accept; the start is the first."""
        if not self._spans:
            return self._one_by_one(start)
        self._number(*self._family(start))
        rows: list[list[Arc]] = []
        for family, round_ in self._found:  # grows while it is read
            if round_ <= family.last:
                rows.append(self._moved(family, round_))
            else:
                after = self._followers(self._place(family, round_))
                rows.append([(mask, self._number(*self._family(to))) for mask, to in after])
        return rows, [n for n, (family, _) in enumerate(self._found) if family.accepts]

    def _one_by_one(self, start: Place[More]) -> tuple[list[list[Arc]], list[int]]:
        """The same where no rounds can be worked out together."""
        numbers = {start: 0}
        places = [start]
        rows: list[list[Arc]] = []
        for place in places:  # grows while it is read
            row: list[Arc] = []
            for mask, to in self._followers(place):
                number = numbers.setdefault(to, len(places))
                if number == len(places):
                    places.append(to)
                    self._meter.states(len(places))
                row.append((mask, number))
            rows.append(row)
        return rows, [number for number, place in enumerate(places) if self._accepts(place)]

    def _moved(self, family: Family[More], round_: int) -> list[Arc]:
        """The moves of a place, taken from the same place in another round."""
        if family.arcs is None:
            family.arcs = self._arcs(family, round_)
        row: list[Arc] = []
        for mask, to, at, step in family.arcs:
            at += step * round_
            number = to.numbers.get(at)
            row.append((mask, self._number(to, at) if number is None else number))
        return row

    def _arcs(self, family: Family[More], round_: int) -> list[tuple[int, Family[More], int, int]]:
        arcs: list[tuple[int, Family[More], int, int]] = []
        for mask, place in self._followers(self._place(family, round_)):
            to, at = self._family(place)
            if to.span is not None and to.span == family.span:
                arcs.append((mask, to, at - round_, 1))
            else:
                arcs.append((mask, to, at, 0))
        return arcs

    def _number(self, family: Family[More], round_: int) -> int:
        number = family.numbers.get(round_)
        if number is None:
            number = family.numbers[round_] = len(self._found)
            self._found.append((family, round_))
            self._meter.states(len(self._found))
        return number

    def _family(self, place: Place[More]) -> tuple[Family[More], int]:
        """The family of a place, and its round there."""
        span, round_ = self._span(place[0])
        if span is not None and round_:
            place = self._shifted(place, span, -round_)
        family = self._families.get(place)
        if family is None:
            family = Family(place, span, self._size, self._accepts(place))
            self._families[place] = family
        return family, round_

    def _span(self, states: frozenset[int]) -> tuple[Span | None, int]:
        """The repeat that the first state is in, and the round.

        States have higher numbers than those from which they can be reached, except in repeats,
        and this repeat is in no other: so nothing leads back to where its rounds begin.
        """
        size = self._size
        lowest = min([number % size for number in states], default=-1)
        index = bisect_right(self._firsts, lowest) - 1
        if index >= 0:
            first, period, rounds = span = self._spans[index]
            if lowest < first + period * rounds:
                return span, (lowest - first) // period
        return None, 0

    def _place(self, family: Family[More], round_: int) -> Place[More]:
        """The place of a family in a round."""
        if family.span is None or not round_:
            return family.place
        return self._shifted(family.place, family.span, round_)

    def _shifted(self, place: Place[More], span: Span, rounds: int) -> Place[More]:
        first, period, count = span
        stop, by, size = first + period * count, period * rounds, self._size
        return (
            frozenset([n + by if first <= n % size < stop else n for n in place[0]]),
            place[1],
        )
