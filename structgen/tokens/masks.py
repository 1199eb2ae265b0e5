"""What a state allows: a walk of the vocabulary's trie, and the masks of the insides of strings."""

from __future__ import annotations

from typing import TypeAlias

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
from structgen.tokens.space import FINAL, Space, Thread, Threads
from structgen.tokens.trie import END, TOKEN

Bytes: TypeAlias = npt.NDArray[np.uint8]

NO_TOKENS = np.zeros(0, np.int32)
FROM_ROOT = np.zeros(1, np.int32)
"""Roots of a walk from the trie's root."""


class MaskMaker:
    """Computes masks of one automaton in the scratch space of its table; one thread at a time."""

    def __init__(self, automaton: Automaton, profiles: ProfileCache, space: Space) -> None:
        self._automaton = automaton
        self._profiles = profiles
        self._space = space
        self._wide = (automaton.program.states[:, FLAGS] & WIDE != 0).tobytes()
        self._count = 0
        # What is found for one mask: rows of the insides of strings, and further tokens.
        self._rows: list[IntArray] = []

    def compute(self, threads: Threads, accepting: bool, most: int) -> tuple[MaskRow, int]:
        """The tokens that threads allow, and the most tokens needed after any of them.

        Args:
            most: only tokens after which at most so many more suffice; -1 for any number.
        """
        self._count = 0
        self._rows.clear()
        is_wide, worst = self._wide, 0
        wide = [thread for thread in threads if is_wide[thread[0]]]
        if len(wide) < len(threads):
            narrow = tuple(thread for thread in threads if thread not in wide) if wide else threads
            worst = self._walk(narrow, FROM_ROOT, most)
        for thread in wide:
            worst = max(worst, self._add_wide(thread, most))
        return self._row(accepting), worst

    def longer(self, threads: Threads, node: int, most: int) -> tuple[IntArray, int]:
        """int32[K]: the tokens that begin with a trie node's bytes and go on as threads allow.

        With the most tokens needed after any of them; `most` is as for `compute`.
        """
        self._count = 0
        worst = self._walk(threads, np.array([node], np.int32), most)
        listed = self._space.listed[: self._count]
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
        extra = self._space.listed[: self._count]
        if accepting:
            extra = np.concatenate([extra, np.array(vocabulary.eos_token_ids, np.int32)])
        rows = self._rows
        base = NONE if not rows else rows[0] if len(rows) == 1 else np.bitwise_or.reduce(rows)
        return mask_row(base, extra, vocabulary.n_words)

    def _add_wide(self, thread: Thread, most: int) -> int:
        """Inner mask of a wide frame, then a walk from its exits in the return state."""
        state, need, room, stack = thread
        automaton = self._automaton
        frame, local = automaton.program.frame_of(state)
        like = local if frame.like is None else int(frame.like[local])
        base = state - local
        profile = self._profiles.get(automaton, base + like)
        behind = int(self._space.arena[stack, A_TOKENS])
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

    def _walk(self, threads: Threads, roots: IntArray, most: int, *, closed: bool = True) -> int:
        """List the tokens below some trie nodes; the most tokens needed after any of them."""
        space, count = self._space, self._count
        while True:
            n_threads = 1 if len(threads) == 1 else space.load(threads)
            status, worst, found = walks.walk(
                space.record, most, roots, space.used, n_threads,
                *(threads[0] if threads else FINAL), closed, count,
            )  # fmt: skip
            if status == kernels.FULL:
                space.grow()
            elif found > len(space.listed):
                space.list_more(found, count)
            else:
                self._count = found
                return worst
