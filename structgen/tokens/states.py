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
from structgen.automata.frames import IntArray
from structgen.automata.kernels import END_OF_VALUE
from structgen.automata.program import ROOT_STATE
from structgen.options import Limits
from structgen.tokens import scope_kernels, walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.exclusion import Exclusion
from structgen.tokens.mask_rows import NONE, ROW_BYTES, MaskRow, mask_row
from structgen.tokens.masks import NO_TOKENS, MaskMaker
from structgen.tokens.points import NoSpace, Point
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.scopes import Scopes
from structgen.tokens.space import FINAL, Space, Thread, Threads

NO_END: Thread = (-1, 0, 0, END_OF_VALUE)
"""Among the threads of a mask: the end is not allowed, whatever they say."""
UNKNOWN = 2**61
"""In place of the most tokens needed after any that a state allows: its mask was not asked for."""
MOST_LIMITS = 64
"""Budgets that one computed mask is remembered for at most."""

STATE_BYTES, EDGE_BYTES, PART_BYTES = 512, 64, 64
"""Rough sizes of a state without its mask and of a remembered step, for the capacity."""


@dataclass(slots=True, eq=False)
class State:
    """All ways to have read the bytes so far; compared by identity within its table."""

    threads: Threads
    """Closed, sorted, without those that have no byte edges (but with FINAL)."""
    canonical: Threads
    """The threads with their room cut to what one token can use up: they have the same mask."""
    table: StateTable
    accepting: bool
    """The value may end here."""
    complete: bool
    """The value must end here."""
    next: dict[int, State] = field(default_factory=dict)
    """Successors by token id, as far as they were asked for."""
    row: MaskRow | None = None
    """The mask without regard to any budget; None until asked for."""
    worst: int = UNKNOWN
    """With a mask: the most tokens still needed after any token it allows."""
    limited: dict[int, MaskRow] = field(default_factory=dict)
    """Masks under a budget, by the most tokens that may be needed after the next one."""
    forced: dict[bytes, ForcedRun] = field(default_factory=dict)
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
        self.space = Space(automaton, limits.max_threads)
        self._states: dict[tuple[Threads, Scopes], State] = {}
        self._masks: dict[Threads, tuple[MaskRow, int]] = {}
        self._bases: dict[int, object] = {}
        self.bytes_used = 0
        self._masked = MaskMaker(automaton, profiles, self.space)
        self._exclusion = Exclusion(automaton, self.space) if automaton.program.has_scopes else None
        self.healing: dict[tuple[int, ...], State] = {}
        """Where to begin behind the last tokens of a prompt."""
        self.start = self._start()

    def memory_bytes(self) -> int:
        """Bytes of masks, states and scratch space."""
        return self.bytes_used + self.space.memory_bytes()

    @property
    def is_full(self) -> bool:
        """What was added is more than the capacity."""
        return self.bytes_used + self.space.kept_bytes > self._limits.cache_bytes

    def advance(self, state: State, token_id: int) -> State | None:
        """The state after a token of the vocabulary; None if it spells nothing legal."""
        with self._lock:
            if self._exclusion is None and not state.held:
                threads, canonical = self.space.after(state.threads, token_id)
                after = self._intern(threads, canonical, ()) if threads else None
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
        state = State((), (), self, accepting=False, complete=False, held=held)
        self.bytes_used += STATE_BYTES
        return state

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
            threads, canonical = self.space.adopt(state.table.space, state.threads)
            return self._intern(threads, canonical, state.scopes)

    def narrowed(self, state: State, threads: Threads) -> State:
        """The state with only these of its threads."""
        with self._lock:
            scopes = state.scopes
            if scopes:
                space = self.space
                n_threads = space.load(threads)
                depth = scope_kernels.deepest_path(
                    self.automaton.arrays, space.arena, space.threads, 0, n_threads
                )
                scopes = scopes[: int(depth).bit_length() - 1]
            return self._intern(threads, self.space.canonical(threads), scopes)

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
        key = state.canonical
        name = key if state.accepting or FINAL not in key else (*key, NO_END)
        found = self._masks.get(name)
        if found is None:
            found = self._masks[name] = self._masked.compute(key, state.accepting, -1)
            self._count_row(found[0])
        return found if self._exclusion is None else self._restricted(state, found, -1)

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
                found = self._masked.compute(state.canonical, state.accepting, most)
                row, worst = self._restricted(state, found, most)
            self._remember(state, row, max(min(worst, most), most - MOST_LIMITS), most)
        return row

    def _remember(self, state: State, row: MaskRow, least: int, most: int) -> None:
        """Keep a mask for the budgets that it is right for, while there is space."""
        if self.is_full:
            return
        self._count_row(row)
        for budget in range(least, most + 1):
            state.limited[budget] = row
        self.bytes_used += EDGE_BYTES * (most + 1 - least)

    def _count_row(self, row: MaskRow) -> None:
        """Add the size of a mask; what many masks share counts once."""
        self.bytes_used += ROW_BYTES + row.extra.nbytes
        base = row.base
        if base is not NONE:
            memory = base if base.base is None else base.base
            if id(memory) not in self._bases:
                self._bases[id(memory)] = memory
                self.bytes_used += base.nbytes

    def tokens_to_finish(self, state: State) -> int:
        """Tokens that suffice to finish the value."""
        if state.held:
            return len(state.held) + self.tokens_to_finish(self.start)
        automaton, space = self.automaton, self.space
        with self._lock:
            while True:
                n_threads = space.load(state.threads)
                try:
                    if self._exclusion is not None and state.scopes:
                        return self._exclusion.needed(Point(0, n_threads, space.used, state.scopes))
                    return int(
                        kernels.fewest_tokens(
                            automaton.arrays, automaton.plan, space.arena, space.threads, 0,
                            n_threads,
                        )
                    )  # fmt: skip
                except NoSpace:
                    space.grow()

    def _restricted(
        self, state: State, found: tuple[MaskRow, int], most: int
    ) -> tuple[MaskRow, int]:
        """A mask and its worst without what would repeat a part of an array or object."""
        if self._exclusion is None:
            return found
        plain, worst = found
        while True:
            n_threads = self.space.load(state.threads)
            point = Point(0, n_threads, self.space.used, state.scopes)
            try:
                row, along = self._exclusion.restricted(point, plain, most)
            except NoSpace:
                self.space.grow()
                continue
            if row is not plain:
                self._count_row(row)
            return row, max(worst, along)

    def forced_bytes(self, state: State, most: int) -> bytes:
        """Bytes that must come next, at most `most`."""
        automaton, space = self.automaton, self.space
        out = np.empty(most, np.uint8)
        with self._lock:
            while True:
                n_threads = space.load(state.threads)
                count = kernels.forced_bytes(
                    automaton.arrays, automaton.plan, space.arena, space.used, space.threads,
                    n_threads, out,
                )  # fmt: skip
                if count != kernels.FULL:
                    return out[:count].tobytes()
                space.grow()

    def _start(self) -> State:
        automaton, space = self.automaton, self.space
        while True:
            n_threads = space.load(((ROOT_STATE, 0, 0, END_OF_VALUE),))
            high, used, _ = kernels.close(
                automaton.arrays, automaton.plan, space.arena, space.used, space.threads, 0, 0,
                n_threads,
            )  # fmt: skip
            if high != kernels.FULL:
                return self._intern_result(0, high, used, ())
            space.grow()

    def _run(self, state: State, data: bytes) -> tuple[int, int, int, Scopes]:
        """Where threads[low:high] stand behind `data`, the arena's end, and the scopes.

        low == high where `data` is not legal.
        """
        automaton, space = self.automaton, self.space
        text = np.frombuffer(bytearray(data), np.uint8)
        while True:
            n_threads = space.load(state.threads)
            if self._exclusion is None:
                low, high, used = kernels.read_bytes(
                    automaton.arrays, automaton.plan, space.arena, space.used, space.threads,
                    n_threads, text,
                )  # fmt: skip
                if high != kernels.FULL:
                    return low, high, used, ()
            else:
                try:
                    start = Point(0, n_threads, space.used, state.scopes)
                    at = self._exclusion.run(start, data) or Point(0, 0, space.used, ())
                    return at.low, at.high, at.used, at.scopes
                except NoSpace:
                    pass
            space.grow()

    def _intern_result(self, low: int, high: int, used: int, scopes: Scopes) -> State:
        """The state of the scratch threads [low, high), whose new stacks become permanent."""
        threads, canonical = self.space.settle(low, high, used)
        return self._intern(threads, canonical, scopes)

    def _intern(self, threads: Threads, canonical: Threads, scopes: Scopes) -> State:
        state = self._states.get((threads, scopes))
        if state is None:
            accepting = FINAL in threads
            if scopes and accepting:
                # At the end of a bare list the last label may be one that was written before.
                accepting = all(scope.ended() for scope in scopes)
            complete = accepting and len(threads) == 1
            state = State(threads, canonical, self, accepting, complete, scopes=scopes)
            self._states[(threads, scopes)] = state
            self.bytes_used += STATE_BYTES
            if scopes:
                self.bytes_used += PART_BYTES * sum(len(scope.written.texts) for scope in scopes)
        return state
