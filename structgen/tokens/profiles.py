"""Masks of the inside of wide frames, computed once per vocabulary and frame state.

What is legal inside a string does not depend on what surrounds the string, except for the tokens
that also close it. A profile keeps the former as tokens (with the state they lead to and the
characters they take) and the latter as *exits*: the trie nodes where the closing quote was read,
from which a walk goes on in whatever context the string stands.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from structgen.automata.frames import NO_LIMIT, IntArray
from structgen.errors import LimitError
from structgen.tokens import walks
from structgen.tokens.automaton import Automaton
from structgen.tokens.walks import MAX_UNITS


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One state of a wide frame, walked over the whole vocabulary; T tokens, E exits."""

    tokens: IntArray
    """int32[T]: tokens that stay inside."""
    codes: IntArray
    """int32[T]: `state within the frame << 16 | units`."""
    exits: IntArray
    """int32[E]: trie nodes at which the frame returns."""
    exit_units: IntArray
    """int32[E]: units taken up to there."""
    longest: int
    """The most units of any token or exit."""
    rows: OrderedDict[tuple[int, int, int], tuple[IntArray, int]] = field(
        default_factory=OrderedDict[tuple[int, int, int], tuple[IntArray, int]]
    )
    """Packed masks by (room, need, most), with the most tokens needed after any of theirs."""

    def memory_bytes(self) -> int:
        """Bytes of the arrays and the kept rows."""
        arrays = (self.tokens, self.codes, self.exits, self.exit_units)
        return sum(a.nbytes for a in arrays) + sum(row.nbytes for row, _ in self.rows.values())

    def exits_within(self, need: int, room: int) -> IntArray:
        """Exits that are open while `need` units must and `room` units may still come."""
        if need == 0 and room >= self.longest:
            return self.exits
        return self.exits[(self.exit_units >= need) & (self.exit_units <= room)]


class ProfileCache:
    """Profiles of one vocabulary, by frame content; shared by all schemas, safe across threads."""

    def __init__(self, capacity_bytes: int = 64 * 2**20) -> None:
        self.capacity_bytes = capacity_bytes
        self._profiles: OrderedDict[tuple[str, int], Profile] = OrderedDict()
        self._lock = threading.Lock()

    def memory_bytes(self) -> int:
        """Bytes of all profiles."""
        with self._lock:
            return sum(profile.memory_bytes() for profile in self._profiles.values())

    def clear(self) -> None:
        """Forget every profile."""
        with self._lock:
            self._profiles.clear()

    def get(self, automaton: Automaton, state: int) -> Profile:
        """The profile of a wide frame's state, walked on first use."""
        frame, local = automaton.program.frame_of(state)
        key = (frame.digest, local)
        with self._lock:
            profile = self._profiles.get(key)
            if profile is None:
                profile = self._profiles[key] = _walk(automaton, state, state - local)
            self._profiles.move_to_end(key)
            return profile

    def row(
        self, automaton: Automaton, profile: Profile, base: int, need: int, room: int, most: int
    ) -> tuple[IntArray, int]:
        """Packed tokens that stay inside, and the most tokens needed within the frame after any.

        Args:
            base: the frame's first state in this program.
            most: tokens that may be needed after this one within the frame, -1 for any number.
        """
        room = min(room, profile.longest)
        with self._lock:
            key = (room, need, most)
            found = profile.rows.get(key)
            if found is None:
                found = profile.rows[key] = _fill(automaton, profile, base, need, room, most)
                self._evict(profile)
            profile.rows.move_to_end(key)
            return found

    def _evict(self, kept: Profile) -> None:
        used = sum(profile.memory_bytes() for profile in self._profiles.values())
        for profile in (*self._profiles.values(), kept):
            while used > self.capacity_bytes and len(profile.rows) > 1:
                _, (row, _) = profile.rows.popitem(last=False)
                used -= row.nbytes


def _walk(automaton: Automaton, state: int, base: int) -> Profile:
    vocabulary = automaton.vocabulary
    trie = automaton.lookup.trie
    tokens, codes = np.empty(len(trie), np.int32), np.empty(len(trie), np.int32)
    exits = np.empty((len(trie), 2), np.int32)
    arena = np.zeros((2, 6), np.int32)
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
        tokens[:n_tokens].copy(),
        codes[:n_tokens].copy(),
        np.ascontiguousarray(exits[:n_exits, 0]),
        np.ascontiguousarray(exits[:n_exits, 1]),
        units,
    )


def _fill(
    automaton: Automaton, profile: Profile, base: int, need: int, room: int, most: int
) -> tuple[IntArray, int]:
    row = np.zeros(automaton.vocabulary.n_words, np.int32)
    worst = walks.fill_from_profile(
        automaton.arrays, automaton.plan, most, automaton.lookup.same_bytes,
        profile.tokens, profile.codes, base, need, min(room, NO_LIMIT), row,
    )  # fmt: skip
    row.setflags(write=False)
    return row, int(worst)
