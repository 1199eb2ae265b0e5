"""Compiled schemas in memory, by content and by what they were compiled from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from structgen.compiled import CompiledSchema

Compiled: TypeAlias = CompiledSchema[Any]

MOST_SOURCES = 16
"""Types that are remembered for one content."""
SOURCE_BYTES = 4096
"""Rough size of a type's own part of a compiled schema."""


@dataclass(slots=True)
class _Entry:
    compiled: Compiled
    n_bytes: int
    """Of everything but what the sources take."""
    sources: OrderedDict[Hashable, Compiled] = field(
        default_factory=lambda: OrderedDict[Hashable, Compiled]()
    )


class SchemaCache:
    """The most recently used compiled schemas, up to a number of bytes; its owner has the lock.

    Only the newest one may exceed the bound.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.n_evictions = 0
        self._used = 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._content_of: dict[Hashable, Hashable] = {}
        """Content by source."""

    def __len__(self) -> int:
        return len(self._entries)

    def memory_bytes(self) -> int:
        """Bytes of all entries."""
        return self._used

    def by_source(self, source: Hashable) -> Compiled | None:
        """What was compiled from this very type or text."""
        content = self._content_of.get(source)
        if content is None:
            return None
        self._entries.move_to_end(content)
        sources = self._entries[content].sources
        sources.move_to_end(source)
        return sources[source]

    def by_content(self, content: Hashable) -> Compiled | None:
        """What was compiled from anything of this content."""
        entry = self._entries.get(content)
        if entry is None:
            return None
        self._entries.move_to_end(content)
        return entry.compiled

    def put(self, content: Hashable, compiled: Compiled) -> None:
        """Remember a compiled schema, and forget old ones while there are too many bytes."""
        n_bytes = compiled.own_bytes()
        self._entries[content] = _Entry(compiled, n_bytes)
        self._used += n_bytes
        self._make_room()

    def put_source(self, source: Hashable, content: Hashable, compiled: Compiled) -> None:
        """Remember what was compiled from a type or text, where its content is still known."""
        self._forget_source(source)
        entry = self._entries.get(content)
        if entry is None:
            return
        entry.sources[source] = compiled
        self._content_of[source] = content
        self._used += SOURCE_BYTES
        if len(entry.sources) > MOST_SOURCES:
            self._forget_source(next(iter(entry.sources)))
        self._make_room()

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._content_of.clear()
        self._used = 0

    def _forget_source(self, source: Hashable) -> None:
        content = self._content_of.pop(source, None)
        if content is not None:
            del self._entries[content].sources[source]
            self._used -= SOURCE_BYTES

    def _make_room(self) -> None:
        while self._used > self.capacity_bytes and len(self._entries) > 1:
            _, entry = self._entries.popitem(last=False)
            for source in entry.sources:
                del self._content_of[source]
            self._used -= entry.n_bytes + SOURCE_BYTES * len(entry.sources)
            self.n_evictions += 1
