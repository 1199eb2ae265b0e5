"""Frames of JSON numbers, with bounds.

Bounds are compared digit by digit on a decimal grid: a text with at most `fraction_digits` digits
after the point is an integer on the grid of 10**-fraction_digits, so both bounds are integers of
known digits and a number is in range exactly if its digits are. Whole numbers are the grid of 1.

Canonical choices (documented for users): at most 19 digits in an integer without bounds, at most
16 before and 20 after the point of a fraction; a number with bounds is written without an
exponent; no negative zero with bounds; magnitudes stay below 1e308, so that no value is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from structgen.automata.frames import Frame, FrameBuilder
from structgen.automata.remainders import Remainders
from structgen.deadline import check_deadline
from structgen.errors import LimitError
from structgen.schema.grid import FRACTION_DIGITS, WHOLE_DIGITS, decimal_text, number_grid

INTEGER_DIGITS = 19
SCIENTIFIC_DIGITS = 17
MOST_NUMBER_STATES = 20_000

LESS, EQUAL, GREATER = -1, 0, 1
FREE = -1


class Digits(NamedTuple):
    """How far a magnitude is written, compared with the bounds' digits at the same places."""

    whole: int
    """Digits before the point so far, 0 once the point is written."""
    fraction: int
    """Digits after the point so far, -1 before the point."""
    low: int
    """LESS, EQUAL or GREATER than the lower bound, were both equally long."""
    high: int
    """The same against the upper bound."""
    zero: bool = False
    """The whole part is a single 0, which no digit may follow."""
    remainder: int = 0
    """The digits so far as one whole number, modulo the step."""
    near: tuple[int, ...] = ()
    """For each gap: how far the number is above its last multiple, FREE if it cannot be one."""


class Bounds(NamedTuple):
    """Inclusive bounds of a magnitude, as digit strings on the grid."""

    low: str
    high: str
    fraction_digits: int
    step: int = 1
    """Only multiples of it, on the grid."""
    gaps: tuple[int, ...] = ()
    """No multiples of any of them, on the grid."""

    def whole(self, digits: str) -> int:
        return len(digits) - self.fraction_digits


@lru_cache(maxsize=256)
def integer_frame(minimum: int | None, maximum: int | None) -> Frame:
    """Integers in [minimum, maximum]; None is the largest magnitude that is written."""
    if minimum is None and maximum is None:
        return _any_integer()
    widest = max(len(decimal_text(abs(bound))) for bound in (minimum or 0, maximum or 0))
    limit = 10 ** max(INTEGER_DIGITS, widest) - 1
    low = -limit if minimum is None else minimum
    high = limit if maximum is None else maximum
    return _grid_frame("integer", low, high, 0)


@cache
def _any_integer() -> Frame:
    most = 10**INTEGER_DIGITS - 1
    return _grid_frame("integer", -most, most, 0)


@lru_cache(maxsize=256)
def bounded_number_frame(
    minimum: float | None, maximum: float | None, above: bool, below: bool
) -> Frame | None:
    """Decimal fractions whose nearest double is within the bounds; None if there is none."""
    low, high = number_grid(minimum, maximum, above, below)
    return _grid_frame("number", low, high, FRACTION_DIGITS) if low <= high else None


@lru_cache(maxsize=256)
def fixed_frame(low: int, high: int, places: int, step: int, gaps: tuple[int, ...] = ()) -> Frame:
    """Multiples n of `step`, and of none of `gaps`, between the bounds, as n / 10**places.

    Raises:
        LimitError: the remainders by such a step need too many states.
    """
    return _grid_frame("fixed", low, high, places, step, gaps)


def _grid_frame(
    name: str,
    low: int,
    high: int,
    fraction_digits: int,
    step: int = 1,
    gaps: tuple[int, ...] = (),
) -> Frame:
    """Numbers n / 10**fraction_digits for low <= n <= high, multiples of `step` alone."""
    b = FrameBuilder(name)
    magnitudes = _Magnitudes(b, Remainders(step), [Remainders(gap) for gap in gaps])
    start = b.state()
    if high >= 0:
        magnitudes.add(start, _bounds(max(low, 0), high, fraction_digits, step, gaps))
    if low < 0:
        minus = b.state()
        b.edge(start, 0x2D, 0x2D, minus)
        # Zero stays without a sign: the smallest negative magnitude is one step of the grid.
        magnitudes.add(minus, _bounds(max(1, -high), -low, fraction_digits, step, gaps))
    return b.frame()


def _bounds(low: int, high: int, fraction_digits: int, step: int, gaps: tuple[int, ...]) -> Bounds:
    first, last = (decimal_text(bound).zfill(fraction_digits + 1) for bound in (low, high))
    return Bounds(first, last, fraction_digits, step, gaps)


class _Magnitudes:
    """The states of all magnitudes between two bounds, added to a builder without dead ends."""

    def __init__(
        self, b: FrameBuilder, remainders: Remainders, above: Sequence[Remainders]
    ) -> None:
        self._b = b
        self._remainders = remainders
        self._above = above
        """Of whole numbers by each gap."""
        self._bounds = Bounds("0", "0", 0)
        self._shared: dict[Digits, int | None] = {}
        """States that do not depend on the lower bound's digits; None for those with no end."""

    def add(self, start: int, bounds: Bounds) -> None:
        """Give `start` the edges of the first digit, and add everything behind it.

        What is above both lower bounds is shared with the magnitudes that were added before.
        """
        before, self._bounds = self._bounds, bounds
        if before._replace(low=bounds.low) != bounds or len(before.low) != len(bounds.low):
            self._shared = {}
        first = Digits(0, -1, EQUAL, EQUAL, near=(0,) * len(self._bounds.gaps))
        edges = self._explore(first)
        ends = {digits for digits in edges if self._accepts(digits)}
        shared = {digits: s for digits, s in self._shared.items() if s is not None}
        live = _reaching(edges, ends | shared.keys())
        states = {first: start, **shared}
        for digits in edges:
            if digits in live and digits != first:
                states[digits] = self._b.state(accept=self._accepts(digits))
        for digits, outgoing in edges.items():
            for low, high, to in outgoing if digits in states else ():
                if to in states:
                    self._b.edge(states[digits], low, high, states[to])
            if digits.low == GREATER:
                self._shared[digits] = states.get(digits)

    def _explore(self, first: Digits) -> _Edges:
        edges: _Edges = {}
        pending = [first]
        while pending:
            at = pending.pop()
            if at in edges or at in self._shared:
                continue
            check_deadline()
            if len(edges) > MOST_NUMBER_STATES:
                raise LimitError(
                    f"the multiples of a step{_shown(self._bounds)} between such bounds need more "
                    f"than {MOST_NUMBER_STATES} states; use a smaller multiple_of or drop it"
                )
            edges[at] = list(self._outgoing(at))
            pending.extend(to for _, _, to in edges[at])
        return edges

    def _outgoing(self, at: Digits) -> Iterator[tuple[int, int, Digits]]:
        for first, last in self._ranges(at):
            after = self._read(at, first)
            if after is not None:
                yield 0x30 + first, 0x30 + last, after
        if at.fraction < 0 < min(at.whole, self._bounds.fraction_digits):
            low, high = self._whole_order(at)
            if low != LESS and high != GREATER:
                near = self._behind_point(at)
                yield 0x2E, 0x2E, Digits(0, 0, low, high, remainder=at.remainder, near=near)

    def _ranges(self, at: Digits) -> Iterator[tuple[int, int]]:
        """Digit ranges within which the comparison with both bounds comes out the same."""
        plain = self._bounds.step == 1 and all(near == FREE for near in at.near)
        cuts = {0, 1, 10} if plain else set(range(11))
        for tight, bound in ((at.low, self._bounds.low), (at.high, self._bounds.high)):
            digit = self._digit(at, bound)
            if tight == EQUAL and digit is not None:
                cuts |= {digit, digit + 1}
        edges = sorted(cuts)
        return ((low, high - 1) for low, high in pairwise(edges))

    def _digit(self, at: Digits, bound: str) -> int | None:
        """The bound's digit that the next one is compared with."""
        whole = self._bounds.whole(bound)
        if at.fraction < 0:
            return int(bound[at.whole]) if at.whole < whole else None
        place = whole + at.fraction
        return int(bound[place]) if place < len(bound) else None

    def _read(self, at: Digits, digit: int) -> Digits | None:
        """After one more digit; None where every number is out of range or badly written."""
        bounds = self._bounds
        rest = self._remainders.of((at.remainder * 10 + digit) % bounds.step)
        near = self._nearer(at, digit)
        low = _compare(at.low, digit, self._digit(at, bounds.low))
        high = _compare(at.high, digit, self._digit(at, bounds.high))
        if at.fraction >= 0:
            if at.fraction == bounds.fraction_digits or low == LESS or high == GREATER:
                return None
            more = Digits(0, at.fraction + 1, low, high, remainder=rest, near=near)
            return self._normal(more)
        if at.zero or at.whole == bounds.whole(bounds.high):
            return None
        return self._normal(Digits(at.whole + 1, -1, low, high, at.whole == digit == 0, rest, near))

    def _nearer(self, at: Digits, digit: int) -> tuple[int, ...]:
        """The distances above the last multiple of each gap, after one more digit."""
        if not self._bounds.fraction_digits:
            pairs = zip(at.near, self._bounds.gaps, self._above, strict=True)
            return tuple(same.of((near * 10 + digit) % gap) for near, gap, same in pairs)
        if at.fraction < 0:
            return tuple(
                (near * 10 + digit) % self._whole_gap(gap)
                for near, gap in zip(at.near, self._bounds.gaps, strict=True)
            )
        unit = 10 ** max(self._bounds.fraction_digits - at.fraction - 1, 0)
        return tuple(
            FREE if near == FREE else _above(near + digit * unit, gap, unit)
            for near, gap in zip(at.near, self._bounds.gaps, strict=True)
        )

    def _whole_gap(self, gap: int) -> int:
        """The gap among numbers whose fraction is zero, in units of the whole part."""
        return gap // math.gcd(gap, 10**self._bounds.fraction_digits)

    def _behind_point(self, at: Digits) -> tuple[int, ...]:
        unit = 10**self._bounds.fraction_digits
        pairs = zip(at.near, self._bounds.gaps, strict=True)
        return tuple(_above(near * unit, gap, unit) for near, gap in pairs)

    def _normal(self, digits: Digits) -> Digits:
        """Merge states that no continuation can tell apart."""
        bounds = self._bounds
        tail = self._tail(digits, bounds.low)
        if digits.whole > bounds.whole(bounds.low) or (digits.low == EQUAL and not tail.strip("0")):
            digits = digits._replace(low=GREATER)
        if digits.high == EQUAL and not self._tail(digits, bounds.high).strip("9"):
            digits = digits._replace(high=LESS)
        return digits

    def _tail(self, digits: Digits, bound: str) -> str:
        """The bound's digits that are not compared yet."""
        whole = self._bounds.whole(bound)
        return bound[digits.whole if digits.fraction < 0 else whole + digits.fraction :]

    def _whole_order(self, at: Digits) -> tuple[int, int]:
        """The finished whole part against both bounds' whole parts."""

        def order(tight: int, whole: int) -> int:
            return LESS if at.whole < whole else GREATER if at.whole > whole else tight

        bounds = self._bounds
        return order(at.low, bounds.whole(bounds.low)), order(at.high, bounds.whole(bounds.high))

    def _accepts(self, at: Digits) -> bool:
        """Whether the number may end here: missing fraction digits count as zeros."""
        if at.fraction == 0 or at.whole == at.fraction + 1 == 0:
            return False
        unwritten = self._bounds.fraction_digits - max(at.fraction, 0)
        if at.remainder * 10**unwritten % self._bounds.step:
            return False
        if 0 in at.near:
            return False
        low, high = self._whole_order(at) if at.fraction < 0 else (at.low, at.high)
        at_least = low == GREATER or (
            low == EQUAL and not self._tail(at, self._bounds.low).strip("0")
        )
        return at_least and high != GREATER


def _shown(bounds: Bounds) -> str:
    """A step, where it is short enough to be shown: ` of 7`, ` of 125 / 10**4`."""
    if bounds.step >= 10**20:
        return f" of {len(decimal_text(bounds.step))} digits"
    places = f" / 10**{bounds.fraction_digits}" if bounds.fraction_digits else ""
    return f" of {bounds.step}{places}"


_Edges: TypeAlias = dict[Digits, list[tuple[int, int, Digits]]]


def _above(distance: int, gap: int, unit: int) -> int:
    """A distance modulo the gap; FREE where less than one more unit cannot close it."""
    rest = distance % gap
    return rest if rest == 0 or rest + unit > gap else FREE


def _compare(so_far: int, digit: int, bound: int | None) -> int:
    if so_far != EQUAL or bound is None:
        return so_far
    return LESS if digit < bound else GREATER if digit > bound else EQUAL


def _reaching(edges: _Edges, targets: set[Digits]) -> set[Digits]:
    """States from which one of `targets` can be reached, those included."""
    sources: dict[Digits, list[Digits]] = {}
    for source, outgoing in edges.items():
        for _, _, to in outgoing:
            sources.setdefault(to, []).append(source)
    reached, pending = set(targets), list(targets)
    while pending:
        for source in sources.get(pending.pop(), ()):
            if source not in reached:
                reached.add(source)
                pending.append(source)
    return reached


@cache
def number_frame() -> Frame:
    """Numbers without bounds: a decimal fraction, or one digit before the point and an exponent."""
    b = FrameBuilder("number")
    start, zero = b.state(), b.state(accept=True)
    minus = b.state()
    b.edge(start, 0x2D, 0x2D, minus)
    exponent = _exponent(b)
    wholes = [b.state(accept=True) for _ in range(WHOLE_DIGITS)]
    for state in (start, minus):
        b.edge(state, 0x30, 0x30, zero)
        b.edge(state, 0x31, 0x39, wholes[0])
    for state, after in pairwise(wholes):
        b.edge(state, 0x30, 0x39, after)
    b.bytes_edge(wholes[0], b"eE", exponent)
    point, short_point = _fraction(b, None), _fraction(b, exponent)
    for state in (zero, *wholes[1:]):
        b.edge(state, 0x2E, 0x2E, point)
    b.edge(wholes[0], 0x2E, 0x2E, short_point)
    return b.frame()


def _fraction(b: FrameBuilder, exponent: int | None) -> int:
    """Digits after the point, behind which an exponent may follow if few enough were written."""
    point = b.state()
    digits = [b.state(accept=True) for _ in range(FRACTION_DIGITS)]
    for state, after in pairwise((point, *digits)):
        b.edge(state, 0x30, 0x39, after)
    for state in digits[:SCIENTIFIC_DIGITS] if exponent is not None else ():
        b.bytes_edge(state, b"eE", exponent or 0)
    return point


def _exponent(b: FrameBuilder) -> int:
    """What follows the letter e: up to +307 (no overflow to infinity), down to -324."""
    letter, plus, minus = b.state(), b.state(), b.state()
    last = b.state(accept=True)
    second = b.state(accept=True)  # one digit written; two more may follow
    third = b.state(accept=True)  # two digits written; one more may follow
    b.edge(letter, 0x2B, 0x2B, plus)
    b.edge(letter, 0x2D, 0x2D, minus)
    three, thirty = b.state(accept=True), b.state(accept=True)
    ends, far_three, far_32 = third, b.state(accept=True), b.state(accept=True)
    for state in (letter, plus, minus):
        b.edge(state, 0x30, 0x32, second)
        b.edge(state, 0x34, 0x39, ends_after_two := b.state(accept=True))
        b.edge(ends_after_two, 0x30, 0x39, last)
        b.edge(state, 0x33, 0x33, far_three if state == minus else three)
    b.edge(second, 0x30, 0x39, ends)
    b.edge(third, 0x30, 0x39, last)
    b.edge(three, 0x30, 0x30, thirty)
    b.edge(three, 0x31, 0x39, last)
    b.edge(thirty, 0x30, 0x37, last)
    b.edge(far_three, 0x30, 0x31, third)
    b.edge(far_three, 0x32, 0x32, far_32)
    b.edge(far_three, 0x33, 0x39, last)
    b.edge(far_32, 0x30, 0x34, last)
    return letter
