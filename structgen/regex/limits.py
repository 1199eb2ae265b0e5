"""What can go wrong with a pattern, and the bounds on the work that one may cause."""

from __future__ import annotations

from structgen.deadline import check_deadline

STATES = 20_000
"""Default bound on the states of an automaton, before and after it is made deterministic."""

CHARACTERS = 200_000
"""Bound on the length of a pattern; reading one takes about five microseconds a character."""

STEPS_PER_STATE = 40
"""Work allowed for each state that a limit allows; one step takes about half a microsecond."""


CALLS_PER_LOOK = 64
"""Calls of a meter between two looks at the clock."""


class PatternError(ValueError):
    """A pattern is invalid or uses something that no finite automaton here can express."""


class PatternTooLarge(PatternError):
    """The automaton of a pattern would pass the limit on states or work."""


class Meter:
    """Counts states and steps of a construction and stops it at the limit.

    Example: `meter = Meter(20_000); meter.states(len(states)); meter.spend(3)`
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._steps = limit * STEPS_PER_STATE
        self._calls = 0

    def _look(self) -> None:
        """Look at the clock now and then: that takes longer than most steps."""
        self._calls += 1
        if self._calls % CALLS_PER_LOOK == 1:
            check_deadline()

    def states(self, count: int) -> None:
        """Raise PatternTooLarge if there are more than `limit` states."""
        self._look()
        if count > self.limit:
            raise PatternTooLarge(f"the automaton of the pattern needs over {self.limit} states")

    def spend(self, steps: int) -> None:
        """Raise PatternTooLarge once the steps of all calls pass the bound."""
        self._look()
        self._steps -= steps
        if self._steps < 0:
            raise PatternTooLarge("the automaton of the pattern takes too much work to build")
