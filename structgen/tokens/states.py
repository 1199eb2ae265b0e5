"""Run-time states: sets of threads, interned, with their masks and successors found on demand.

The table is a cache in front of the kernels: what a state allows and where a token leads is
computed at the first visit and remembered. When the masks outgrow their capacity the compiled
schema starts a new table; sessions keep the one they are in until their next move.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata import kernels
from structgen.automata.frames import LOOP, NO_LIMIT, IntArray
from structgen.automata.kernels import (
    A_A,
    A_B,
    A_PARENT,
    A_SCOPES,
    A_STATE,
    A_TOKENS,
    BOTTOM,
    EITHER,
    END_OF_VALUE,
    NO_SCOPES,
    T_STACK,
)
from structgen.automata.program import FINAL_STATE, RETURN_STATE, ROOT_STATE
from structgen.errors import LimitError
from structgen.options import Limits
from structgen.tokens import scope_kernels, walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.exclusion import Exclusion
from structgen.tokens.points import NoSpace, Point
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.scopes import Scopes
from structgen.tokens.trie import END

Thread: TypeAlias = tuple[int, int, int, int]
"""(state, a, b, stack), as in the kernels."""

Bytes: TypeAlias = npt.NDArray[np.uint8]

FINAL: Thread = (FINAL_STATE, 0, 0, END_OF_VALUE)
FROM_ROOT = np.zeros(1, np.int32)
"""Roots of a walk from the trie's root."""

STATE_BYTES, EDGE_BYTES, PART_BYTES = 512, 64, 64
"""Rough sizes of a state without its mask and of a remembered step, for the capacity."""


@dataclass(slots=True, eq=False)
class State:
    """All ways to have read the bytes so far; compared by identity within its table."""

    threads: tuple[Thread, ...]
    """Closed, sorted, without those that have no byte edges (but with FINAL)."""
    table: StateTable
    accepting: bool
    """The value may end here."""
    complete: bool
    """The value must end here."""
    next: dict[int, State] = field(default_factory=dict[int, "State"])
    """Successors by token id, as far as they were asked for."""
    mask: IntArray | None = None
    """int32[n_words], read-only, without regard to any budget; None until asked for."""
    worst: int = 0
    """With a mask: the most tokens still needed after any token it allows."""
    forced: tuple[int, ...] | None = None
    """Tokens that are certain to come next; None until asked for."""
    scopes: Scopes = ()
    """What was written in open arrays and objects whose parts must differ."""


class StateTable:
    """States of one automaton; mutable, guarded by one lock where something is added."""

    def __init__(self, automaton: Automaton, profiles: ProfileCache, limits: Limits) -> None:
        self.automaton = automaton
        self._profiles = profiles
        self._limits = limits
        self._lock = threading.RLock()
        longest = automaton.vocabulary.max_token_bytes
        self._room_cap = longest + 1
        self._levels = np.zeros((longest + 2, 2), np.int32)
        self.threads = np.zeros((4 * longest + 256, 4), np.int32)
        self.arena = np.zeros((4 * longest + 1024, 7), np.int32)
        self.arena[:2, A_SCOPES] = NO_SCOPES
        self.used = 2
        self._stacks: dict[Thread, int] = {}
        self._canonical: list[int] = [END_OF_VALUE, BOTTOM]
        self._states: dict[tuple[tuple[Thread, ...], Scopes], State] = {}
        self._masks: dict[tuple[Thread, ...], tuple[IntArray, int]] = {}
        self.bytes_used = 0
        self._exclusion = Exclusion(automaton, self) if automaton.program.has_scopes else None
        self.start = self._start()

    def memory_bytes(self) -> int:
        """Bytes of masks, states and scratch space."""
        return self.bytes_used + self.arena.nbytes + self.threads.nbytes

    def advance(self, state: State, token_id: int, data: bytes) -> State | None:
        """The state after `data`, the bytes of `token_id`; None if they are not legal."""
        with self._lock:
            point = self._run(state, data)
            if point.low == point.high:
                return None
            after = self._intern_result(point.low, point.high, point.used, point.scopes)
            state.next[token_id] = after
            self.bytes_used += EDGE_BYTES
            return after

    def adopt(self, state: State) -> State:
        """The same state in this table, for a session that comes from an older one."""
        if state.table is self:
            return state
        with self._lock:
            places = self._adopt_stacks(state.table, [thread[T_STACK] for thread in state.threads])
            moved = {(s, a, b, places[stack]) for s, a, b, stack in state.threads}
            return self._intern(tuple(sorted(moved)), state.scopes)

    def narrowed(self, state: State, threads: tuple[Thread, ...]) -> State:
        """The state with only these of its threads."""
        with self._lock:
            scopes = state.scopes
            if scopes:
                n_threads = self._load(threads)
                depth = scope_kernels.deepest_path(
                    self.automaton.arrays, self.arena, self.threads, 0, n_threads
                )
                scopes = scopes[: int(depth).bit_length() - 1]
            return self._intern(threads, scopes)

    def mask(self, state: State) -> IntArray:
        """int32[n_words], read-only: the tokens that `state` allows, the end token included."""
        if state.mask is None:
            with self._lock:
                key = self._canonical_threads(state)
                found = self._masks.get(key)
                if found is None:
                    found = self._masks[key] = self._compute_mask(key, state.accepting, -1)
                    self.bytes_used += found[0].nbytes
                found = self._restricted(state, found, -1)
                # In this order: other threads read `worst` as soon as there is a mask.
                state.worst = found[1]
                state.mask = found[0]
        return state.mask

    def limited_mask(self, state: State, most: int) -> IntArray:
        """Like `mask`, but only tokens after which at most `most` more suffice.

        A negative `most` allows no further token, only the end.
        """
        if most < 0:
            mask = np.zeros(self.automaton.vocabulary.n_words, np.int32)
            self._add_end(mask, state.accepting)
            return mask
        mask = self.mask(state)
        if state.worst <= most:
            return mask
        with self._lock:
            key = self._canonical_threads(state)
            found = self._compute_mask(key, state.accepting, most)
            return self._restricted(state, found, most)[0]

    def tokens_to_finish(self, state: State) -> int:
        """Tokens that suffice to finish the value."""
        with self._lock:
            while True:
                n_threads = self._load(state.threads)
                try:
                    if self._exclusion is not None and state.scopes:
                        point = Point(0, n_threads, self.used, state.scopes)
                        return self._exclusion.needed(point)
                    return int(
                        kernels.fewest_tokens(
                            self.automaton.arrays, self.automaton.plan, self.arena, self.threads,
                            0, n_threads,
                        )
                    )  # fmt: skip
                except NoSpace:
                    self.grow()

    def _restricted(
        self, state: State, found: tuple[IntArray, int], most: int
    ) -> tuple[IntArray, int]:
        """A mask and its worst without what would repeat a part of an array or object."""
        if self._exclusion is None:
            return found
        plain, worst = found
        while True:
            n_threads = self._load(state.threads)
            mask = plain.copy()
            point = Point(0, n_threads, self.used, state.scopes)
            try:
                along = self._exclusion.restrict(point, mask, most)
            except NoSpace:
                self.grow()
                continue
            self.bytes_used += mask.nbytes
            mask.setflags(write=False)
            return mask, max(worst, along)

    def forced_bytes(self, state: State, most: int) -> bytes:
        """Bytes that must come next, at most `most`."""
        out = np.empty(most, np.uint8)
        with self._lock:
            while True:
                n_threads = self._load(state.threads)
                count = kernels.forced_bytes(
                    self.automaton.arrays, self.automaton.plan, self.arena, self.used,
                    self.threads, n_threads, out,
                )  # fmt: skip
                if count != kernels.FULL:
                    return out[:count].tobytes()
                self.grow()

    def _start(self) -> State:
        root = np.array([(ROOT_STATE, 0, 0, END_OF_VALUE)], np.int32)
        while True:
            self.threads[:1] = root
            high, used, _ = kernels.close(
                self.automaton.arrays, self.automaton.plan, self.arena, self.used,
                self.threads, 0, 0, 1,
            )  # fmt: skip
            if high != kernels.FULL:
                return self._intern_result(0, high, used, ())
            self.grow()

    def _run(self, state: State, data: bytes) -> Point:
        """The place behind `data`; without threads if that is not legal."""
        text = np.frombuffer(bytearray(data), np.uint8)
        while True:
            n_threads = self._load(state.threads)
            if self._exclusion is None:
                low, high, used = kernels.read_bytes(
                    self.automaton.arrays, self.automaton.plan, self.arena, self.used,
                    self.threads, n_threads, text,
                )  # fmt: skip
                if high != kernels.FULL:
                    return Point(low, high, used, ())
            else:
                try:
                    start = Point(0, n_threads, self.used, state.scopes)
                    return self._exclusion.run(start, data) or Point(0, 0, self.used, ())
                except NoSpace:
                    pass
            self.grow()

    def _load(self, threads: tuple[Thread, ...]) -> int:
        while len(threads) > len(self.threads):
            self.grow()
        if threads:
            self.threads[: len(threads)] = threads
        return len(threads)

    def grow(self) -> None:
        """Double the scratch space; ambiguous schemas need more than usual."""
        if len(self.threads) > 64 * self._limits.max_threads:
            raise LimitError(
                f"the schema is too ambiguous: more than Limits.max_threads="
                f"{self._limits.max_threads} alternatives are open at once; give unions a "
                "discriminating first field"
            )
        self.threads = np.concatenate([self.threads, np.zeros_like(self.threads)])
        self.arena = np.concatenate([self.arena, np.zeros_like(self.arena)])

    def _compute_mask(
        self, threads: tuple[Thread, ...], accepting: bool, most: int
    ) -> tuple[IntArray, int]:
        vocabulary = self.automaton.vocabulary
        mask = np.zeros(vocabulary.n_words, np.int32)
        narrow = tuple(thread for thread in threads if not self.automaton.is_wide(thread[0]))
        worst = self._walk(narrow, FROM_ROOT, mask, most) if narrow else 0
        for thread in threads:
            if self.automaton.is_wide(thread[0]):
                worst = max(worst, self._add_wide(thread, mask, most))
        self._add_end(mask, accepting)
        mask.setflags(write=False)
        return mask, worst

    def _add_end(self, mask: IntArray, accepting: bool) -> None:
        for token_id in self.automaton.vocabulary.eos_token_ids if accepting else ():
            mask[token_id >> 5] |= np.uint32(1 << (token_id & 31)).view(np.int32)

    def _add_wide(self, thread: Thread, mask: IntArray, most: int) -> int:
        """Inner mask of a wide frame, then a walk from its exits in the return state."""
        state, need, room, stack = thread
        frame, local = self.automaton.program.frame_of(state)
        like = local if frame.like is None else int(frame.like[local])
        base = state - local
        profile = self._profiles.get(self.automaton, base + like)
        behind = int(self.arena[stack, A_TOKENS])
        if behind >= kernels.UNREACHABLE:
            return 0  # what must follow cannot be written
        row, worst = self._profiles.row(self.automaton, profile, base, need, room, -1)
        if 0 <= most < worst + behind:
            within = max(most - behind, 0)
            row, worst = self._profiles.row(self.automaton, profile, base, need, room, within)
        exits = profile.exits_within(need, room)
        worst += behind
        if like != local:
            bytes_ = self.automaton.unlike(state, base + like)
            row, exits = self._without(bytes_, row, exits)
            worst = max(worst, self._add_unlike(thread, bytes_, mask, most))
        if most < 0 or most > behind:
            np.bitwise_or(mask, row, out=mask)
        if not len(exits):
            return worst
        after = (RETURN_STATE, 0, 0, stack)
        return max(worst, self._walk((after,), exits, mask, most, closed=False))

    def _without(self, bytes_: Bytes, row: IntArray, exits: IntArray) -> tuple[IntArray, IntArray]:
        """A mask and trie nodes without what begins with one of `bytes_`."""
        lookup = self.automaton.lookup
        row = row.copy()
        ends = np.arange(1, len(bytes_) + 1, dtype=np.int32)
        scope_kernels.forbid_prefixes(lookup.trie, lookup.same_bytes, bytes_, ends, row)
        for node in lookup.first[bytes_].tolist():
            if node >= 0:
                exits = exits[(exits < node) | (exits >= lookup.trie[node, END])]
        return row, exits

    def _add_unlike(self, thread: Thread, bytes_: Bytes, mask: IntArray, most: int) -> int:
        """The tokens that begin with one of `bytes_`, by which a wide state leads elsewhere."""
        state, need, room, stack = thread
        worst = 0
        for byte in bytes_.tolist():
            root = self.automaton.lookup.first[byte : byte + 1]
            after, a, b = self.automaton.step(state, need, room, byte)
            if after >= 0 and root[0] >= 0:
                worst = max(worst, self._walk(((after, a, b, stack),), root, mask, most))
        return worst

    def _walk(
        self,
        threads: tuple[Thread, ...],
        roots: IntArray,
        mask: IntArray,
        most: int,
        *,
        closed: bool = True,
    ) -> int:
        lookup = self.automaton.lookup
        while True:
            n_threads = self._load(threads)
            status, worst = walks.walk(
                self.automaton.arrays, self.automaton.plan, most, lookup.trie, lookup.same_bytes,
                roots, self.arena, self.used, self.threads, n_threads, closed, self._levels,
                mask,
            )  # fmt: skip
            if status != kernels.FULL:
                return int(worst)
            self.grow()

    def _canonical_threads(self, state: State) -> tuple[Thread, ...]:
        """The state's threads with their room cut to what one token can use up."""
        return tuple(
            sorted({(s, a, self._cut(s, b), self._canonical[k]) for s, a, b, k in state.threads})
        )

    def _cut(self, state: int, room: int) -> int:
        if room == NO_LIMIT or self.automaton.program.states[state, LOOP] < 0:
            return room
        return min(room, self._room_cap + self.automaton.program.frame_of(state)[0].slack)

    def _intern_result(self, low: int, high: int, used: int, scopes: Scopes) -> State:
        """The state of the scratch threads [low, high), whose new stacks become permanent."""
        places = self._place(self.threads[low:high, T_STACK].tolist(), used)
        can_read = self.automaton.program.can_read
        threads: set[Thread] = set()
        rows: list[Thread] = self.threads[low:high].tolist()
        for s, a, b, stack in rows:
            if s == FINAL_STATE or can_read(s, a, b):
                threads.add((s, a, b, places.get(stack, stack)))
        return self._intern(tuple(sorted(threads)), scopes)

    def _place(self, stacks: list[int], used: int) -> dict[int, int]:
        """Permanent rows for the stacks that a kernel has just pushed, in rows up to `used`."""
        first = self.used
        pushed: list[list[int]] = self.arena[first:used].tolist()
        needed: set[int] = set()
        pending = [stack for stack in stacks if stack >= first]
        while pending:
            stack = pending.pop()
            if stack not in needed:
                needed.add(stack)
                pending.extend(row for row in _below(pushed[stack - first]) if row >= first)
        places: dict[int, int] = {}
        for stack in sorted(needed):  # what a row stands on has a smaller number
            places[stack] = self._move(pushed[stack - first], places)
        return places

    def _move(self, row: list[int], places: dict[int, int]) -> int:
        """The permanent row like `row`, whose stacks are renumbered by `places`."""
        state, a, b, parent, *rest = row
        if state == EITHER:
            return self._either(places.get(a, a), places.get(b, b), rest)
        return self._stack((state, a, b, places.get(parent, parent)), rest)

    def _intern(self, threads: tuple[Thread, ...], scopes: Scopes) -> State:
        state = self._states.get((threads, scopes))
        if state is None:
            accepting = FINAL in threads
            complete = accepting and len(threads) == 1
            state = State(threads, self, accepting, complete, scopes=scopes)
            self._states[(threads, scopes)] = state
            self.bytes_used += STATE_BYTES
            self.bytes_used += PART_BYTES * sum(len(scope.written.texts) for scope in scopes)
        return state

    def _either(self, one: int, other: int, rest: list[int]) -> int:
        """The permanent row that stands for two stacks."""
        if one == other:
            return one
        return self._stack((EITHER, min(one, other), max(one, other), 0), rest)

    def _stack(self, key: Thread, rest: list[int]) -> int:
        """The permanent arena row (return state, a, b, parent) with the columns behind it."""
        found = self._stacks.get(key)
        if found is not None:
            return found
        state, a, b, parent = key
        number = self._stacks[key] = self.used
        if number + len(self.threads) >= len(self.arena):
            self.arena = np.concatenate([self.arena, np.zeros_like(self.arena)])
        self.arena[number] = (*key, *rest)
        self.used += 1
        self._canonical.append(number)
        self.bytes_used += STATE_BYTES
        if state == EITHER:
            one, other = self._canonical[a], self._canonical[b]
            if (one, other) != (a, b):
                self._canonical[number] = self._either(one, other, rest)
            return number
        canonical = (state, a, self._cut(state, b), self._canonical[parent])
        if canonical != key:
            self._canonical[number] = self._stack(canonical, rest)
        return number

    def _adopt_stacks(self, other: StateTable, stacks: list[int]) -> dict[int, int]:
        """Rows of this table for stacks of another."""
        needed: set[int] = set()
        pending = list(stacks)
        while pending:
            stack = pending.pop()
            if stack not in needed and stack not in (END_OF_VALUE, BOTTOM):
                needed.add(stack)
                pending.extend(_below(other.arena[stack].tolist()))
        places = {END_OF_VALUE: END_OF_VALUE, BOTTOM: BOTTOM}
        for stack in sorted(needed):
            places[stack] = self._move(other.arena[stack].tolist(), places)
        return places


def _below(row: list[int]) -> tuple[int, ...]:
    """The rows that an arena row stands on."""
    return (row[A_A], row[A_B]) if row[A_STATE] == EITHER else (row[A_PARENT],)
