"""The files of the disk store as a whole: what is there, what has to go.

All kinds share one bound. How much was written since the folder was last looked through is kept in
the length of one small file, a byte for each 4 KiB, to which every process appends: so the folder
is looked through only after a sixteenth of the bound was written, by whichever process comes first.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger("structgen")

SUFFIX = ".safetensors"
COUNTER = "written"
"""The file whose length says how much was written."""
KINDS = ("vocabulary", "schema", "mask")
"""Folders whose files count towards the bound."""

_PAGE = 4096
_SHARE = 16
"""The folder is looked through after this part of the bound was written."""
_STALE_S = 3600.0
"""A temporary file this old was left by a process that was killed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the store."""

    kind: str
    path: Path
    n_bytes: int
    used_at: float
    """When it was last written or used, seconds since 1970."""
    is_temporary: bool = False
    """It is being written, or its writer was killed."""


def entries(root: Path, kind: str | None = None) -> list[Entry]:
    """Every file of the kinds under the bound, or of one kind; those used longest ago first."""
    found = [entry for name in KINDS if kind in (None, name) for entry in _entries_of(root, name)]
    return sorted(found, key=lambda entry: entry.used_at)


def _entries_of(root: Path, kind: str) -> Iterator[Entry]:
    try:
        files = list(os.scandir(root / kind))
    except (FileNotFoundError, NotADirectoryError):
        return
    for file in files:
        try:
            if not file.is_file(follow_symlinks=False):
                continue
            status = file.stat(follow_symlinks=False)
        except FileNotFoundError:  # removed by another process
            continue
        temporary = file.name.startswith(".new-")
        yield Entry(kind, Path(file.path), status.st_size, status.st_mtime, temporary)


def remove(doomed: list[Entry]) -> int:
    """Remove files, those included that someone else removes at the same time; bytes freed."""
    freed = 0
    for entry in doomed:
        entry.path.unlink(missing_ok=True)
        freed += entry.n_bytes
    return freed


def make_room(root: Path, n_bytes: int, capacity: int) -> None:
    """Count `n_bytes` that were written, and remove old files when it is time to look."""
    if _count(root / COUNTER, n_bytes) * _PAGE < capacity // _SHARE:
        return
    os.truncate(root / COUNTER, 0)
    sweep(root, capacity)


def sweep(root: Path, capacity: int) -> int:
    """Remove what was not used for longest until the rest fits in with a share to spare.

    Returns:
        The number of files removed.
    """
    found = entries(root)
    excess = sum(entry.n_bytes for entry in found) - (capacity - capacity // _SHARE)
    stale = time.time() - _STALE_S
    doomed: list[Entry] = []
    for entry in found:
        if entry.used_at < stale if entry.is_temporary else excess > 0:
            doomed.append(entry)
            excess -= entry.n_bytes
    freed = remove(doomed)
    if doomed:
        logger.debug("removed %d cache entries, %d bytes, from %s", len(doomed), freed, root)
    return len(doomed)


def _count(counter: Path, n_bytes: int) -> int:
    """Note so many bytes; the pages noted since the file was emptied."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = os.open(counter, flags, 0o600)
    try:
        os.write(descriptor, b"." * -(-n_bytes // _PAGE))
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
