"""Hands out the state table in use, and starts a new one when the old one is full."""

from __future__ import annotations

import threading

from structgen.options import Limits
from structgen.tokens.automaton import Automaton
from structgen.tokens.mask_rows import NONE, MaskRow
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.states import StateTable


class TableSource:
    """The states and masks of one compiled schema, within a byte capacity."""

    def __init__(self, automaton: Automaton, profiles: ProfileCache, limits: Limits) -> None:
        self._automaton = automaton
        self._profiles = profiles
        self._limits = limits
        self._table: StateTable | None = None
        self._lock = threading.Lock()
        self.nothing = MaskRow(NONE, NONE, automaton.vocabulary.n_words)
        """The mask of a value that has ended."""
        self.n_resets = 0
        """How often a table was dropped."""

    def __del__(self) -> None:
        # Whoever could use the table is gone; only its circles of references keep it in memory.
        if self._table is not None:
            self._table.release(for_good=True)

    @property
    def is_empty(self) -> bool:
        """Whether there is no table at present."""
        return self._table is None

    def current(self) -> StateTable:
        """The table that new states go to."""
        table = self._table
        if table is None or table.is_full:
            with self._lock:
                self._drop(table)
                table = self._table
                if table is None:
                    table = StateTable(self._automaton, self._profiles, self._limits)
                    self._table = table
        return table

    def fill(self, state: int, base: int) -> None:
        """Find the mask of a wide state, whose frame begins at `base`, without any bound."""
        profile = self._profiles.get(self._automaton, state)
        self._profiles.row(self._automaton, profile, base, 0, profile.longest, -1)

    def reset(self) -> None:
        """Drop the table; sessions go on in a new one."""
        with self._lock:
            self._drop(self._table)

    def memory_bytes(self) -> int:
        """Bytes of the table in use."""
        table = self._table
        return 0 if table is None else table.memory_bytes()

    def _drop(self, table: StateTable | None) -> None:
        """Drop the table if it is still the one in use."""
        if table is not None and table is self._table:
            self._table = None
            self.n_resets += 1
            table.release()
