"""The scratch space of a table: threads on their way, and the arena of their stacks."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from structgen.automata import kernels
from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import FRAME, LOOP
from structgen.automata.kernels import (
    A_A,
    A_B,
    A_CANONICAL,
    A_PARENT,
    A_SCOPES,
    A_STATE,
    BOTTOM,
    EITHER,
    END_OF_VALUE,
    NO_SCOPES,
    T_STACK,
)
from structgen.automata.program import FINAL_STATE
from structgen.errors import LimitError
from structgen.tokens import layout, stacks
from structgen.tokens.automaton import Automaton

Thread: TypeAlias = tuple[int, int, int, int]
"""(state, a, b, stack), as in the kernels."""
Threads: TypeAlias = tuple[Thread, ...]

FIRST_ROW = 2
"""Of the arena, behind END_OF_VALUE and BOTTOM."""
ROW_BYTES = 64
"""Rough size of a permanent row with its place in the hash table."""
FINAL: Thread = (FINAL_STATE, 0, 0, END_OF_VALUE)


class Space:
    """Working space that grows; rows of the arena below `used` are permanent.

    It belongs to one thread at a time.
    """

    def __init__(self, automaton: Automaton, max_threads: int) -> None:
        self.automaton = automaton
        self._max_threads = max_threads
        longest = automaton.vocabulary.max_token_bytes
        self.threads = np.zeros((4 * longest + 256, 4), np.int32)
        self.arena = np.zeros((4 * longest + 1024, layout.ARENA_COLUMNS), np.int32)
        self.arena[:2, A_SCOPES] = NO_SCOPES
        self.arena[:2, A_CANONICAL] = END_OF_VALUE, BOTTOM
        self.used = FIRST_ROW
        self.kept_bytes = 0
        """Of the permanent rows."""
        self._levels = np.zeros((longest + 3, 5), np.int32)
        self.listed = np.empty(1024, np.int32)
        """What a walk has found, see `structgen.tokens.walks`."""
        slack = [frame.slack for frame in automaton.program.frames]
        self._caps = np.array(slack, np.int32) + np.int32(longest + 1)
        self._slots = np.zeros(0, np.int32)
        self.record = layout.new_record(automaton)
        """All of these for the kernels, see `structgen.tokens.layout`."""
        self._write_record()

    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.arena, self.threads, self.listed, self._slots, self._levels)
        return sum(array.nbytes for array in arrays)

    def load(self, threads: Threads) -> int:
        """Write threads to the front of the scratch threads; how many they are."""
        if len(threads) == 1:
            self.threads[0] = threads[0]
            return 1
        while len(threads) > len(self.threads):
            self.grow()
        if threads:
            self.threads[: len(threads)] = threads
        return len(threads)

    def after(self, threads: Threads, token_id: int) -> tuple[Threads, Threads]:
        """The threads behind a token's bytes and their canonical ones; none if it is not legal."""
        while True:
            n_threads = 1 if len(threads) == 1 else self.load(threads)
            count, n_canonical, used, state, a, b, stack, cut, canonical = stacks.take(
                self.record, self.used, n_threads, *(threads[0] if threads else FINAL), token_id
            )
            if count != kernels.FULL:
                break
            self.grow()
        if used != self.used:
            self._keep(used)
        if count != 1:
            return self._settled(count, n_canonical)
        after = ((state, a, b, stack),)
        if canonical == stack and cut == b:
            return after, after
        return after, ((state, a, cut, canonical),)

    def settle(self, low: int, high: int, used: int) -> tuple[Threads, Threads]:
        """The scratch threads [low, high), whose new stacks become permanent, and canonical."""
        while True:
            count, n_canonical, top = stacks.settle(self.record, low, high, self.used, used)
            if count != kernels.FULL:
                break
            self.grow()
        if top != self.used:
            self._keep(top)
        return self._settled(count, n_canonical)

    def _settled(self, count: int, n_canonical: int) -> tuple[Threads, Threads]:
        """What `stacks.settle` left in the scratch threads."""
        rows: list[Thread] = list(map(tuple, self.threads[: count + n_canonical].tolist()))
        if count == 1:
            return tuple(rows[:1]), self.canonical(tuple(rows[:1]))
        return tuple(rows[:count]), tuple(rows[count:])

    def _keep(self, used: int) -> None:
        """Count new permanent rows, and leave space for what a step can push."""
        self.kept_bytes += ROW_BYTES * (used - self.used)
        self.used = used
        if used + len(self.threads) >= len(self.arena):
            self._double_arena()

    def canonical(self, threads: Threads) -> Threads:
        """Threads with their room cut to what one token can use up."""
        places = self.arena[[thread[T_STACK] for thread in threads], A_CANONICAL].tolist()
        cut = {
            (state, a, self._cut(state, b), place)
            for (state, a, b, _), place in zip(threads, places, strict=True)
        }
        return tuple(sorted(cut))

    def _cut(self, state: int, room: int) -> int:
        program = self.automaton.program
        if room == NO_LIMIT or program.states[state, LOOP] < 0:
            return room
        return min(room, int(self._caps[program.states[state, FRAME]]))

    def adopt(self, other: Space, threads: Threads) -> tuple[Threads, Threads]:
        """Threads of another space in this one."""
        needed: set[int] = set()
        pending = [thread[T_STACK] for thread in threads]
        while pending:
            stack = pending.pop()
            if stack not in needed and stack not in (END_OF_VALUE, BOTTOM):
                needed.add(stack)
                pending.extend(_below(other.arena[stack].tolist()))
        while self.used + len(needed) > len(self.arena):
            self._double_arena()
        places = {END_OF_VALUE: END_OF_VALUE, BOTTOM: BOTTOM}
        for stack in sorted(needed):  # what a row stands on has a smaller number
            row = other.arena[stack].copy()
            for column in (A_A, A_B) if row[A_STATE] == EITHER else (A_PARENT,):
                row[column] = places[int(row[column])]
            places[stack] = self.used + len(places) - FIRST_ROW
            self.arena[places[stack]] = row
        moved = tuple((s, a, b, places[stack]) for s, a, b, stack in threads)
        return self.settle(0, self.load(moved), self.used + len(needed))

    def grow(self) -> None:
        """Double the scratch space; ambiguous schemas need more than usual."""
        if len(self.threads) > 64 * self._max_threads:
            raise LimitError(
                f"the schema is too ambiguous: more than Limits.max_threads="
                f"{self._max_threads} alternatives are open at once; give unions a "
                "discriminating first field"
            )
        self.threads = np.concatenate([self.threads, np.zeros_like(self.threads)])
        self._double_arena()

    def list_more(self, n_tokens: int, kept: int) -> None:
        """Make space for so many listed tokens, of which the first `kept` remain."""
        more = np.empty(2 * n_tokens, np.int32)
        more[:kept] = self.listed[:kept]
        self.listed = more
        self._write_record()

    def _double_arena(self) -> None:
        self.arena = np.concatenate([self.arena, np.zeros_like(self.arena)])
        self._write_record()

    def _write_record(self) -> None:
        """Note where the arrays are, of which some were replaced."""
        has_slots = len(self._slots) >= 2 * len(self.arena)  # at most half of them are ever used
        if not has_slots:
            self._slots = np.full(1 << (2 * len(self.arena)).bit_length(), -1, np.int32)
        space = self.arena, self.threads, self._slots, self._caps, self._levels, self.listed
        layout.put_space(self.record, space)
        if not has_slots and self.used > FIRST_ROW:
            stacks.enter_all(self.record, self.used)


def _below(row: list[int]) -> tuple[int, ...]:
    """The rows that an arena row stands on."""
    return (row[A_A], row[A_B]) if row[A_STATE] == EITHER else (row[A_PARENT],)
