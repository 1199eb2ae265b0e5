"""Compiling ahead of time: what the first requests of a server would otherwise wait for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structgen.automata.frames import FLAGS, WIDE
from structgen.compiled import CompiledSchema
from structgen.compiler import store
from structgen.options import Options
from structgen.tokens.vocabulary import Vocabulary

MOST_STATES = 256
"""Inner masks that are filled for one schema; a large pattern has more states than are used."""
STEPS = 4
"""Tokens taken in a first session, so that every kernel is loaded."""


@dataclass(frozen=True, slots=True)
class WarmedSchema:
    """One schema that is ready."""

    title: str
    fingerprint: str
    compile_s: float
    """Reading and compiling it, or loading it."""
    masks_s: float
    """Filling the masks of its strings, and a few steps of a session."""
    n_masks: int
    """States of strings whose masks are there now."""


@dataclass(frozen=True, slots=True)
class WarmupReport:
    """What `structgen.warmup` did."""

    schemas: tuple[WarmedSchema, ...]
    total_s: float


def warm_up(schemas: Sequence[Any], vocabulary: Vocabulary, options: Options) -> WarmupReport:
    """Compile and store each schema, and fill the masks of its strings."""
    started = time.perf_counter()
    warmed = tuple(_warmed(schema, vocabulary, options) for schema in schemas)
    return WarmupReport(warmed, time.perf_counter() - started)


def _warmed(schema: Any, vocabulary: Vocabulary, options: Options) -> WarmedSchema:
    started = time.perf_counter()
    compiled = store(schema, vocabulary, options)
    compiled_at = time.perf_counter()
    n_masks = _fill_masks(compiled)
    _take_steps(compiled, None)
    _take_steps(compiled, compiled.min_tokens)
    return WarmedSchema(
        compiled.title,
        compiled.fingerprint,
        compiled_at - started,
        time.perf_counter() - compiled_at,
        n_masks,
    )


def _fill_masks(compiled: CompiledSchema[Any]) -> int:
    """Fill the masks that strings have without a bound; their number."""
    program = compiled.program
    wide = np.flatnonzero(program.states[:, FLAGS] & WIDE).tolist()
    seen: set[tuple[str, int]] = set()
    for state in wide:
        frame, local = program.frame_of(state)
        like = local if frame.like is None else int(frame.like[local])
        if len(seen) < MOST_STATES and (frame.digest, like) not in seen:
            seen.add((frame.digest, like))
            compiled.tables.fill(state - local + like, state - local)
    return len(seen)


def _take_steps(compiled: CompiledSchema[Any], max_tokens: int | None) -> None:
    session = compiled.session(max_tokens)
    for _ in range(STEPS):
        mask = session.mask()
        session.forced()
        words = np.flatnonzero(mask)
        if session.accepting or not len(words):
            return
        word = int(words[0])
        bits = int(mask[word]) & 0xFFFFFFFF
        session.advance(32 * word + (bits & -bits).bit_length() - 1)
