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

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import IntArray
from structgen.errors import LimitError
from structgen.tokens import stored_masks, walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.layout import ARENA_COLUMNS
from structgen.tokens.walks import MAX_UNITS

Key: TypeAlias = tuple[str, int]
"""(digest of the frame, state within it)"""

RowKey: TypeAlias = tuple[Key, int, int, int]
"""(profile, room, need, most)"""

Row: TypeAlias = tuple[IntArray, int]
"""(packed mask, the most tokens needed after any of its tokens)"""

ENTRY_BYTES = 512
"""Rough size of an entry of the cache without its arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """The T tokens that stay inside of a frame."""

    tokens: IntArray
    """int32[T]."""
    codes: npt.NDArray[np.int64]
    """int64[T]: `state within the frame << 16 | units`."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One state of a wide frame, walked over the whole vocabulary; E exits."""

    key: Key
    exits: IntArray
    """int32[E]: trie nodes at which the frame returns."""
    exit_units: IntArray
    """int32[E]: units taken up to there."""
    longest: int
    """The most units of any token or exit."""
    inside: Inside | None
    """None where it comes from the disk, until a mask is wanted that is not stored."""

    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        inside = () if self.inside is None else (self.inside.tokens, self.inside.codes)
        return sum(array.nbytes for array in (self.exits, self.exit_units, *inside))

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

    def __init__(self, capacity_bytes: int = 64 * 2**20, *, on_disk: bool = False) -> None:
        self.capacity_bytes = capacity_bytes
        self.on_disk = on_disk
        """Whether what is found is also kept in the disk cache."""
        self.n_hits = self.n_misses = 0
        """Profiles that were asked for and in memory, and that were not."""
        self.n_walks = self.n_loads = self.n_evictions = 0
        """Profiles that were walked; that came from the disk; profiles and masks dropped."""
        self._profiles: OrderedDict[Key, Profile] = OrderedDict()
        self._rows: OrderedDict[RowKey, Row] = OrderedDict()
        self._used = self._row_bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._profiles)

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
                self.n_misses += 1
                profile = self._loaded(automaton, key) or self._walked(automaton, key, state)
            else:
                self.n_hits += 1
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
                inside = self._inside(automaton, profile, base)
                found = _fill(automaton, inside, base, need, room, most)
                if self.on_disk and key == _widest(profile):
                    stored_masks.save(automaton.vocabulary, profile, found)
                self._keep_row(key, found)
            self._rows.move_to_end(key)
            return found

    def _walked(self, automaton: Automaton, key: Key, state: int) -> Profile:
        profile = self._profiles[key] = _walk(automaton, key, state, state - key[1])
        self.n_walks += 1
        self._add(profile.memory_bytes())
        return profile

    def _loaded(self, automaton: Automaton, key: Key) -> Profile | None:
        """A profile and its widest mask from the disk."""
        found = stored_masks.load(automaton.vocabulary, key) if self.on_disk else None
        if found is None:
            return None
        exits, units, longest, row = found
        profile = self._profiles[key] = Profile(key, exits, units, longest, None)
        self.n_loads += 1
        self._add(profile.memory_bytes())
        self._keep_row(_widest(profile), row)
        return profile

    def _inside(self, automaton: Automaton, profile: Profile, base: int) -> Inside:
        """The tokens of a profile, for which one that comes from the disk is walked now."""
        known = self._profiles.get(profile.key) or profile
        if known.inside is None:
            if self._profiles.pop(known.key, None) is not None:
                self._used -= known.memory_bytes() + ENTRY_BYTES
            known = self._walked(automaton, known.key, base + known.key[1])
        assert known.inside is not None
        return known.inside

    def _keep_row(self, key: RowKey, row: Row) -> None:
        if key in self._rows:
            return
        self._rows[key] = row
        self._row_bytes += row[0].nbytes + ENTRY_BYTES
        self._add(row[0].nbytes)

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
    arena = np.zeros((2, ARENA_COLUMNS), np.int32)
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
        np.ascontiguousarray(exits[:n_exits, 0]),
        np.ascontiguousarray(exits[:n_exits, 1]),
        units,
        Inside(tokens[:n_tokens].copy(), codes[:n_tokens].copy()),
    )


def _widest(profile: Profile) -> RowKey:
    """The mask without any bound, which is the one that is stored."""
    return profile.key, profile.longest, 0, -1


def _fill(automaton: Automaton, inside: Inside, base: int, need: int, room: int, most: int) -> Row:
    row = np.zeros(automaton.vocabulary.n_words, np.int32)
    worst = walks.fill_from_profile(
        automaton.arrays, automaton.plan, most, automaton.lookup.same_bytes,
        inside.tokens, inside.codes, base, need, min(room, NO_LIMIT), row,
    )  # fmt: skip
    row.setflags(write=False)
    return row, int(worst)
