"""Places in a text where parts of a value must differ: what is legal there, byte by byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from structgen.automata.frames import CHAIN, FLAGS, SCOPE, IntArray
from structgen.automata.kernels import FULL, T_STATE, UNREACHABLE, Bytes, fewest_tokens
from structgen.tokens import scope_kernels
from structgen.tokens.automaton import Automaton
from structgen.tokens.scope_kernels import OTHER, PART
from structgen.tokens.scopes import (
    DeadEnds,
    PartKey,
    Scope,
    Scopes,
    Written,
    after_byte,
    close_dead_end,
)

BLANKS = frozenset(b" \n\t\r")


class Scratch(Protocol):
    """Working space that grows; rows of the arena below `used` are permanent."""

    arena: IntArray
    threads: IntArray
    used: int

    def grow(self) -> None:
        """Double both arrays."""
        ...


class NoSpace(Exception):
    """The scratch space does not suffice; the work is begun again with more."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a text: threads[low:high] in the scratch space, and the scopes."""

    low: int
    high: int
    used: int
    scopes: Scopes


class Steps:
    """Reads bytes with regard to scopes, in the scratch space of an automaton's table."""

    def __init__(self, automaton: Automaton, scratch: Scratch) -> None:
        self._automaton = automaton
        self._scratch = scratch
        self._readers = np.zeros(256, np.uint8)
        self._empty = Scope(Written())

    def run(self, point: Point, data: bytes) -> Point | None:
        """The place behind `data`; None where it is not legal.

        Raises:
            NoSpace: grow the scratch space and begin again.
        """
        for byte in data:
            after = self._step(point, byte)
            if after is None:
                return None
            point = after
        # The vocabulary may lack the bytes to finish what was begun.
        return point if self._plainly_needed(point) < UNREACHABLE else None

    def _step(self, at: Point, byte: int) -> Point | None:
        automaton, scratch = self._automaton, self._scratch
        top, used, path, opens, deepest = scope_kernels.scoped_step(
            automaton.arrays, automaton.plan, scratch.arena, at.used, scratch.threads, at.low,
            at.high, byte,
        )  # fmt: skip
        if top == FULL:
            raise NoSpace
        if top == at.high:
            return None
        if deepest == 1 and not at.scopes and path == 1:
            return Point(at.high, top, used, ())
        scopes = after_byte(at.scopes, byte, path, bool(opens), self._empty)
        if scopes is None:
            return None
        return self._settled(Point(at.high, top, used, scopes), deepest)

    def _settled(self, at: Point, deepest: int) -> Point | None:
        """The place without scopes that are left, and with the dead ends of a part to begin."""
        depth = deepest.bit_length() - 1
        if any(scope.ended() is None for scope in at.scopes[depth:]):
            return None
        scopes = list(at.scopes[:depth])
        for index, scope in enumerate(scopes):
            if not deepest >> (depth - 1 - index) & 1:
                if scope.ended() is None:
                    return None  # the part is complete, and nothing but its end can follow
            elif not scope.text and scope.written.texts:
                dead = self._dead_ends(at, index + 1, scope.written)
                if b"" in dead.prefixes and not self._other_ways(at, index + 1):
                    return None
                scopes[index] = scope.begun(dead)
        settled = Point(at.low, at.high, at.used, tuple(scopes))
        byte = self._blank_ahead(settled)
        # Behind the blank that must follow a comma there may be no part left to write.
        return None if byte >= 0 and self._step(settled, byte) is None else settled

    def _blank_ahead(self, at: Point) -> int:
        """The blank that has to come next within a scope where something was written, or -1."""
        if not at.scopes or not at.scopes[-1].written.texts:
            return -1
        states = self._scratch.threads[at.low : at.high, T_STATE]
        columns = self._automaton.program.states[states]
        byte = int(columns[0, CHAIN])
        same = np.all(columns[:, CHAIN] == byte) and np.all(columns[:, FLAGS] & SCOPE)
        return byte if same and byte in BLANKS else -1

    def _before_part(self, at: Point) -> Point | None:
        """The place behind the blank that has to come next, if there is one."""
        byte = self._blank_ahead(at)
        return None if byte < 0 else self._step(at, byte)

    def _other_ways(self, at: Point, depth: int) -> bool:
        """Whether anything but a part of the scope may come, blanks aside."""
        _, readers = self._readable(at, depth)
        return any(readers[byte] & OTHER for byte in range(256) if byte not in BLANKS)

    def _readable(self, at: Point, depth: int) -> tuple[bool, Bytes]:
        scratch = self._scratch
        ends = scope_kernels.readable(
            self._automaton.arrays, scratch.arena, scratch.threads, at.low, at.high, depth,
            self._readers,
        )  # fmt: skip
        return bool(ends), self._readers

    def _dead_ends(self, at: Point, depth: int, written: Written) -> DeadEnds:
        """Of a part that begins at a place, given what was written in scope number `depth`."""
        scratch = self._scratch
        top = scope_kernels.part_threads(
            self._automaton.arrays, scratch.arena, scratch.threads, at.low, at.high, depth
        )
        if top == FULL:
            raise NoSpace
        start = Point(at.high, top, at.used, ())
        rows: list[list[int]] = scratch.threads[at.high : top].tolist()
        key: PartKey = tuple(sorted((s, a, b) for s, a, b, _ in rows))
        known = written.dead.get(key)
        if known is not None:
            return known
        prefixes: set[bytes] = set()
        open_ends: dict[bytes, frozenset[int]] = {}
        for past in written.history():
            found = past.dead.get(key)
            if found is not None:
                prefixes, open_ends = set(found.prefixes), dict(found.open_ends)
                continue
            self._close(start, depth, past, prefixes, open_ends)
            past.dead[key] = DeadEnds(frozenset(prefixes), dict(open_ends))
        return written.dead[key]

    def _close(
        self,
        start: Point,
        depth: int,
        past: Written,
        prefixes: set[bytes],
        open_ends: dict[bytes, frozenset[int]],
    ) -> None:
        points = [start]
        for byte in past.last:
            point = self._plain_step(points[-1], byte)
            if point is None:
                return  # no such text at this place
            points.append(point)

        def readable(length: int) -> tuple[frozenset[int], bool]:
            ends, readers = self._readable(points[length], depth)
            goes_on = frozenset(np.flatnonzero(readers & PART).tolist())
            return goes_on, bool(ends or (length and np.any(readers & OTHER)))

        close_dead_end(prefixes, open_ends, past.texts, past.last, readable)

    def _plain_step(self, at: Point, byte: int) -> Point | None:
        automaton, scratch = self._automaton, self._scratch
        top, used, *_ = scope_kernels.scoped_step(
            automaton.arrays, automaton.plan, scratch.arena, at.used, scratch.threads, at.low,
            at.high, byte,
        )  # fmt: skip
        if top == FULL:
            raise NoSpace
        return Point(at.high, top, used, ()) if top > at.high else None

    def _plainly_needed(self, at: Point) -> int:
        automaton, scratch = self._automaton, self._scratch
        return int(
            fewest_tokens(
                automaton.arrays, automaton.plan, scratch.arena, scratch.threads, at.low, at.high
            )
        )
