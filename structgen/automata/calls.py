"""What the states of a frame call."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NO_LIMIT = 2**30
"""The `room` register of an unbounded counter."""


class Call(NamedTuple):
    """A call of another frame.

    `a` and `b` are the callee's first registers; when it returns, the caller goes on in `to`.
    """

    callee: object
    """Key of the called frame among the frames that are linked together."""
    to: int
    a: int = 0
    b: int = NO_LIMIT
    flags: int = 0
    floor: int = 0
    """At least so many tokens are reckoned for the callee, whose shortest texts may be taken."""


# Columns of the rows.
STATE, CALLEE, TO, A, B, CALL_FLAGS, FLOOR = range(7)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """All calls of a frame, K of them, as numbers.

    A large schema has thousands, most of them to a few frames; as objects they would take longer
    to make, to link and to collect than all else of a frame.
    """

    callees: tuple[object, ...]
    """The keys of the frames that are called, each once."""
    rows: npt.NDArray[np.int32]
    """int32[K, 7]: columns as above, by ascending state; CALLEE is an index into `callees`."""

    @classmethod
    def of(cls, calls: Iterable[tuple[int, Call]]) -> Calls:
        """From (state, call), by ascending state."""
        numbers: dict[object, int] = {}
        rows = (
            (state, numbers.setdefault(callee, len(numbers)), to, a, min(b, NO_LIMIT), flags, floor)
            for state, (callee, to, a, b, flags, floor) in calls
        )
        found = numbered(rows).reshape(-1, 7)
        return cls(tuple(numbers), found)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, Call]]:
        for state, callee, *rest in self.rows.tolist():
            yield state, Call(self.callees[callee], *rest)


def numbered(rows: Iterable[Iterable[int]]) -> npt.NDArray[np.int32]:
    """All numbers of some rows, one after another.

    By way of an array: numpy looks at each number of each tuple, which takes three times as long.
    """
    return np.array(array("i", chain.from_iterable(rows)), np.int32)


NO_CALLS = Calls((), np.zeros((0, 7), np.int32))
