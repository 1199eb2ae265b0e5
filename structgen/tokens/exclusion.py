"""Steps and masks where parts of a value must differ: `structgen.tokens.scopes` over the kernels.

The plain mask of a state's threads is computed as ever. Then three kinds of tokens are taken away:
those that run into a dead end of the part being written, those that end it where it would be a
repetition, and those that end it and go on with another part which has to be looked at byte by
byte. So the work grows with the parts written, not with the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from structgen.automata.frames import CHAIN, FLAGS, SCOPE, IntArray
from structgen.automata.kernels import (
    A_TOKENS,
    FULL,
    T_A,
    T_STACK,
    T_STATE,
    UNREACHABLE,
    Bytes,
    fewest_tokens,
)
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
from structgen.tokens.vocabulary import Vocabulary

BLANKS = frozenset(b" \n\t\r")
_BEFORE_PART = re.compile(rb"^[ \n\t\r]|,")
"""Behind a comma and blanks another part begins."""
_COMMA = re.compile(rb",")
_CLOSED = re.compile(rb'"\s*(?::.*)?,', re.DOTALL)
"""The same after the end of a string, which may be a key with its value."""
_OPENS = re.compile(rb"[\[{].*,", re.DOTALL)
"""A scope that begins and goes on with a second part."""
_CLOSES = re.compile(rb"[\]},]")
"""The end of what may equal an earlier part although it is written differently."""


MOST_SCALAR = 64
"""Tokens that suffice for a number, and for the end of a string that is long enough."""


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


class Exclusion:
    """Everything about scopes for one automaton; works in its table's scratch space."""

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
        if not at.scopes or not at.scopes[-1].written.texts or at.high - at.low != 1:
            return -1
        state = self._scratch.threads[at.low, T_STATE]
        byte = int(self._automaton.program.states[state, CHAIN])
        return (
            byte if byte in BLANKS and self._automaton.program.states[state, FLAGS] & SCOPE else -1
        )

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

    def restrict(self, at: Point, mask: IntArray, most: int) -> int:
        """Clear in `mask` what repeats a part, or needs more than `most` tokens (-1: any number).

        Args:
            mask: what the threads alone allow, int32[n_words], changed in place.

        Returns a bound on the tokens needed after any of the tokens that were looked at.
        """
        lookup = self._automaton.lookup
        for scope in at.scopes:
            suffixes = [suffix for suffix in scope.suffixes() if suffix]
            if suffixes:
                ends = np.cumsum([len(suffix) for suffix in suffixes], dtype=np.int32)
                scope_kernels.forbid_prefixes(
                    lookup.trie, lookup.same_bytes, _bytes(b"".join(suffixes)), ends, mask
                )
            self._forbid_ends(scope, mask)
        more = self._more_tokens(at) if most < 0 else UNREACHABLE
        worst = self._check(at, mask, most, more)
        if more < UNREACHABLE:
            return max(worst, more)
        return max(worst, self._check_along(at, mask, most))

    def _more_tokens(self, at: Point) -> int:
        """A quick bound on the tokens to the end along the parts written before.

        A scalar that is like none of these is a label, or a few characters longer than what is
        needed anyway. For structures there is no such bound: UNREACHABLE.
        """
        if any(rest[:1] in (b"{", b"[") for rest in _starts(at.scopes)):
            return UNREACHABLE
        rows = self._scratch.threads[at.low : at.high]
        behind = int(self._scratch.arena[rows[:, T_STACK], A_TOKENS].max(initial=0))
        labels = self._automaton.program.longest_label
        return behind + labels + MOST_SCALAR + int(rows[:, T_A].max(initial=0)) * (labels == 0)

    def _forbid_ends(self, scope: Scope, mask: IntArray) -> None:
        lookup = self._automaton.lookup
        for text, goes_on in scope.dead.open_ends.items() if scope.dead else ():
            if text.startswith(scope.text):
                allowed = np.zeros(256, np.uint8)
                allowed[list(goes_on)] = 1
                rest = _bytes(text[len(scope.text) :])
                scope_kernels.forbid_ends(lookup.trie, lookup.same_bytes, rest, allowed, mask)

    def _check(self, at: Point, mask: IntArray, most: int, more: int) -> int:
        """Look at the tokens that may hold the end of a part and the beginning of another."""
        worst = 0
        for token_id in _allowed(mask, _matching(self._automaton.vocabulary, self._suspects(at))):
            worst = max(worst, self._check_token(at, mask, token_id, most, more))
        return worst

    def _suspects(self, at: Point) -> re.Pattern[bytes]:
        """What the tokens have in common that must be looked at byte by byte."""
        if not at.scopes:
            return _OPENS
        if any(b"{" in scope.text and scope.dead is not None for scope in at.scopes):
            return _CLOSES
        states = self._scratch.threads[at.low : at.high, T_STATE].tolist()
        if not at.scopes[-1].text:
            return _BEFORE_PART
        return _CLOSED if all(map(self._automaton.is_wide, states)) else _COMMA

    def _check_along(self, at: Point, mask: IntArray, most: int) -> int:
        """Look at the tokens that run along a part written before."""
        worst = 0
        out = np.empty(self._automaton.vocabulary.max_token_bytes, np.int32)
        seen: set[int] = set()
        for scope in at.scopes:
            for rest in scope.repeats():
                count = scope_kernels.tokens_along(self._automaton.lookup.trie, _bytes(rest), out)
                for token_id in out[:count].tolist():
                    if token_id not in seen and mask[token_id >> 5] >> (token_id & 31) & 1:
                        seen.add(token_id)
                        worst = max(worst, self._check_token(at, mask, token_id, most))
        return worst

    def _check_token(
        self, at: Point, mask: IntArray, token_id: int, most: int, more: int = UNREACHABLE
    ) -> int:
        """Forbid a token that does not fit; else a bound on the tokens needed after it.

        `more`, where it is known, bounds what a part that must differ adds to the plain distance.
        """
        after = self.run(at, self._automaton.vocabulary.bytes_of(token_id) or b"")
        if after is not None and more < UNREACHABLE:
            return self._plainly_needed(after) + more
        needed = UNREACHABLE if after is None else self.needed(after)
        if needed < UNREACHABLE and (most < 0 or needed <= most):
            return needed
        self._forbid(mask, token_id)
        return 0

    def _forbid(self, mask: IntArray, token_id: int) -> None:
        same = self._automaton.lookup.same_bytes
        while token_id >= 0:
            mask[token_id >> 5] &= ~np.uint32(1 << (token_id & 31)).view(np.int32)
            token_id = int(same[token_id])

    def needed(self, at: Point, best: int = UNREACHABLE) -> int:
        """Tokens that suffice to finish from a place; at least `best` where it is not less.

        Where a part may still become one written before, either its next byte leaves all of
        those, after which the plain distance holds, or it is one of theirs, and the question is
        the same one byte further, or the part ends.
        """
        along = [depth for depth, scope in enumerate(at.scopes, 1) if scope.is_along()]
        if not along:
            ahead = self._before_part(at)
            return self._plainly_needed(at) if ahead is None else 1 + self.needed(ahead, best)
        depth, scope = along[-1], at.scopes[along[-1] - 1]
        _, readers = self._readable(at, depth)
        allowed = (readers & PART).astype(np.uint8)
        others = np.flatnonzero(readers == OTHER).tolist()
        repeats = {byte for d in along for byte in at.scopes[d - 1].next_bytes()}
        allowed[list(repeats)] = 0
        best = min(best, self._cheapest_step(at, allowed))
        if not scope.text:
            repeats |= set(others) - BLANKS
        elif scope.text not in scope.written.texts:
            if len(along) == 1:
                best = min(best, self._needed_outside(at, depth))
            else:
                repeats |= set(others)
        for byte in sorted(repeats) if best > 2 else ():
            after = self._step(at, byte)
            if after is not None:
                best = min(best, 1 + self.needed(after, best - 1))
        return best

    def _plainly_needed(self, at: Point) -> int:
        automaton, scratch = self._automaton, self._scratch
        return int(
            fewest_tokens(
                automaton.arrays, automaton.plan, scratch.arena, scratch.threads, at.low, at.high
            )
        )

    def _needed_outside(self, at: Point, depth: int) -> int:
        automaton, scratch = self._automaton, self._scratch
        return int(
            scope_kernels.needed_outside(
                automaton.arrays, automaton.plan, scratch.arena, scratch.threads, at.low, at.high,
                depth,
            )
        )  # fmt: skip

    def _cheapest_step(self, at: Point, allowed: Bytes) -> int:
        automaton, scratch = self._automaton, self._scratch
        found = scope_kernels.cheapest_step(
            automaton.arrays, automaton.plan, scratch.arena, at.used, scratch.threads, at.low,
            at.high, allowed, automaton.lookup.trie, automaton.lookup.first,
        )  # fmt: skip
        if found == FULL:
            raise NoSpace
        return int(found)


def _bytes(data: bytes) -> Bytes:
    return np.frombuffer(bytearray(data), np.uint8)


def _starts(scopes: Scopes) -> Iterable[bytes]:
    """How the parts begin that may be written, or that could become one written before."""
    for scope in scopes:
        yield scope.text
        if scope.dead is not None and not scope.text:
            yield from scope.written.texts


def _allowed(mask: IntArray, among: IntArray) -> list[int]:
    """The token ids that two packed masks share."""
    both = mask & among
    words = np.flatnonzero(both)
    bits = np.unpackbits(both[words].view(np.uint8), bitorder="little").reshape(-1, 32)
    row, bit = np.nonzero(bits)
    return (words[row] * 32 + bit).tolist()


@lru_cache(maxsize=32)
def _matching(vocabulary: Vocabulary, pattern: re.Pattern[bytes]) -> IntArray:
    """int32[n_words]: the tokens in whose bytes a pattern is found, packed as in a mask."""
    found = bytearray(vocabulary.n_words * 32)
    text, search = vocabulary.blob.tobytes(), pattern.search
    for token_id, (start, end) in enumerate(pairwise(vocabulary.starts.tolist())):
        if start < end and search(text[start:end]):
            found[token_id] = 1
    return np.packbits(np.frombuffer(found, np.uint8), bitorder="little").view(np.int32)
