"""What the caches hold in memory: their use in figures, and the bound on all state tables."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass, fields

from structgen.tokens.tables import TableSource


@dataclass(frozen=True, slots=True)
class CacheUse:
    """One cache of this process.

    Example: `CacheUse(entries=12, bytes=901120, capacity_bytes=268435456, hits=40, misses=12, ...)`
    """

    entries: int
    bytes: int
    """What the entries take, roughly."""
    capacity_bytes: int
    """What they may take; the newest entry may exceed it."""
    hits: int
    misses: int
    evictions: int
    """Entries dropped to make room."""
    loads: int = 0
    """Of the misses, those that were answered from the disk."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The caches of this process, see `structgen.cache_info`."""

    schemas: CacheUse
    """Compiled schemas, by content."""
    tables: CacheUse
    """States and their masks, one table a compiled schema in use; a hit is a session that found
    its table there."""
    masks: CacheUse
    """Masks of the inside of strings, which all schemas of a vocabulary share."""

    def memory_bytes(self) -> int:
        """Bytes of all caches."""
        uses: list[CacheUse] = [getattr(self, part.name) for part in fields(self)]
        return sum(use.bytes for use in uses)


class TableLedger:
    """Keeps the tables of all compiled schemas within one number of bytes.

    Tables grow while sessions advance, which must not cost anything: so they are weighed from time
    to time, when sessions are made: those in which sessions began since the last time, and all of
    them after as many sessions as there are tables. If they are too heavy, those whose schemas
    began no session for longest are dropped until three quarters are left. What is dropped is
    computed again when it is needed.
    """

    EVERY = 64
    """Sessions between two weighings."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.hits = self.misses = self.evictions = 0
        self._sources: OrderedDict[int, weakref.ref[TableSource]] = OrderedDict()
        self._sizes: dict[int, int] = {}
        """Bytes of each table when it was last weighed."""
        self._used: set[int] = set()
        """Sources of sessions that began since the last weighing."""
        self._left = self._left_for_all = self.EVERY
        self._lock = threading.RLock()

    def used(self, source: TableSource) -> None:
        """Note that a session of this source begins."""
        with self._lock:
            key = id(source)
            if source.is_empty:
                self.misses += 1
            else:
                self.hits += 1
            if key not in self._sources:
                self._sources[key] = weakref.ref(source, lambda _: self._forget(key))
            self._sources.move_to_end(key)
            self._used.add(key)
            self._left -= 1
            if self._left <= 0:
                self._weigh()
                if sum(self._sizes.values()) > self.capacity_bytes:
                    self._make_room()

    def n_tables(self) -> int:
        """Tables in use."""
        return sum(not source.is_empty for source in self._alive())

    def memory_bytes(self) -> int:
        """Bytes of all tables."""
        return sum(source.memory_bytes() for source in self._alive())

    def _alive(self) -> list[TableSource]:
        """Sources used longest ago first."""
        with self._lock:
            found = [reference() for reference in self._sources.values()]
        return [source for source in found if source is not None]

    def _forget(self, key: int) -> None:
        with self._lock:
            self._sources.pop(key, None)
            self._sizes.pop(key, None)
            self._used.discard(key)

    def _weigh(self) -> None:
        self._left = self.EVERY
        self._left_for_all -= self.EVERY
        if self._left_for_all <= 0:  # sessions may last, and their tables grow
            self._left_for_all = len(self._sources)
            self._used.update(self._sources)
        for key in tuple(self._used):
            source = self._sources[key]() if key in self._sources else None
            if source is not None:
                self._sizes[key] = source.memory_bytes()
        self._used.clear()

    def _make_room(self) -> None:
        sizes = [(source, source.memory_bytes()) for source in self._alive()]
        self._sizes = {id(source): size for source, size in sizes}
        total = sum(self._sizes.values())
        if total <= self.capacity_bytes:
            return
        for source, size in sizes[:-1]:
            if total <= self.capacity_bytes * 3 // 4:
                break
            if size:
                source.reset()
                total -= size
                self.evictions += 1
                self._sizes[id(source)] = 0
