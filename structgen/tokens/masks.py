"""What a state allows: a walk of the vocabulary's trie, and the masks of the insides of strings."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata import kernels
from structgen.automata.frames import FLAGS, WIDE, IntArray
from structgen.automata.kernels import A_TOKENS
from structgen.automata.program import RETURN_STATE
from structgen.tokens import scope_kernels, walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.mask_rows import NONE, MaskRow, mask_row
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.trie import END, TOKEN

Thread: TypeAlias = tuple[int, int, int, int]
"""(state, a, b, stack), as in the kernels."""
Bytes: TypeAlias = npt.NDArray[np.uint8]

NO_TOKENS = np.zeros(0, np.int32)
FROM_ROOT = np.zeros(1, np.int32)
"""Roots of a walk from the trie's root."""


class Scratch(Protocol):
    """Working space that grows; rows of the arena below `used` are permanent."""

    arena: IntArray
    threads: IntArray
    used: int

    def load(self, threads: tuple[Thread, ...]) -> int:
        """Write threads to the front of the scratch threads; how many they are."""
        ...

    def grow(self) -> None:
        """Double both arrays."""
        ...


class MaskMaker:
    """Computes masks of one automaton in the scratch space of its table; one thread at a time."""

    def __init__(self, automaton: Automaton, profiles: ProfileCache, scratch: Scratch) -> None:
        self._automaton = automaton
        self._profiles = profiles
        self._scratch = scratch
        self._levels = np.zeros((automaton.vocabulary.max_token_bytes + 3, 5), np.int32)
        self._listed = np.empty(1024, np.int32)
        self._wide = (automaton.program.states[:, FLAGS] & WIDE != 0).tobytes()
        self._count = 0
        # What is found for one mask: rows of the insides of strings, and further tokens.
        self._rows: list[IntArray] = []

    def compute(
        self, threads: tuple[Thread, ...], accepting: bool, most: int
    ) -> tuple[MaskRow, int]:
        """The tokens that threads allow, and the most tokens needed after any of them.

        Args:
            most: only tokens after which at most so many more suffice; -1 for any number.
        """
        self._count = 0
        self._rows.clear()
        wide = [thread for thread in threads if self._wide[thread[0]]]
        narrow = tuple(thread for thread in threads if thread not in wide) if wide else threads
        worst = self._walk(narrow, FROM_ROOT, most) if narrow else 0
        for thread in wide:
            worst = max(worst, self._add_wide(thread, most))
        return self._row(accepting), worst

    def longer(self, threads: tuple[Thread, ...], node: int, most: int) -> tuple[IntArray, int]:
        """int32[K]: the tokens that begin with a trie node's bytes and go on as threads allow.

        With the most tokens needed after any of them; `most` is as for `compute`.
        """
        self._count = 0
        worst = self._walk(threads, np.array([node], np.int32), most)
        listed = self._listed[: self._count]
        lookup = self._automaton.lookup
        own = int(lookup.trie[node, TOKEN])
        while own >= 0:
            listed = listed[listed != own]
            own = int(lookup.same_bytes[own])
        return listed.copy(), worst

    def end(self, accepting: bool) -> MaskRow:
        """The mask that allows nothing but the end, and that only if it is legal."""
        self._count = 0
        self._rows.clear()
        return self._row(accepting)

    def _row(self, accepting: bool) -> MaskRow:
        vocabulary = self._automaton.vocabulary
        extra = self._listed[: self._count]
        if accepting:
            extra = np.concatenate([extra, np.array(vocabulary.eos_token_ids, np.int32)])
        base = self._rows[0] if self._rows else NONE
        if len(self._rows) > 1:
            base = np.bitwise_or.reduce(self._rows)
        return mask_row(base, extra, vocabulary.n_words)

    def _add_wide(self, thread: Thread, most: int) -> int:
        """Inner mask of a wide frame, then a walk from its exits in the return state."""
        state, need, room, stack = thread
        automaton = self._automaton
        frame, local = automaton.program.frame_of(state)
        like = local if frame.like is None else int(frame.like[local])
        base = state - local
        profile = self._profiles.get(automaton, base + like)
        behind = int(self._scratch.arena[stack, A_TOKENS])
        if behind >= kernels.UNREACHABLE:
            return 0  # what must follow cannot be written
        row, worst = self._profiles.row(automaton, profile, base, need, room, -1)
        if 0 <= most < worst + behind:
            within = max(most - behind, 0)
            row, worst = self._profiles.row(automaton, profile, base, need, room, within)
        exits = profile.exits_within(need, room)
        worst += behind
        if like != local:
            bytes_ = automaton.unlike(state, base + like)
            row, exits = self._without(bytes_, row, exits)
            worst = max(worst, self._add_unlike(thread, bytes_, most))
        if most < 0 or most > behind:
            self._rows.append(row)
        if not len(exits):
            return worst
        after = (RETURN_STATE, 0, 0, stack)
        return max(worst, self._walk((after,), exits, most, closed=False))

    def _without(self, bytes_: Bytes, row: IntArray, exits: IntArray) -> tuple[IntArray, IntArray]:
        """A mask and trie nodes without what begins with one of `bytes_`."""
        lookup = self._automaton.lookup
        row = row.copy()
        ends = np.arange(1, len(bytes_) + 1, dtype=np.int32)
        scope_kernels.forbid_prefixes(lookup.trie, lookup.same_bytes, bytes_, ends, row)
        for node in lookup.first[bytes_].tolist():
            if node >= 0:
                exits = exits[(exits < node) | (exits >= lookup.trie[node, END])]
        return row, exits

    def _add_unlike(self, thread: Thread, bytes_: Bytes, most: int) -> int:
        """The tokens that begin with one of `bytes_`, by which a wide state leads elsewhere."""
        state, need, room, stack = thread
        worst = 0
        for byte in bytes_.tolist():
            root = self._automaton.lookup.first[byte : byte + 1]
            after, a, b = self._automaton.step(state, need, room, byte)
            if after >= 0 and root[0] >= 0:
                worst = max(worst, self._walk(((after, a, b, stack),), root, most))
        return worst

    def _walk(
        self, threads: tuple[Thread, ...], roots: IntArray, most: int, *, closed: bool = True
    ) -> int:
        """List the tokens below some trie nodes; the most tokens needed after any of them."""
        automaton, lookup, scratch = self._automaton, self._automaton.lookup, self._scratch
        while True:
            n_threads = scratch.load(threads)
            status, worst, count = walks.walk(
                automaton.arrays, automaton.plan, most, lookup.trie, lookup.same_bytes,
                lookup.first, roots, scratch.arena, scratch.used, scratch.threads, n_threads,
                closed, self._levels, self._listed, self._count,
            )  # fmt: skip
            if status == kernels.FULL:
                scratch.grow()
            elif count > len(self._listed):
                more = np.empty(2 * count, np.int32)
                more[: self._count] = self._listed[: self._count]
                self._listed = more
            else:
                self._count = count
                return worst
