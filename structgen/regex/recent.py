"""Results of slow functions, remembered within a bound on their size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

from structgen.regex.limits import PatternError

P = ParamSpec("P")
V = TypeVar("V")

ENTRY = 20
"""Size of an entry with an empty value, in units of about 50 bytes."""


class Remembered(Generic[P, V]):
    """A function of hashable arguments that keeps its most recently used results.

    A refused pattern is remembered like a result, as it may have taken the most work. Threads may
    compute the same result at once; one of them is kept.
    """

    def __init__(self, function: Callable[P, V], size: Callable[[V], int], capacity: int) -> None:
        self._function = function
        self._size = size
        self._capacity = capacity
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[object, ...], tuple[V | PatternError, int]] = OrderedDict()
        self.used = 0
        """The size of all entries."""
        self.hits = self.misses = self.evictions = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> V:
        key = (args, *sorted(kwargs.items()))
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                self.hits += 1
        if entry is None:
            entry = self._compute(*args, **kwargs)
            self._keep(key, entry)
        found = entry[0]
        if isinstance(found, PatternError):
            raise type(found)(*found.args)
        return found

    def cache_clear(self) -> None:
        """Forget every result."""
        with self._lock:
            self._entries.clear()
            self.used = 0

    def _compute(self, *args: P.args, **kwargs: P.kwargs) -> tuple[V | PatternError, int]:
        found: V | PatternError
        size = ENTRY
        try:
            found = self._function(*args, **kwargs)
            size += self._size(found)
        except PatternError as error:
            found = type(error)(*error.args)
        return found, size

    def _keep(self, key: tuple[object, ...], entry: tuple[V | PatternError, int]) -> None:
        with self._lock:
            self.misses += 1
            if key not in self._entries:
                self._entries[key] = entry
                self.used += entry[1]
            while self.used > self._capacity and len(self._entries) > 1:
                _, (_, freed) = self._entries.popitem(last=False)
                self.used -= freed
                self.evictions += 1


def remembered(
    size: Callable[[V], int], capacity: int
) -> Callable[[Callable[P, V]], Remembered[P, V]]:
    """Let a function remember its results up to a total size.

    Example: `@remembered(size=len, capacity=1000)`
    """

    def decorate(function: Callable[P, V]) -> Remembered[P, V]:
        made = Remembered(function, size, capacity)
        update_wrapper(made, function)
        return made

    return decorate
