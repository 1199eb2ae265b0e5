"""A bound on the time that one compilation may take, looked at wherever work can pile up."""

from __future__ import annotations

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


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """Let `check_deadline` raise once the block has run for so long; an earlier one stays.

    Example: `with deadline(10): load_schema(source)`
    """
    ends = time.thread_time() + seconds
    token = _DEADLINE.set(min((ends, seconds, time.perf_counter() + seconds), _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_deadline() -> None:
    """Raise a LimitError if the time of the innermost `deadline` is over."""
    ends, seconds, look = _DEADLINE.get()
    if time.perf_counter() >= look and time.thread_time() > ends:
        raise LimitError(
            f"the schema takes longer to compile than Limits.max_seconds={seconds:g}; simplify its "
            "patterns and the parts that combine many alternatives, or raise the limit"
        )
