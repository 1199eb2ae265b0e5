"""The quick way to tell repeated labels, where the labels of one set are all that must differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from structgen.automata.frames import CALL_FROM, CALL_TO, DIFFERS, FLAGS, FRAME, SCOPE, IntArray
from structgen.automata.kernels import (
    END_OF_VALUE,
    FULL,
    Bytes,
)
from structgen.automata.program import CALLEE, REG_A, REG_B, RETURN, Program
from structgen.tokens import label_kernels
from structgen.tokens.automaton import Automaton
from structgen.tokens.mask_rows import MaskRow
from structgen.tokens.points import NoSpace, Point, Scratch
from structgen.tokens.scopes import Written

Span: TypeAlias = tuple[int, int]
"""The labels of a set are the program's from the first number to before the second."""
MOST_IN_TOKEN = 32
"""Labels that end within one token, as far as it is read the quick way."""
NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The tokens of a mask by whether they repeat a label; arrays are good until the next one."""

    n_tokens: int
    kept: IntArray
    """int32[K]: those that do not."""
    unsure: IntArray
    """int32[U]: those that are to be looked at the long way."""
    worst: int
    """The most tokens that suffice after any that is kept and ends a label, without regard to what
    was written."""
    behind: int
    """The most that suffice behind the part."""


class LabelScopes:
    """Sorts tokens in scopes whose parts are labels of one set, see `label_kernels`."""

    def __init__(self, automaton: Automaton, scratch: Scratch) -> None:
        self._automaton = automaton
        self._scratch = scratch
        self._spans = label_spans(automaton.program)
        flags = automaton.program.states[:, FLAGS]
        self._is_scope = (flags & SCOPE != 0).tobytes()
        self._below: dict[int, Span | None] = {}
        self._more = np.empty(MOST_IN_TOKEN, np.int32)
        self._found = np.empty(0, np.int32)

    def sorted(self, at: Point, plain: MaskRow) -> Sorted | None:
        """The tokens of a mask by whether they repeat a label; None where it is no such scope."""
        span = self._span(at)
        written = numbers(at.scopes[0].written, span, self._automaton.program) if span else None
        if span is None or written is None:
            return None
        automaton, scratch = self._automaton, self._scratch
        listed = _tokens_of(plain) if len(plain.base) else plain.extra
        if len(listed) > len(self._found):
            self._found = np.empty(2 * len(listed), np.int32)
        n_kept, n_asked, worst, behind = label_kernels.sort_tokens(
            automaton.arrays, automaton.plan, scratch.arena, at.used, scratch.threads, at.low,
            at.high, *span, written, self._more, _bytes(at.scopes[0].text),
            (automaton.lookup.blob, automaton.lookup.starts), listed, self._found,
        )  # fmt: skip
        if n_kept == FULL:
            raise NoSpace
        asked = self._found[len(listed) - n_asked : len(listed)]
        return Sorted(len(listed), self._found[:n_kept], asked, worst, behind)

    def _span(self, at: Point) -> Span | None:
        """The labels of the only open scope, if it is one of these."""
        if not self._spans or len(at.scopes) != 1:
            return None
        threads = self._scratch.threads[at.low : at.high].tolist()
        for state, _, _, stack in reversed(threads):
            if self._is_scope[state]:
                return self._spans.get(int(self._automaton.program.states[state, FRAME]))
            if stack >= at.used:
                return self._span_below(stack)
            if stack not in self._below:
                self._below[stack] = self._span_below(stack)
            if self._below[stack] is not None:
                return self._below[stack]
        return None

    def _span_below(self, stack: int) -> Span | None:
        """The labels of the innermost scope that a stack is in, if it is one of these."""
        while stack != END_OF_VALUE:
            state, _, _, stack, *_ = self._scratch.arena[stack].tolist()
            if state < 0:
                return None  # one of several stacks
            if self._is_scope[state]:
                return self._spans.get(int(self._automaton.program.states[state, FRAME]))
        return None


def label_spans(program: Program) -> dict[int, Span]:
    """By the number of a frame that is a scope, the labels that are its parts."""
    states, calls = program.states, program.calls
    barred = {(chain.first, chain.end) for chain in program.antichains}
    found: dict[int, Span] = {}
    scopes = np.unique(states[states[:, FLAGS] & DIFFERS != 0, FRAME])
    for index in scopes.tolist():
        base = program.bases[index]
        own = states[base : base + program.frames[index].n_states]
        parts = calls[own[:, CALL_FROM].min() : own[:, CALL_TO].max()]
        parts = parts[states[parts[:, RETURN], FLAGS] & DIFFERS != 0]
        spans = {(int(part[REG_A]), int(part[REG_B])) for part in parts}
        if len(spans) != 1 or not np.all(parts[:, CALLEE] == _first_label_state(program)):
            continue
        (span,) = spans
        if span not in barred and not _has_structures(program, span):
            found[index] = span
    return found


def numbers(written: Written, span: Span, program: Program) -> IntArray | None:
    """int32[K], sorted: the labels that were written; None if something else was."""
    missing: list[Written] = []
    at = written
    while at.before is not None and span not in at.numbers:
        missing.append(at)
        at = at.before
    known = at.numbers.get(span, NOTHING)
    for part in reversed(missing):
        number = label_kernels.label_of(program.arrays, *span, _bytes(part.last))
        if number < 0 or known is None:
            known = None
        else:
            known = np.insert(known, int(np.searchsorted(known, number)), number)
        part.numbers[span] = known
    return known


def _has_structures(program: Program, span: Span) -> bool:
    """Whether some of the labels are arrays or objects, which are compared as values."""
    begins = program.blob[program.starts[span[0] : span[1]]]
    return bool(np.any((begins == ord("[")) | (begins == ord("{"))))


def _first_label_state(program: Program) -> int:
    return program.bases[-1]  # all labels are one frame, the last one


def _tokens_of(plain: MaskRow) -> IntArray:
    """int32[K]: the tokens of a mask."""
    mask, out = np.empty(plain.n_words, np.int32), np.empty(32 * plain.n_words, np.int32)
    plain.fill(mask)
    return out[: label_kernels.list_tokens(mask, out)]


def _bytes(data: bytes) -> Bytes:
    return np.frombuffer(bytearray(data), np.uint8)
