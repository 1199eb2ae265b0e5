"""Which remainders of a number that is being written can be told apart by the digits to come."""

from __future__ import annotations


class Remainders:
    """Classes of remainders by a step, each known by the first of its members that was met.

    Example: by 1000, `of(7)` and `of(123)` are one class, as three zeros must follow either; so
    1000 has four classes, one for each number of zeros at the end, up to three.
    """

    def __init__(self, step: int) -> None:
        self._step = step
        self._powers = [1]
        while self._powers[-1] < step:
            self._powers.append(self._powers[-1] * 10)
        self._members: dict[int, int] = {}
        self._classes: dict[tuple[int, ...], int] = {}

    def of(self, remainder: int) -> int:
        """The class of a remainder."""
        known = self._members.get(remainder)
        if known is None:
            known = self._classes.setdefault(self._completions(remainder), remainder)
            self._members[remainder] = known
        return known

    def _completions(self, remainder: int) -> tuple[int, ...]:
        """For 0, 1, 2 ... more digits: what they must be modulo the step, -1 if they cannot be.

        With as many digits as the step has, any remainder can be completed, and that one number
        says all about longer completions.
        """
        missing = (-remainder * power % self._step for power in self._powers)
        return tuple(
            rest if rest < power else -1 for rest, power in zip(missing, self._powers, strict=True)
        )
