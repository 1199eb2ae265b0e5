"""The decimal grid that bounded numbers are written on.

A number with bounds has at most 20 digits after its point, so it is an integer on the grid of
10**-20, and bounds on its double become bounds on that integer.
"""

from __future__ import annotations

import math
from fractions import Fraction

WHOLE_DIGITS = 16
"""Digits before the point, unless a bound has more."""
FRACTION_DIGITS = 20


def number_grid(
    minimum: float | None, maximum: float | None, above: bool, below: bool
) -> tuple[int, int]:
    """The first and last grid integer whose nearest double is within the bounds."""
    known = [abs(bound) for bound in (minimum, maximum) if bound is not None]
    widest = max((len(str(int(bound))) for bound in known), default=0)
    limit = 10 ** (max(WHOLE_DIGITS, widest) + FRACTION_DIGITS) - 1
    low, high = -limit, limit
    if minimum is not None:
        low = _first_at_least(math.nextafter(minimum, math.inf) if above else minimum)
    if maximum is not None:
        high = -_first_at_least(-(math.nextafter(maximum, -math.inf) if below else maximum))
    return low, high


def _first_at_least(bound: float) -> int:
    """The smallest n with `float(n / 10**FRACTION_DIGITS) >= bound`.

    Decimal text is rounded to the nearest double, so texts from half a step below already count.
    """
    scale = 10**FRACTION_DIGITS
    below = math.nextafter(bound, -math.inf)
    middle = Fraction(bound) if math.isinf(below) else (Fraction(bound) + Fraction(below)) / 2
    n = math.ceil(middle * scale)
    return n if float(Fraction(n, scale)) >= bound else n + 1
