"""Integers, floats and decimals.

A float or a decimal is read from JSON through the nearest double, so what is generated on a
decimal grid keeps to the 15 digits that a double always holds; integers are read exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from structgen.schema import nodes
from structgen.schema.core_reader import Core, Reader, ReadType
from structgen.schema.grid import FRACTION_DIGITS
from structgen.schema.nodes import Never, Node

BOUNDS = ("ge", "gt", "le", "lt")
INTEGER_DIGITS = 19
"""Most digits of an integer on a side without a bound."""
EXACT_DIGITS = 15
"""Decimal digits that a double keeps."""
FLOAT_TOLERANCE = Fraction(99, 10**11)
"""A little less than what Pydantic lets the remainder of a float division differ from zero."""
LARGEST_BOUND = 2**53
"""Above this a decimal's bound could separate an integer from its double."""
OTHER_UNIT = "use wider bounds, or another unit"

_Limit: TypeAlias = tuple[Any, Callable[[Any], int]]


def _integer(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, *BOUNDS, "multiple_of")
    low = _extreme(max, [(core.get("ge"), math.ceil), (core.get("gt"), _above)])
    high = _extreme(min, [(core.get("le"), math.floor), (core.get("lt"), _below)])
    node = nodes.integer(low, high)
    step = core.get("multiple_of")
    if step is not None and not isinstance(node, Never):
        node = _multiples(low, high, abs(step))
    return reader.possible(node, path)


def _multiples(low: int | None, high: int | None, step: int) -> Node:
    """Integers between two bounds; a side without one has at least INTEGER_DIGITS digits."""
    reach = max(10**INTEGER_DIGITS - 1, abs(low or 0) + step, abs(high or 0) + step)
    return nodes.fixed(-reach if low is None else low, reach if high is None else high, 0, step)


def _extreme(pick: Callable[[list[int]], int], bounds: list[_Limit]) -> int | None:
    """The strongest of the bounds that are set, as an inclusive one."""
    known = [inclusive(bound) for bound, inclusive in bounds if bound is not None]
    return pick(known) if known else None


def _above(bound: Any) -> int:
    return math.floor(bound) + 1


def _below(bound: Any) -> int:
    return math.ceil(bound) - 1


def _number(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, *BOUNDS, "allow_inf_nan", "multiple_of")
    low, above = _tighter(core.get("ge"), core.get("gt"), 1)
    high, below = _tighter(core.get("le"), core.get("lt"), -1)
    if problem := nodes.too_fine_bounds(low, high, above, below):
        return reader.refuse(path, problem, OTHER_UNIT)
    node = nodes.number(low, high, above, below)
    step = core.get("multiple_of")
    if step is not None and not isinstance(node, Never):
        grid = _float_grid(abs(float(step)))
        if grid.most < grid.step:
            return _too_fine(reader, step, path)
        return _on_grid(reader, core, path, [grid], least_places=1)
    return reader.possible(node, path)


def _tighter(inclusive: Any, exclusive: Any, sign: int) -> tuple[float | None, bool]:
    """The stronger of two bounds on one side, and whether it is exclusive."""
    if exclusive is None:
        return (None if inclusive is None else float(inclusive)), False
    if inclusive is None or sign * exclusive >= sign * inclusive:
        return float(exclusive), True
    return float(inclusive), False


class _Grid:
    """Multiples of `step / 10**places` below `most / 10**places`."""

    def __init__(self, places: int, step: int, most: int) -> None:
        while places > 0 and step % 10 == 0:
            places, step, most = places - 1, step // 10, most // 10
        self.places, self.step, self.most = places, step, most

    @classmethod
    def of(cls, multiple: Decimal) -> _Grid:
        """Multiples of a decimal: `0.25` is a step of 25 with two places."""
        _, digits, exponent = multiple.normalize().as_tuple()
        power = int(exponent)
        step = int("".join(map(str, digits))) * 10 ** max(power, 0)
        return cls(max(-power, 0), step, 10**EXACT_DIGITS - 1)

    def on(self, places: int, most: int) -> _Grid:
        """Those that also have at most `places` digits after the point and stay below `most`."""
        both = max(self.places, places)
        step = math.lcm(self.step * 10 ** (both - self.places), 10 ** (both - places))
        reach = min(self.most * 10 ** (both - self.places), most * 10 ** (both - places))
        return _Grid(both, step, reach)


def _float_grid(multiple: float) -> _Grid:
    """Decimal multiples that Pydantic surely takes for multiples of a double.

    It allows a remainder of FLOAT_TOLERANCE, which grows with the number where `multiple` itself
    is rounded: multiples of 0.1 are certain up to six million.
    """
    decimal = Decimal(repr(multiple))
    grid = _Grid.of(decimal)
    rounding = abs(Fraction(multiple) - Fraction(decimal))
    if rounding:
        error = rounding + Fraction(multiple) / 2**53
        grid.most = min(grid.most, int(FLOAT_TOLERANCE / error) * grid.step)
    return grid


def _too_fine(reader: Reader, step: Any, path: str) -> Node:
    problem = f"multiples of {step} have more than {EXACT_DIGITS} digits"
    return reader.refuse(path, problem, "use a multiple with fewer digits")


def _on_grid(
    reader: Reader, core: Core, path: str, grids: list[_Grid], least_places: int = 0
) -> Node:
    """Grid numbers within a core schema's bounds, which compare what the texts are read as.

    Args:
        least_places: digits that may stand behind the point also where all of them are zeros.
    """
    known = [Decimal(str(core[key])) for key in BOUNDS if core.get(key) is not None]
    reach = max(Fraction(grid.most, 10**grid.places) for grid in grids)
    if any(abs(Fraction(bound)) > reach for bound in known if bound.is_finite()):
        return reader.refuse(
            path,
            f"its numbers are certain up to {float(reach):g}, which a bound exceeds",
            "use bounds closer to zero, an int, or a Decimal without other constraints",
        )
    bounded = (_bounded(core, grid, least_places) for grid in grids)
    return reader.possible(nodes.union(bounded), path)


def _bounded(core: Core, grid: _Grid, least_places: int) -> Node:
    low, high = -grid.most, grid.most
    for key in BOUNDS:
        bound = core.get(key)
        if bound is None or not Decimal(str(bound)).is_finite():
            continue
        exact = Fraction(Decimal(str(bound))) * 10**grid.places
        if key in ("ge", "gt"):
            low = max(low, math.ceil(exact) if key == "ge" else math.floor(exact) + 1)
        else:
            high = min(high, math.floor(exact) if key == "le" else math.ceil(exact) - 1)
    zeros = 10 ** max(least_places - grid.places, 0)
    places = max(grid.places, least_places)
    return nodes.fixed(low * zeros, high * zeros, places, grid.step * zeros)


def _decimal(reader: Reader, core: Core, path: str) -> Node:
    known = ("allow_inf_nan", "multiple_of", "max_digits", "decimal_places")
    reader.check_keys(core, path, *BOUNDS, *known)
    bounds = [Decimal(str(core[key])) for key in BOUNDS if core.get(key) is not None]
    if any(bound.is_nan() or abs(bound) > LARGEST_BOUND for bound in bounds):
        return reader.refuse(
            path, "a bound of a Decimal is beyond 2**53 in size", "use an int, or a str"
        )
    digits, places = core.get("max_digits"), core.get("decimal_places")
    multiple = core.get("multiple_of")
    if digits is None and places is None and multiple is None:
        return _free_decimal(reader, core, path)
    grids = _digit_grids(digits, places)
    if multiple is not None:
        step = _Grid.of(abs(Decimal(str(multiple))))
        if step.most < step.step:
            return _too_fine(reader, multiple, path)
        grids = [step.on(grid.places, grid.most) for grid in grids] or [step]
    node = _on_grid(reader, core, path, grids)
    if digits is not None and places is not None and digits <= places:
        return _without_zero(reader, node, path)
    return node


def _free_decimal(reader: Reader, core: Core, path: str) -> Node:
    """Only bounds: the doubles whose shortest decimals lie between them."""
    low, above = _nearest(core.get("ge"), core.get("gt"), math.inf)
    high, below = _nearest(core.get("le"), core.get("lt"), -math.inf)
    if problem := nodes.too_fine_bounds(low, high, above, below):
        return reader.refuse(path, problem, OTHER_UNIT)
    return reader.possible(nodes.number(low, high, above, below), path)


def _nearest(inclusive: Any, exclusive: Any, inwards: float) -> tuple[float | None, bool]:
    """A bound on doubles that says what a bound on their shortest decimals does."""
    sign = 1 if inwards > 0 else -1
    low = None if inclusive is None else Decimal(str(inclusive))
    strict = None if exclusive is None else Decimal(str(exclusive))
    if strict is not None and (low is None or sign * strict >= sign * low):
        bound, exclusively = strict, True
    elif low is not None:
        bound, exclusively = low, False
    else:
        return None, False
    double = float(bound)
    written = Decimal(repr(double))
    if written == bound:
        return double, exclusively
    if sign * written < sign * bound:
        double = math.nextafter(double, inwards)
    return double, False


def _digit_grids(digits: int | None, places: int | None) -> list[_Grid]:
    """Numbers with at most so many digits, and so many of them after the point."""
    exact = 10**EXACT_DIGITS - 1
    if digits is None:
        most = exact if places else 10**INTEGER_DIGITS - 1
        return [] if places is None else [_Grid(places, 1, most)]
    most = 10**digits - 1
    if places is None:
        after = range(1, min(digits, FRACTION_DIGITS) + 1)
        return [_Grid(0, 1, most), *(_Grid(n, 1, min(most, exact)) for n in after)]
    shared = min(digits, places)
    return [_Grid(shared, 1, min(most, exact) if shared else most)]


def _without_zero(reader: Reader, node: Node, path: str) -> Node:
    """Pydantic counts the digit of a lone zero, so zero has too many before the point."""
    parts = [node] if isinstance(node, nodes.Fixed) else getattr(node, "options", ())
    split = [
        nodes.fixed(*sides, part.places, part.step)
        for part in parts
        for sides in ((part.low, min(part.high, -1)), (max(part.low, 1), part.high))
    ]
    return reader.possible(nodes.union(split), path) if split else node


NUMBERS: Mapping[str, ReadType] = {"int": _integer, "float": _number, "decimal": _decimal}
