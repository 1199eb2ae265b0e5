"""Hands out the state table in use, and starts a new one when the old one is full."""

from __future__ import annotations

from structgen.options import Limits
from structgen.tokens.automaton import Automaton
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.states import StateTable


class TableSource:
    """The states and masks of one compiled schema, within a byte capacity."""

    def __init__(self, automaton: Automaton, profiles: ProfileCache, limits: Limits) -> None:
        self._automaton = automaton
        self._profiles = profiles
        self._limits = limits
        self._table = StateTable(automaton, profiles, limits)
        self.n_resets = 0
        """How often a full table was dropped."""

    def current(self) -> StateTable:
        """The table that new states go to."""
        if self._table.bytes_used > self._limits.cache_bytes:
            self._table = StateTable(self._automaton, self._profiles, self._limits)
            self.n_resets += 1
        return self._table

    def memory_bytes(self) -> int:
        """Bytes of the table in use."""
        return self._table.memory_bytes()
