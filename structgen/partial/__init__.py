"""Values that are still being written, as typed as they can be."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

from structgen.partial.readers import Begin, Reader, begin_of
from structgen.partial.typed import ABSENT


class PartialValues:
    """Of one schema: immutable, shared between threads, and made up at the first use.

    Example: `PartialValues(Triage).of_text().at('{"team": "sales", "urg') -> Triage(team="sales")`
    """

    def __init__(self, source: Any) -> None:
        self._source = source

    @cached_property
    def begin(self) -> Begin:
        """Readers of one text each."""
        return begin_of(self._source)

    def of_text(self) -> PartialText:
        """For a text that will grow."""
        return PartialText(self)


class PartialText:
    """What the beginnings of one text stand for; each character is read once as the text grows."""

    def __init__(self, values: PartialValues) -> None:
        self._values = values
        self._reader: Reader | None = None
        self._length = 0
        self._lock = threading.Lock()

    def at(self, text: str) -> Any:
        """The value as far as a text tells; None where it tells nothing yet.

        Args:
            text: a beginning of the text. One that is shorter than the last is read from its start.
        """
        with self._lock:
            if self._reader is None or len(text) < self._length:
                self._reader = self._values.begin(0)
            self._reader.advance(text)
            self._length = len(text)
            shown = self._reader.value()
        return None if shown is ABSENT else shown
