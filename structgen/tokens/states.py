"""Run-time states: sets of threads, interned, with their masks and successors found on demand.

The table is a cache in front of the kernels: what a state allows and where a token leads is
computed at the first visit and remembered. When the masks outgrow their capacity the compiled
schema starts a new table; sessions keep the one they are in until their next move.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from structgen.automata import kernels
from structgen.automata.frames import CHAIN, FLAGS, LABEL, LOOP, NO_LIMIT, ROW, IntArray
from structgen.automata.kernels import (
    A_A,
    A_B,
    A_PARENT,
    A_SCOPES,
    A_STATE,
    BOTTOM,
    EITHER,
    END_OF_VALUE,
    NO_SCOPES,
    T_STACK,
)
from structgen.automata.program import FINAL_STATE, ROOT_STATE, Program
from structgen.errors import LimitError
from structgen.options import Limits
from structgen.tokens import scope_kernels, walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.exclusion import Exclusion
from structgen.tokens.mask_rows import NONE, ROW_BYTES, MaskRow, mask_row
from structgen.tokens.masks import NO_TOKENS, MaskMaker, Thread
from structgen.tokens.points import NoSpace, Point
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.scopes import Scopes

FINAL: Thread = (FINAL_STATE, 0, 0, END_OF_VALUE)
NO_END: Thread = (-1, 0, 0, END_OF_VALUE)
"""Among the threads of a mask: the end is not allowed, whatever they say."""
UNKNOWN = 2**61
"""In place of the most tokens needed after any that a state allows: its mask was not asked for."""
NEVER, ALWAYS, LABELS = range(3)
MOST_LIMITS = 64
"""Budgets that one computed mask is remembered for at most."""

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
    row: MaskRow | None = None
    """The mask without regard to any budget; None until asked for."""
    worst: int = UNKNOWN
    """With a mask: the most tokens still needed after any token it allows."""
    limited: dict[int, MaskRow] = field(default_factory=dict[int, MaskRow])
    """Masks under a budget, by the most tokens that may be needed after the next one."""
    forced: dict[bytes, ForcedRun] = field(default_factory=dict[bytes, "ForcedRun"])
    """What is certain to come next behind some bytes, as far as it was asked for."""
    scopes: Scopes = ()
    """What was written in open arrays and objects whose parts must differ."""
    held: tuple[int, ...] = ()
    """Tokens at a prompt's end, to be written again before the value, or instead of which a longer
    token may be written that begins with the same bytes. Such a state has no threads."""


@dataclass(slots=True, eq=False)
class ForcedRun:
    """Tokens that are certain to come next."""

    token_ids: tuple[int, ...]
    worst: int = UNKNOWN
    """With so many tokens left behind the first one, a budget affords all of them."""


class StateTable:
    """States of one automaton; mutable, guarded by one lock where something is added."""

    def __init__(self, automaton: Automaton, profiles: ProfileCache, limits: Limits) -> None:
        self.automaton = automaton
        self._limits = limits
        self._lock = threading.RLock()
        longest = automaton.vocabulary.max_token_bytes
        self._room_cap = longest + 1
        self.threads = np.zeros((4 * longest + 256, 4), np.int32)
        self.arena = np.zeros((4 * longest + 1024, 7), np.int32)
        self.arena[:2, A_SCOPES] = NO_SCOPES
        self.used = 2
        self._stacks: dict[Thread, int] = {}
        self._canonical: list[int] = [END_OF_VALUE, BOTTOM]
        self._states: dict[tuple[tuple[Thread, ...], Scopes], State] = {}
        self._masks: dict[tuple[Thread, ...], tuple[MaskRow, int]] = {}
        self._bases: dict[int, object] = {id(NONE): NONE}
        self.bytes_used = 0
        self._masked = MaskMaker(automaton, profiles, self)
        self._exclusion = Exclusion(automaton, self) if automaton.program.has_scopes else None
        self._readers = _readers(automaton.program)
        self.healing: dict[tuple[int, ...], State] = {}
        """Where to begin behind the last tokens of a prompt."""
        self.start = self._start()

    def memory_bytes(self) -> int:
        """Bytes of masks, states and scratch space."""
        return self.bytes_used + self.arena.nbytes + self.threads.nbytes

    def advance(self, state: State, token_id: int) -> State | None:
        """The state after a token of the vocabulary; None if it spells nothing legal."""
        with self._lock:
            if self._exclusion is None and not state.held:
                after = self._after_token(state, token_id)
            else:
                data = self.automaton.vocabulary.bytes_of(token_id)
                follow = self._after_held if state.held else self._after_bytes
                after = follow(state, token_id, data) if data else None
            if after is None:
                return None
            state.next[token_id] = after
            self.bytes_used += EDGE_BYTES
            return after

    def after(self, state: State, data: bytes) -> State:
        """The state after bytes that are legal."""
        with self._lock:
            after = self._after(state, data)
        assert after is not None, "the bytes are legal"
        return after

    def reads(self, state: State, data: bytes) -> bool:
        """Whether bytes are legal."""
        with self._lock:
            low, high, _, _ = self._run(state, data)
            return low < high

    def longer_tokens(self, state: State, node: int) -> IntArray:
        """int32[K]: tokens that begin with a trie node's bytes and go on as `state` allows."""
        with self._lock:
            return NO_TOKENS if node < 0 else self._masked.longer(state.threads, node, -1)[0]

    def remember_forced(self, state: State, before: bytes, run: ForcedRun) -> None:
        """Keep what is certain to come next behind some bytes."""
        with self._lock:
            state.forced[before] = run
            self.bytes_used += EDGE_BYTES + 8 * len(run.token_ids)

    def remember_healing(self, tail: tuple[int, ...], state: State) -> None:
        """Keep where to begin behind the last tokens of a prompt."""
        with self._lock:
            self.healing[tail] = state
            self.bytes_used += EDGE_BYTES + 8 * len(tail)

    def holding(self, held: tuple[int, ...]) -> State:
        """The state before a value in front of which tokens of a prompt are to be written again."""
        state = State((), self, accepting=False, complete=False, held=held)
        self.bytes_used += STATE_BYTES
        return state

    def _after_token(self, state: State, token_id: int) -> State | None:
        """`_after` the bytes of a token, without scopes."""
        automaton, lookup, threads = self.automaton, self.automaton.lookup, state.threads
        while True:
            n_threads = len(threads) if len(threads) == 1 else self.load(threads)
            low, high, used, to, a, b, stack = kernels.read_token(
                automaton.arrays, automaton.plan, self.arena, self.used, self.threads,
                n_threads, *(threads[0] if n_threads else FINAL),
                lookup.blob, lookup.starts, token_id,
            )  # fmt: skip
            if high != kernels.FULL:
                break
            self.grow()
        if high == low + 1 and used == self.used and self._reads(to, a, b):
            return self._intern(((to, a, b, stack),), ())
        return None if low == high else self._intern_result(low, high, used, ())

    def _after_bytes(self, state: State, token_id: int, data: bytes) -> State | None:  # noqa: ARG002
        return self._after(state, data)

    def _after(self, state: State, data: bytes) -> State | None:
        low, high, used, scopes = self._run(state, data)
        return None if low == high else self._intern_result(low, high, used, scopes)

    def _after_held(self, state: State, token_id: int, data: bytes) -> State | None:
        """One of the held tokens was written, or one that reaches into the value."""
        if token_id == state.held[0]:
            return self.holding(state.held[1:]) if state.held[1:] else self.start
        held = self.automaton.vocabulary.decode(state.held)
        if len(data) <= len(held) or not data.startswith(held):
            return None
        return self._after(self.start, data[len(held) :])

    def _held_row(self, state: State, most: int) -> tuple[MaskRow, int]:
        """The first held token, and those that reach into the value."""
        vocabulary = self.automaton.vocabulary
        held = vocabulary.decode(state.held)
        node = walks.find_node(self.automaton.lookup.trie, np.frombuffer(bytearray(held), np.uint8))
        longer, worst = NO_TOKENS, -1
        if node >= 0:
            longer, worst = self._masked.longer(self.start.threads, node, most)
        if self._exclusion is not None:
            rests = ((vocabulary.bytes_of(t) or b"")[len(held) :] for t in longer.tolist())
            longer = longer[[self.reads(self.start, rest) for rest in rests]]
        needed = len(state.held) - 1 + self.tokens_to_finish(self.start)
        if most < 0 or needed <= most:
            longer, worst = np.append(longer, np.int32(state.held[0])), max(worst, needed)
        return mask_row(NONE, longer, vocabulary.n_words), worst

    def release(self, *, for_good: bool = False) -> None:
        """Forget all states, so that their circles of references do not keep them in memory.

        Sessions that are in one of them still can go on, unless it is `for_good`.
        """
        with self._lock:
            states = list(self._states.values())
            self._states.clear()
            self._masks.clear()
            for state in (*states, *self.healing.values()):
                state.next.clear()
                state.limited.clear()
            self.healing.clear()
            if for_good:
                del self.start, self._masked
                self._exclusion = None

    def adopt(self, state: State) -> State:
        """The same state in this table, for a session that comes from an older one."""
        if state.table is self:
            return state
        if state.held:
            return self.holding(state.held)
        with self._lock:
            places = self._adopt_stacks(state.table, [thread[T_STACK] for thread in state.threads])
            moved = {(s, a, b, places[stack]) for s, a, b, stack in state.threads}
            return self._intern(tuple(sorted(moved)), state.scopes)

    def narrowed(self, state: State, threads: tuple[Thread, ...]) -> State:
        """The state with only these of its threads."""
        with self._lock:
            scopes = state.scopes
            if scopes:
                n_threads = self.load(threads)
                depth = scope_kernels.deepest_path(
                    self.automaton.arrays, self.arena, self.threads, 0, n_threads
                )
                scopes = scopes[: int(depth).bit_length() - 1]
            return self._intern(threads, scopes)

    def mask(self, state: State) -> IntArray:
        """int32[n_words], read-only: the tokens that `state` allows, the end token included."""
        return self.row(state).dense()

    def row(self, state: State) -> MaskRow:
        """The tokens that `state` allows, the end token included."""
        if state.row is None:
            with self._lock:
                row, worst = self._held_row(state, -1) if state.held else self._plain_row(state)
                # In this order: other threads read the mask as soon as `worst` is known.
                state.row = row
                state.worst = worst
        return state.row

    def _plain_row(self, state: State) -> tuple[MaskRow, int]:
        key = self._canonical_threads(state)
        name = key if state.accepting else (*key, NO_END)
        found = self._masks.get(name)
        if found is None:
            found = self._masks[name] = self._masked.compute(key, state.accepting, -1)
            self._count_row(found[0])
        return self._restricted(state, found, -1)

    def limited_row(self, state: State, most: int) -> MaskRow:
        """Like `row`, but only tokens after which at most `most` more suffice.

        A negative `most` allows no further token, only the end.
        """
        most = max(most, -1)
        row = state.limited.get(most)
        if row is not None:
            return row
        if most >= 0:
            row = self.row(state)
            if state.worst <= most:
                return row
        with self._lock:
            if most < 0:
                row, worst = self._masked.end(state.accepting), -1
            elif state.held:
                row, worst = self._held_row(state, most)
            else:
                key = self._canonical_threads(state)
                found = self._masked.compute(key, state.accepting, most)
                row, worst = self._restricted(state, found, most)
            self._remember(state, row, max(min(worst, most), most - MOST_LIMITS), most)
        return row

    def _remember(self, state: State, row: MaskRow, least: int, most: int) -> None:
        """Keep a mask for the budgets that it is right for, while there is space."""
        if self.bytes_used > self._limits.cache_bytes:
            return
        self._count_row(row)
        for budget in range(least, most + 1):
            state.limited[budget] = row
        self.bytes_used += EDGE_BYTES * (most + 1 - least)

    def _count_row(self, row: MaskRow) -> None:
        """Add the size of a mask; what many masks share counts once."""
        self.bytes_used += ROW_BYTES + row.extra.nbytes
        memory = row.base if row.base.base is None else row.base.base
        if id(memory) not in self._bases:
            self._bases[id(memory)] = memory
            self.bytes_used += row.base.nbytes

    def tokens_to_finish(self, state: State) -> int:
        """Tokens that suffice to finish the value."""
        if state.held:
            return len(state.held) + self.tokens_to_finish(self.start)
        with self._lock:
            while True:
                n_threads = self.load(state.threads)
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
        self, state: State, found: tuple[MaskRow, int], most: int
    ) -> tuple[MaskRow, int]:
        """A mask and its worst without what would repeat a part of an array or object."""
        if self._exclusion is None:
            return found
        plain, worst = found
        while True:
            n_threads = self.load(state.threads)
            point = Point(0, n_threads, self.used, state.scopes)
            try:
                row, along = self._exclusion.restricted(point, plain, most)
            except NoSpace:
                self.grow()
                continue
            if row is not plain:
                self._count_row(row)
            return row, max(worst, along)

    def forced_bytes(self, state: State, most: int) -> bytes:
        """Bytes that must come next, at most `most`."""
        out = np.empty(most, np.uint8)
        with self._lock:
            while True:
                n_threads = self.load(state.threads)
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

    def _run(self, state: State, data: bytes) -> tuple[int, int, int, Scopes]:
        """Where threads[low:high] stand behind `data`, the arena's end, and the scopes.

        low == high where `data` is not legal.
        """
        automaton = self.automaton
        text = np.frombuffer(bytearray(data), np.uint8)
        while True:
            n_threads = self.load(state.threads)
            if self._exclusion is None:
                low, high, used = kernels.read_bytes(
                    automaton.arrays, automaton.plan, self.arena, self.used, self.threads,
                    n_threads, text,
                )  # fmt: skip
                if high != kernels.FULL:
                    return low, high, used, ()
            else:
                try:
                    start = Point(0, n_threads, self.used, state.scopes)
                    at = self._exclusion.run(start, data) or Point(0, 0, self.used, ())
                    return at.low, at.high, at.used, at.scopes
                except NoSpace:
                    pass
            self.grow()

    def load(self, threads: tuple[Thread, ...]) -> int:
        """Write threads to the front of the scratch threads; how many they are."""
        if len(threads) == 1:
            self.threads[0] = threads[0]
            return 1
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

    def _canonical_threads(self, state: State) -> tuple[Thread, ...]:
        """The state's threads with their room cut to what one token can use up."""
        threads = [(s, a, self._cut(s, b), self._canonical[k]) for s, a, b, k in state.threads]
        return tuple(threads if len(threads) == 1 else sorted(set(threads)))

    def _cut(self, state: int, room: int) -> int:
        if room == NO_LIMIT or self.automaton.program.states[state, LOOP] < 0:
            return room
        return min(room, self._room_cap + self.automaton.program.frame_of(state)[0].slack)

    def _intern_result(self, low: int, high: int, used: int, scopes: Scopes) -> State:
        """The state of the scratch threads [low, high), whose new stacks become permanent."""
        rows: list[Thread] = self.threads[low:high].tolist()
        threads = [(s, a, b, stack) for s, a, b, stack in rows if self._reads(s, a, b)]
        if used > self.used:
            places = self._place([row[T_STACK] for row in rows], used)
            threads = [(s, a, b, places.get(stack, stack)) for s, a, b, stack in threads]
        return self._intern(tuple(threads if len(threads) == 1 else sorted(set(threads))), scopes)

    def _reads(self, state: int, a: int, b: int) -> bool:
        """Whether a thread can read a byte, or is at the end of the value."""
        how = self._readers[state]
        return how == ALWAYS or (how == LABELS and self.automaton.program.can_read(state, a, b))

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
            # At the end of a bare list the last label may be one that was written before.
            accepting = FINAL in threads and all(scope.ended() for scope in scopes)
            complete = accepting and len(threads) == 1
            state = State(threads, self, accepting, complete, scopes=scopes)
            self._states[(threads, scopes)] = state
            self.bytes_used += STATE_BYTES
            if scopes:
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


def _readers(program: Program) -> bytes:
    """For each state whether it has byte edges: NEVER, ALWAYS, or LABELS if that depends."""
    states = program.states
    reads = (states[:, CHAIN] >= 0) | (states[:, ROW] >= 0)
    reads[FINAL_STATE] = True
    return np.where(states[:, FLAGS] & LABEL, LABELS, reads).astype(np.uint8).tobytes()


def _below(row: list[int]) -> tuple[int, ...]:
    """The rows that an arena row stands on."""
    return (row[A_A], row[A_B]) if row[A_STATE] == EITHER else (row[A_PARENT],)
