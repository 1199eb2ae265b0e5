"""Compiling under a watchdog: every schema ends soon, with an automaton or with a good error."""

from __future__ import annotations

import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from structgen.compiler import CompiledSchema, compile, forget_schemas  # noqa: A004
from structgen.errors import StructgenError
from structgen.options import Limits
from structgen.testing import byte_vocabulary

SECONDS = 5
"""What compiling may take at most."""
WATCHDOG = 4 * SECONDS
"""When a test gives up: there are two stages, and the clock is looked at now and then only."""
MEMORY_KIB = 1 << 20
MESSAGE = 60_000
"""Characters of the longest message."""
BYTES = byte_vocabulary()


class Hangs(BaseException):
    """The watchdog's; no `except Exception` stops it."""


def outcome(schema: Any, tokens: int = 40) -> CompiledSchema[Any] | StructgenError:
    """The compiled schema, from which some tokens were drawn, or the error; any other one raises.

    Raises:
        AssertionError: it took too long or too much memory, or the message says too little.
    """
    forget_schemas()
    _warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with _watchdog():
        try:
            compiled = compile(schema, BYTES, limits=Limits(max_seconds=SECONDS))
            _walk(compiled, tokens)
            result = compiled
        except StructgenError as error:
            _assert_helpful(str(error))
            result = error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KIB
    return result


def _warm_up() -> None:
    """Have numba's kernels ready: compiling those takes longer than any schema."""
    unique = {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, "a"]}}
    for schema in ({"additionalProperties": {"type": "string"}}, {"type": "integer"}, unique):
        _walk(compile(schema, BYTES), 12)


def _walk(compiled: CompiledSchema[Any], tokens: int) -> None:
    rng = random.Random(1)
    session = compiled.session(max_tokens=compiled.min_tokens + 20)
    for _ in range(tokens):
        allowed = np.flatnonzero(np.unpackbits(session.mask().view(np.uint8), bitorder="little"))
        assert len(allowed), "a dead end"
        session.advance(int(rng.choice(allowed)))
        if session.complete or session.finished or session.exhausted:
            break


def _assert_helpful(message: str) -> None:
    """It can be printed, is not endless, and says more than a word."""
    message.encode()
    assert 20 < len(message) < MESSAGE, len(message)


@contextmanager
def _watchdog() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise Hangs(f"still running after {WATCHDOG} s of work")

    known = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, WATCHDOG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, known)


EITHER = (CompiledSchema, StructgenError)
"""Exact or refused: which of them may change as more schemas are supported."""


def assert_ends(schema: Any, expected: type | tuple[type, ...] = EITHER, words: str = "") -> None:
    """It ends within the bounds, in the expected way, with `words` in the error's message."""
    found = outcome(schema)
    assert isinstance(found, expected), found
    assert words in str(found)
