"""Sets of numbers: whole ones, decimals on a grid, and all between two bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from structgen.schema import nodes
from structgen.schema.grid import on_grid
from structgen.schema.jsonschema.definitions import Unrepresentable
from structgen.schema.nodes import Fixed, Integer, Never, Node, Number

NUMERIC = (Integer, Number, Fixed)
Numeric: TypeAlias = Integer | Number | Fixed

WHOLE_DIGITS = 16
"""Digits before the point of a multiple that has no bounds."""
MOST_WHOLE = 10**19 - 1
"""The largest whole number that is written without a bound."""
MOST_DIGITS = 4000
"""Digits of a bound or of a divisor."""


def meet_numbers(a: Numeric, b: Numeric) -> Node:
    """The numbers that both nodes admit."""
    match a, b:
        case Integer(), Integer():
            return nodes.integer(_most(a.minimum, b.minimum), _least(a.maximum, b.maximum))
        case Number(), Number():
            return _meet_bounds(a, b)
        case Fixed(), Fixed():
            return _meet_grids(a, b)
        case (Fixed() as grid, Integer() as other) | (Integer() as other, Fixed() as grid):
            return _whole_multiples(grid, other)
        case (Integer() as other, Number() as bounds) | (Number() as bounds, Integer() as other):
            low, high = grid_bounds(bounds, 0)
            low, high = _most(other.minimum, low), _least(other.maximum, high)
            return _whole_between(low, high, bounds.gaps)
        case (Fixed() as grid, Number() as bounds) | (Number() as bounds, Fixed() as grid):
            low, high = grid_bounds(bounds, grid.places)
            low = grid.low if low is None else max(low, grid.low)
            high = grid.high if high is None else min(high, grid.high)
            gaps = (*grid.gaps, *on_grid(bounds.gaps, grid.places))
            return simple_fixed(low, high, grid.places, grid.step, gaps)


def _most(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _whole_between(low: int | None, high: int | None, gaps: tuple[Fraction, ...]) -> Node:
    """Whole numbers between bounds that are multiples of no gap."""
    if not gaps:
        return nodes.integer(low, high)
    low = min(-MOST_WHOLE, high or 0) if low is None else low
    high = max(MOST_WHOLE, low) if high is None else high
    return simple_fixed(low, high, 0, 1, on_grid(gaps, 0))


def _meet_bounds(a: Number, b: Number) -> Node:
    low, above = a.minimum, a.exclusive_minimum
    if low is None or (b.minimum is not None and b.minimum >= low):
        above = b.exclusive_minimum or (above and b.minimum == low)
        low = b.minimum
    high, below = a.maximum, a.exclusive_maximum
    if high is None or (b.maximum is not None and b.maximum <= high):
        below = b.exclusive_maximum or (below and b.maximum == high)
        high = b.maximum
    if problem := nodes.too_fine_bounds(low, high, above, below):
        raise Unrepresentable(problem)
    return nodes.number(low, high, above, below, (*a.gaps, *b.gaps))


def _meet_grids(a: Fixed, b: Fixed) -> Node:
    places = max(a.places, b.places)
    left, right = _finer(a, places), _finer(b, places)
    step = math.lcm(left.step, right.step)
    low, high = max(left.low, right.low), min(left.high, right.high)
    return simple_fixed(low, high, places, step, left.gaps + right.gaps)


def _finer(grid: Fixed, places: int) -> Fixed:
    scale = 10 ** (places - grid.places)
    gaps = tuple(gap * scale for gap in grid.gaps)
    return Fixed(grid.low * scale, grid.high * scale, places, grid.step * scale, gaps)


def _whole_multiples(grid: Fixed, other: Integer) -> Node:
    scale = 10**grid.places
    low, high = -(-grid.low // scale), grid.high // scale
    step = math.lcm(grid.step, scale) // scale
    low = low if other.minimum is None else max(low, other.minimum)
    high = high if other.maximum is None else min(high, other.maximum)
    gaps = (math.lcm(gap, scale) // scale for gap in grid.gaps)
    return simple_fixed(low, high, 0, step, tuple(gaps))


def simple_fixed(low: int, high: int, places: int, step: int, gaps: tuple[int, ...] = ()) -> Node:
    """A grid with no more places than it needs."""
    if step >= 10**MOST_DIGITS:
        raise Unrepresentable(f"the common multiple has more than {MOST_DIGITS} digits")
    while places and step % 10 == 0:
        low, high, places, step = -(-low // 10), high // 10, places - 1, step // 10
        gaps = tuple(gap // math.gcd(gap, 10) for gap in gaps)
    if low > high:
        return Never("no multiple lies between the bounds")
    if places == 0 and step == 1 and not gaps:
        return nodes.integer(low, high)
    return nodes.fixed(low, high, places, step, gaps)


def multiples(divisor: Fraction) -> Node:
    """All multiples of a decimal number."""
    places, scale = 0, 1
    while divisor.denominator != 1 and scale % divisor.denominator:
        places, scale = places + 1, scale * 10
    step = int(divisor * scale)
    if places == 0 and step == 1:
        return Integer()
    limit = max(10 ** (WHOLE_DIGITS + places), 1000 * step)
    return simple_fixed(-limit, limit, places, step)


def grid_bounds(bounds: Number, places: int) -> tuple[int | None, int | None]:
    """The first and the last n whose `n / 10**places` lies within bounds, as a double does."""
    low = high = None
    if bounds.minimum is not None:
        low = _first(bounds.minimum, places, bounds.exclusive_minimum)
    if bounds.maximum is not None:
        high = -_first(-bounds.maximum, places, bounds.exclusive_maximum)
    return low, high


def _first(bound: float, places: int, above: bool) -> int:
    """The smallest n whose double is at least (or above) a bound."""
    if above:
        bound = math.nextafter(bound, math.inf)
    scale = 10**places
    if math.isinf(bound):  # above the largest double
        return int(math.copysign(2, bound)) ** 1025 * scale
    below = math.nextafter(bound, -math.inf)
    middle = Fraction(bound) if math.isinf(below) else (Fraction(bound) + Fraction(below)) / 2
    n = math.ceil(middle * scale)
    return n if Fraction(n, scale) >= Fraction(bound) or _double(n, scale) >= bound else n + 1


def _double(n: int, scale: int) -> float:
    try:
        return n / scale
    except OverflowError:
        return math.copysign(math.inf, n)


def without(a: Numeric, b: Numeric) -> list[Node]:
    """The numbers of `a` that `b` does not admit.

    Raises:
        Unrepresentable: those that are left need more digits than are written.
    """
    if isinstance(meet_numbers(a, b), Never):
        return [a]
    match b:
        case Number():
            inside = replace(b, gaps=())
            grids = (multiples(gap) for gap in b.gaps)
            met = (meet_numbers(grid, inside) for grid in grids if isinstance(grid, NUMERIC))
            back = (part for part in met if isinstance(part, NUMERIC))
            return [meet_numbers(a, part) for part in (*_outside(b), *back)]
        case Integer() if isinstance(a, Integer) or _is_whole(a):
            low = None if b.minimum is None else b.minimum - 1
            high = None if b.maximum is None else b.maximum + 1
            parts = [Integer(None, low)] if low is not None else []
            parts += [Integer(high, None)] if high is not None else []
            return [meet_numbers(a, part) for part in parts]
        case Integer() | Fixed() if _contains(b, a):
            return []
        case Integer():
            return [*_beyond(a, b.minimum, b.maximum, 0), _off(a, Fraction(1))]
        case Fixed():
            low, high = _real_bounds(b)
            back = (Fixed(b.low, b.high, b.places, gap) for gap in b.gaps)
            return [
                *_beyond(a, low, high, b.places),
                _off(a, Fraction(b.step, 10**b.places)),
                *(meet_numbers(a, part) for part in back),
            ]


def _is_whole(node: Numeric) -> bool:
    return isinstance(node, Fixed) and node.places == 0


def _contains(outer: Numeric, inner: Numeric) -> bool:
    return not isinstance(inner, Number) and meet_numbers(outer, inner) == inner


def _off(a: Numeric, gap: Fraction) -> Node:
    """The numbers of `a` that are no multiple of a gap."""
    return meet_numbers(a, Number(gaps=(gap,)))


def _real_bounds(grid: Fixed) -> tuple[int | None, int | None]:
    """The bounds of a grid, without those that only keep its numbers short."""
    cap = 10 ** (WHOLE_DIGITS + grid.places) - grid.step
    return (None if grid.low < -cap else grid.low), (None if grid.high > cap else grid.high)


def _beyond(a: Numeric, low: int | None, high: int | None, places: int) -> list[Node]:
    """The numbers of `a` below and above a grid."""
    scale = 10**places
    parts: list[Numeric] = []
    if isinstance(a, Integer) or _is_whole(a):
        parts += [Integer(None, -(-low // scale) - 1)] if low is not None else []
        parts += [Integer(high // scale + 1, None)] if high is not None else []
    else:
        parts += [Number(None, _double(low, scale), False, True)] if low is not None else []
        parts += [Number(_double(high, scale), None, True, False)] if high is not None else []
    return [meet_numbers(a, part) for part in parts]


def _outside(b: Number) -> list[Number]:
    parts: list[Number] = []
    if b.minimum is not None:
        parts.append(Number(None, b.minimum, False, not b.exclusive_minimum))
    if b.maximum is not None:
        parts.append(Number(b.maximum, None, not b.exclusive_maximum, False))
    return parts


def exclude(node: Numeric, values: list[Fraction]) -> list[Node]:
    """A set of numbers without a few.

    Raises:
        Unrepresentable: they are too many.
    """
    if len(values) > 50:
        raise Unrepresentable("more than 50 numbers are excluded")
    parts: list[Node] = [node]
    for value in values:
        parts = [kept for part in parts for kept in _without_one(part, value)]
    return parts


def _without_one(node: Node, value: Fraction) -> list[Node]:
    assert isinstance(node, NUMERIC)
    if isinstance(node, Number):
        bound = float(value)
        parts: list[Node] = [Number(None, bound, False, True), Number(bound, None, True, False)]
    elif isinstance(node, Integer):
        n = int(value)
        if n != value:
            return [node]
        parts = [Integer(None, n - 1), Integer(n + 1, None)]
    else:
        scaled = value * 10**node.places
        if scaled.denominator != 1:
            return [node]
        n = int(scaled)
        parts = [replace(node, high=min(node.high, n - 1)), replace(node, low=max(node.low, n + 1))]
        parts = [
            nodes.fixed(p.low, p.high, p.places, p.step, p.gaps)
            for p in parts
            if isinstance(p, Fixed)
        ]
        return [part for part in parts if not isinstance(part, Never)]
    met = [meet_numbers(node, part) for part in parts if isinstance(part, NUMERIC)]
    return [part for part in met if not isinstance(part, Never)]
