"""Masks of the inside of wide frames, computed once per vocabulary and frame state.

What is legal inside a string does not depend on what surrounds the string, except for the tokens
that also close it. A profile keeps the former as tokens (with the state they lead to and the
characters they take) and the latter as *exits*: the trie nodes where the closing quote was read,
from which a walk goes on in whatever context the string stands.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.frames import NO_LIMIT, IntArray
from structgen.errors import LimitError
from structgen.tokens import walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.walks import MAX_UNITS

Key: TypeAlias = tuple[str, int]
"""(digest of the frame, state within it)"""

Row: TypeAlias = tuple[IntArray, int]
"""(packed mask, the most tokens needed after any of its tokens)"""

ENTRY_BYTES = 512
"""Rough size of an entry of the cache without its arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One state of a wide frame, walked over the whole vocabulary; T tokens, E exits."""

    key: Key
    tokens: IntArray
    """int32[T]: tokens that stay inside."""
    codes: npt.NDArray[np.int64]
    """int64[T]: `state within the frame << 16 | units`."""
    exits: IntArray
    """int32[E]: trie nodes at which the frame returns."""
    exit_units: IntArray
    """int32[E]: units taken up to there."""
    longest: int
    """The most units of any token or exit."""

    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.tokens, self.codes, self.exits, self.exit_units)
        return sum(array.nbytes for array in arrays)

    def exits_within(self, need: int, room: int) -> IntArray:
        """Exits that are open while `need` units must and `room` units may still come."""
        if need == 0 and room >= self.longest:
            return self.exits
        return self.exits[(self.exit_units >= need) & (self.exit_units <= room)]


class ProfileCache:
    """Profiles of one vocabulary and their masks; shared by all schemas, safe across threads.

    Both are kept by frame content, up to a number of bytes; what was not used for the longest time
    goes first and is found again when it is asked for. Only the newest ones may exceed the bound.
    """

    def __init__(self, capacity_bytes: int = 64 * 2**20) -> None:
        self.capacity_bytes = capacity_bytes
        self.n_walks = self.n_evictions = 0
        """Profiles that were walked; profiles and masks that were dropped."""
        self._profiles: OrderedDict[Key, Profile] = OrderedDict()
        self._rows: OrderedDict[tuple[Key, int, int, int], Row] = OrderedDict()
        """Masks by (profile, room, need, most)."""
        self._used = self._row_bytes = 0
        self._lock = threading.Lock()

    def memory_bytes(self) -> int:
        """Bytes of all profiles and masks."""
        with self._lock:
            return self._used

    def clear(self) -> None:
        """Forget every profile."""
        with self._lock:
            self._profiles.clear()
            self._rows.clear()
            self._used = self._row_bytes = 0

    def get(self, automaton: Automaton, state: int) -> Profile:
        """The profile of a wide frame's state, walked on first use."""
        frame, local = automaton.program.frame_of(state)
        key = (frame.digest, local)
        with self._lock:
            profile = self._profiles.get(key)
            if profile is None:
                profile = self._profiles[key] = _walk(automaton, key, state, state - local)
                self.n_walks += 1
                self._add(profile.memory_bytes())
            self._profiles.move_to_end(key)
            return profile

    def row(
        self, automaton: Automaton, profile: Profile, base: int, need: int, room: int, most: int
    ) -> Row:
        """Packed tokens that stay inside, and the most tokens needed within the frame after any.

        Args:
            base: the frame's first state in this program.
            most: tokens that may be needed after this one within the frame, -1 for any number.
        """
        room = min(room, profile.longest)
        key = (profile.key, room, need, most)
        with self._lock:
            found = self._rows.get(key)
            if found is None:
                found = self._rows[key] = _fill(automaton, profile, base, need, room, most)
                self._row_bytes += found[0].nbytes + ENTRY_BYTES
                self._add(found[0].nbytes)
            self._rows.move_to_end(key)
            return found

    def _add(self, size: int) -> None:
        """Count a new entry, and drop old ones while there are too many bytes.

        A profile is twenty to fifty times as large as a mask and as dear to find as ten of them:
        masks go only when profiles take less than half of the space.
        """
        self._used += size + ENTRY_BYTES
        half = self.capacity_bytes // 2
        while self._used > self.capacity_bytes:
            if len(self._rows) > 1 and (self._row_bytes > half or len(self._profiles) < 2):
                _, (row, _) = self._rows.popitem(last=False)
                freed = row.nbytes + ENTRY_BYTES
                self._row_bytes -= freed
            elif len(self._profiles) > 1:
                freed = self._profiles.popitem(last=False)[1].memory_bytes() + ENTRY_BYTES
            else:
                break
            self._used -= freed
            self.n_evictions += 1


def _walk(automaton: Automaton, key: Key, state: int, base: int) -> Profile:
    vocabulary = automaton.vocabulary
    trie = automaton.lookup.trie
    tokens, codes = np.empty(len(trie), np.int32), np.empty(len(trie), np.int64)
    exits = np.empty((len(trie), 2), np.int32)
    arena = np.zeros((2, 7), np.int32)
    threads = np.zeros((4 * vocabulary.max_token_bytes + 64, 4), np.int32)
    levels = np.zeros((vocabulary.max_token_bytes + 2, 2), np.int32)
    _, label_cost, bounds = automaton.plan
    no_plan = (np.zeros((0, 4), np.int32), label_cost, bounds)
    n_tokens, n_exits = walks.profile(
        automaton.arrays, no_plan, trie, arena, threads, levels, state, base, tokens, codes,
        exits,
    )  # fmt: skip
    if n_tokens < 0:
        raise LimitError("a token of the vocabulary is too long to be walked")
    units = max(
        int((codes[:n_tokens] & MAX_UNITS).max(initial=0)), int(exits[:n_exits, 1].max(initial=0))
    )
    return Profile(
        key,
        tokens[:n_tokens].copy(),
        codes[:n_tokens].copy(),
        np.ascontiguousarray(exits[:n_exits, 0]),
        np.ascontiguousarray(exits[:n_exits, 1]),
        units,
    )


def _fill(
    automaton: Automaton, profile: Profile, base: int, need: int, room: int, most: int
) -> Row:
    row = np.zeros(automaton.vocabulary.n_words, np.int32)
    worst = walks.fill_from_profile(
        automaton.arrays, automaton.plan, most, automaton.lookup.same_bytes,
        profile.tokens, profile.codes, base, need, min(room, NO_LIMIT), row,
    )  # fmt: skip
    row.setflags(write=False)
    return row, int(worst)
