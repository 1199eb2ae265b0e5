"""A small disk store for arrays that are cheaper to load than to compute.

One entry is one uncompressed `.npz` file under `cache_dir()/kind/key.npz`. It also holds a JSON
header that names the entry and the format, so a file that was renamed, damaged or written by
another version is noticed, treated as absent and rebuilt. Nothing is ever unpickled.

Files are written under a temporary name and renamed, so several processes can share the folder:
a reader sees a whole entry or none. A folder that cannot be written to costs only time.
"""

from __future__ import annotations

import json
import logging
import os
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any, cast

import numpy as np
import platformdirs
from numpy.typing import NDArray

from structgen.errors import OptionError

logger = logging.getLogger("structgen")

ENV_VARIABLE = "STRUCTGEN_CACHE_DIR"
FORMAT_VERSION = 1
"""Version of the container; what an entry contains is versioned by its key."""

_HEADER = "__header__"
_NAME = re.compile(r"[0-9A-Za-z]{1,128}")

# Everything that zipfile and numpy were seen to raise on files with flipped or missing bytes: a
# flipped flag reads as an encrypted (RuntimeError) or exotically compressed (NotImplementedError)
# member, a flipped array shape as one that does not fit in memory.
_DAMAGE = (
    zipfile.BadZipFile,
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
    MemoryError,
    struct.error,
    SyntaxError,  # numpy evaluates an array's header
    TokenError,
    zlib.error,
)


def cache_dir() -> Path:
    """The folder of the store: `$STRUCTGEN_CACHE_DIR`, or the user's cache folder."""
    chosen = os.environ.get(ENV_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("structgen", appauthor=False)


def save_arrays(
    kind: str, key: str, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]
) -> bool:
    """Store `arrays` and a JSON-able `header`; returns whether that worked.

    A failure is logged, at warning level only if the user chose the folder.
    """
    path = _entry_path(kind, key)
    envelope = {"format": FORMAT_VERSION, "kind": kind, "key": key, "header": dict(header)}
    text = json.dumps(envelope).encode()
    members: dict[str, Any] = {**arrays, _HEADER: np.frombuffer(text, dtype=np.uint8)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, members)
    except OSError as error:
        level = logging.WARNING if os.environ.get(ENV_VARIABLE) else logging.DEBUG
        logger.log(level, "could not write the cache entry %s: %s", path, error)
        return False
    return True


def load_arrays(kind: str, key: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """The arrays (read-only) and the header of an entry, or None if there is no sound one."""
    path = _entry_path(kind, key)
    try:
        # Opened here because numpy leaves a file that it cannot read open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as members:
            arrays = {name: cast("NDArray[Any]", members[name]) for name in members.files}
        header = _open_envelope(arrays.pop(_HEADER), kind, key)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _DAMAGE as error:
        logger.warning("ignoring the unreadable cache entry %s: %s", path, error)
        return None
    for array in arrays.values():
        array.setflags(write=False)
    return arrays, header


def _entry_path(kind: str, key: str) -> Path:
    """Where an entry lives; names are restricted so that none can point outside the folder."""
    for name in (kind, key):
        if not _NAME.fullmatch(name):
            raise OptionError(
                f"cache kinds and keys are 1 to 128 ASCII letters and digits, got {name!r}"
            )
    return cache_dir() / kind / f"{key}.npz"


def _write_atomically(path: Path, members: Mapping[str, Any]) -> None:
    """Write the members under a temporary name beside `path`, then rename."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez(file, **members)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _open_envelope(text: NDArray[np.uint8], kind: str, key: str) -> dict[str, Any]:
    """The user's header, after checking that the entry is the one that was asked for."""
    envelope = json.loads(text.tobytes())
    found = (envelope["format"], envelope["kind"], envelope["key"])
    if found != (FORMAT_VERSION, kind, key):
        raise ValueError(f"it calls itself {found}, not {(FORMAT_VERSION, kind, key)}")
    return envelope["header"]
