"""What can go wrong with a pattern, and the bounds on the work that one may cause."""

from __future__ import annotations

from structgen.deadline import check_deadline

STATES = 20_000
"""Default bound on the states of an automaton, before and after it is made deterministic."""

CHARACTERS = 200_000
"""Bound on the length of a pattern; reading one takes about five microseconds a character."""

STEPS_PER_STATE = 40
"""Work allowed for each state that a limit allows; one step takes about half a microsecond."""


class PatternError(ValueError):
    """A pattern is invalid or uses something that no finite automaton here can express."""


class PatternTooLarge(PatternError):
    """The automaton of a pattern would pass the limit on states or work."""


class Meter:
    """Counts states and steps of a construction and stops it at the limit.

    Example: `meter = Meter(20_000); meter.states(len(states)); meter.spend(3)`
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._steps = limit * STEPS_PER_STATE

    def states(self, count: int) -> None:
        """Raise PatternTooLarge if there are more than `limit` states."""
        check_deadline()
        if count > self._limit:
            raise PatternTooLarge(f"the automaton of the pattern needs over {self._limit} states")

    def spend(self, steps: int) -> None:
        """Raise PatternTooLarge once the steps of all calls pass the bound."""
        check_deadline()
        self._steps -= steps
        if self._steps < 0:
            raise PatternTooLarge("the automaton of the pattern takes too much work to build")
