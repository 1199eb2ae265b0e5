"""What stored automata depend on besides schema and vocabulary: this library and its Python."""

from __future__ import annotations

import hashlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pydantic

FORMAT = 4
"""Raised when the same schema would be compiled to something else, or a mask would be another."""

_PACKAGE = Path(__file__).parent
_FOLDERS = ("schema", "automata", "regex", "tokens")


@cache
def stamp() -> str:
    """Hex hash that differs wherever stored automata and masks might not be those made here.

    The state of the source files is part of it, so that nobody who edits them meets what the
    earlier text had made.
    """
    version: str = sys.modules[__name__.partition(".")[0]].__version__
    parts = (FORMAT, version, sys.version_info[:3], unicodedata.unidata_version, pydantic.VERSION)
    return hashlib.sha256(repr((*parts, sorted(_sources()))).encode()).hexdigest()


def _sources() -> Iterator[tuple[str, int, int]]:
    """(path, size, time of the last change) of each file that compiling uses."""
    for folder in _FOLDERS:
        for place, _, names in os.walk(_PACKAGE / folder):
            for name in names:
                if name.endswith((".py", ".json")):
                    status = os.stat(f"{place}/{name}")
                    yield (
                        f"{place[len(str(_PACKAGE)) :]}/{name}",
                        status.st_size,
                        status.st_mtime_ns,
                    )


def key(*parts: str | bytes) -> str:
    """Hex hash of this library and of `parts`, none of which can pass for another."""
    content = hashlib.sha256(stamp().encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        content.update(b"%d:" % len(data))
        content.update(data)
    return content.hexdigest()
