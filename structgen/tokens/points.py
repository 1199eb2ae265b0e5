"""Places in a text where parts of a value must differ: what is legal there, byte by byte."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from structgen.automata.antichains import Antichain, above, below, separator_in_json
from structgen.automata.frames import (
    CHAIN,
    CLASSES,
    DIFFERS,
    FLAGS,
    FRAME,
    OPENS,
    ROW,
    SCOPE,
    IntArray,
)
from structgen.automata.kernels import FULL, T_STATE, UNREACHABLE, Bytes, fewest_tokens
from structgen.automata.program import Program
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
        firsts, all_of_them = _separators(automaton.program)
        self._separators = firsts
        """The first bytes of what stands between the labels of bare lists."""
        self._gaps = BLANKS | all_of_them
        chains = automaton.program.antichains
        self._antichains = {(chain.first, chain.end): chain for chain in chains}

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
        is_inside = 0 < depth == len(at.scopes) and deepest == (2 << depth) - 1
        if is_inside and all(scope.text for scope in at.scopes):
            return at  # in the middle of a part, and of all that it is in
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
        """The blank, or byte of a separator, that has to come next within a scope, or -1.

        It is -1 as well where nothing was written in the scope.
        """
        if not at.scopes or not at.scopes[-1].written.texts:
            return -1
        states = self._automaton.program.states
        byte = -1
        for state in self._scratch.threads[at.low : at.high, T_STATE].tolist():
            chain = int(states[state, CHAIN])
            if (
                chain not in self._gaps
                or byte not in (-1, chain)
                or not states[state, FLAGS] & SCOPE
            ):
                return -1
            byte = chain
        return byte

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
        chain = self._antichains.get(key[0][1:]) if len(key) == 1 else None
        prefixes: set[bytes] = set()
        open_ends: dict[bytes, frozenset[int]] = {}
        barred: set[bytes] = set()
        for past in written.since(key):
            found = past.dead.get(key)
            if found is not None:
                prefixes, open_ends = set(found.prefixes), dict(found.open_ends)
                barred = set(found.barred)
                continue
            texts = [past.last]
            if chain is not None:
                fresh, run = self._levels(chain, past.last)
                prefixes |= run
                barred |= run | fresh
                texts = [*run, past.last, *fresh]
            for text in texts:
                self._close(start, depth, past.texts | barred, text, prefixes, open_ends)
            past.dead[key] = DeadEnds(frozenset(prefixes), dict(open_ends), frozenset(barred))
        return written.dead[key]

    def _levels(self, chain: Antichain, text: bytes) -> tuple[set[bytes], set[bytes]]:
        """The labels above one, and how those below it begin if there are any."""
        program = self._automaton.program
        separator = separator_in_json(chain.separator)
        labels = range(chain.first, chain.end)
        run = below(text, separator)

        def first(start: bytes) -> bytes:
            at = bisect_left(labels, start, key=program.label)
            return program.label(labels[at]) if at < len(labels) else b""

        fresh = {label for label in above(text, separator) if first(label) == label}
        return fresh, {run} if first(run).startswith(run) else set()

    def _close(
        self,
        start: Point,
        depth: int,
        texts: frozenset[bytes],
        text: bytes,
        prefixes: set[bytes],
        open_ends: dict[bytes, frozenset[int]],
    ) -> None:
        automaton, scratch = self._automaton, self._scratch
        data = np.frombuffer(bytearray(text), np.uint8)
        tops = np.empty(len(data), np.int32)
        count = scope_kernels.steps_along(
            automaton.arrays, automaton.plan, scratch.arena, start.used, scratch.threads, start.low,
            start.high, data, tops,
        )  # fmt: skip
        if count == FULL:
            raise NoSpace
        if count < len(text):
            return  # no such text at this place
        bounds = [start.low, start.high, *tops.tolist()]

        def readable(length: int) -> tuple[frozenset[int], bool]:
            place = Point(bounds[length], bounds[length + 1], start.used, ())
            ends, readers = self._readable(place, depth)
            goes_on = frozenset(np.flatnonzero(readers & PART).tolist())
            return goes_on, bool(ends or (length and np.any(readers & OTHER)))

        close_dead_end(prefixes, open_ends, texts, text, readable)

    def _plainly_needed(self, at: Point) -> int:
        automaton, scratch = self._automaton, self._scratch
        return int(
            fewest_tokens(
                automaton.arrays, automaton.plan, scratch.arena, scratch.threads, at.low, at.high
            )
        )


def _separators(program: Program) -> tuple[frozenset[int], frozenset[int]]:
    """First bytes, and all others, of the separators in scopes that no byte opens or closes."""
    states = program.states
    firsts: set[int] = set()
    others: set[int] = set()
    for arrival in np.flatnonzero(states[:, FLAGS] & DIFFERS).tolist():
        index = int(states[arrival, FRAME])
        base = program.bases[index]
        if states[base, FLAGS] & OPENS:
            continue
        chains = states[base : base + program.frames[index].n_states, CHAIN]
        others.update(chains[chains >= 0].tolist())
        if states[arrival, ROW] >= 0:
            classes = program.classes[states[arrival, CLASSES] :][:256].astype(np.int32)
            firsts.update(
                np.flatnonzero(program.table[states[arrival, ROW] + classes] >= 0).tolist()
            )
    return frozenset(firsts), frozenset(others)
