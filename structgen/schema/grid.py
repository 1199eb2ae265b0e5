"""The decimal grid that bounded numbers are written on.

A number with bounds has at most 20 digits after its point, so it is an integer on the grid of
10**-20, and bounds on its double become bounds on that integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from structgen.errors import LimitError

WHOLE_DIGITS = 16
"""Digits before the point, unless a bound has more."""
FRACTION_DIGITS = 20


MOST_DIGITS = 10_000
"""Longer bounds than this are refused: their automata would be useless and slow to build."""


def decimal_text(number: int) -> str:
    """`str(number)` beyond Python's own limit on digits.

    Raises:
        LimitError: more than MOST_DIGITS digits.
    """
    if abs(number).bit_length() < 10_000:
        return str(number)
    if abs(number).bit_length() > MOST_DIGITS * 3.33:
        raise LimitError(f"a bound has more than {MOST_DIGITS} digits; use a smaller one")
    head, tail = divmod(abs(number), 10**3000)
    return "-" * (number < 0) + decimal_text(head) + str(tail).zfill(3000)


def on_grid(gaps: Iterable[Fraction], places: int) -> tuple[int, ...]:
    """The multiples of each gap that lie on the grid of 10**-places, as multiples of an integer.

    Example: of 1.5 on the grid of 1 that is 3.
    """
    return tuple((gap * 10**places).numerator for gap in gaps)


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
