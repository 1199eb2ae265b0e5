"""A bound on the time that one compilation may take, looked at wherever work can pile up."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from structgen.errors import LimitError

_DEADLINE: ContextVar[tuple[float, float, float]] = ContextVar("deadline", default=(inf, inf, inf))
"""(when to stop, by the thread's clock; the seconds that were given; when to look, by the wall's)

The thread's clock counts work: a busy machine, or waiting for another compilation, takes no time.
Asking for it takes a hundred times as long as asking for the time of day, before which it cannot
be over.
"""

_uncounted = threading.local()


def _worked_s() -> float:
    """The seconds that this thread has worked, without what is `uncounted`."""
    return time.thread_time() - getattr(_uncounted, "seconds", 0.0)


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """Let `check_deadline` raise once the block has run for so long; an earlier one stays.

    Example: `with deadline(10): load_schema(source)`
    """
    ends = _worked_s() + seconds
    token = _DEADLINE.set(min((ends, seconds, time.perf_counter() + seconds), _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextmanager
def uncounted() -> Generator[None]:
    """Leave the block out of what deadlines count: it is not the schema's fault."""
    before = _worked_s()
    try:
        yield
    finally:
        _uncounted.seconds = time.thread_time() - before


def check_deadline() -> None:
    """Raise a LimitError if the time of the innermost `deadline` is over."""
    ends, seconds, look = _DEADLINE.get()
    if time.perf_counter() >= look and _worked_s() > ends:
        raise LimitError(
            f"the schema takes longer to compile than Limits.max_seconds={seconds:g}; simplify its "
            "patterns and the parts that combine many alternatives, or raise the limit"
        )
