"""A small disk store for arrays that are cheaper to load than to compute.

One entry is one file `cache_dir()/kind/key.safetensors` in the layout of that name: the length of
a JSON header, the header, the arrays. The header also holds what the entry calls itself, its format
and a SHA-256 of all the rest, so a file that was renamed, damaged or written by another version is
noticed, treated as absent and rebuilt. Nothing is ever unpickled.

Files are written under a temporary name and renamed, so several processes can share the folder:
a reader sees a whole entry or none. A folder that cannot be written to costs only time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import platformdirs
from numpy.typing import NDArray

from structgen.cache_folder import SUFFIX, make_room
from structgen.errors import OptionError

logger = logging.getLogger("structgen")

ENV_VARIABLE = "STRUCTGEN_CACHE_DIR"
BYTES_VARIABLE = "STRUCTGEN_CACHE_BYTES"
CAPACITY_BYTES = 2**30
"""What all entries together may take unless `$STRUCTGEN_CACHE_BYTES` says otherwise."""
FORMAT_VERSION = 2
"""Version of the container; what an entry contains is versioned by its key."""

_NAME = re.compile(r"[0-9A-Za-z]{1,128}")
_BEFORE_DIGEST = b'{"__metadata__":{"sha256":"'
_DIGEST = slice(8 + len(_BEFORE_DIGEST), 8 + len(_BEFORE_DIGEST) + 64)
"""Where a file holds its digest."""
_TYPES = {
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U64": np.uint64,
    "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "F64": np.float64, "F32": np.float32,
    "BOOL": np.bool_,
}  # fmt: skip
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_TOUCHED_S = 60.0
"""An entry is marked as used at most so often."""

# What a sound digest over a strange content leads to; the digest itself stops accidents.
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def cache_dir() -> Path:
    """The folder of the store: `$STRUCTGEN_CACHE_DIR`, or the user's cache folder."""
    chosen = os.environ.get(ENV_VARIABLE)
    return Path(chosen) if chosen else _default_dir(os.environ.get("XDG_CACHE_HOME"))


@cache
def _default_dir(xdg: str | None) -> Path:  # noqa: ARG001  # what the answer depends on
    return platformdirs.user_cache_path("structgen", appauthor=False)


def capacity_bytes() -> int:
    """What all entries together may take; 0 switches the store off.

    Raises:
        OptionError: `$STRUCTGEN_CACHE_BYTES` is no whole number.
    """
    text = os.environ.get(BYTES_VARIABLE, "")
    if not text:
        return CAPACITY_BYTES
    if not text.isdecimal():
        raise OptionError(f"{BYTES_VARIABLE}={text!r} is not a number of bytes; 0 means no cache")
    return int(text)


def save_arrays(
    kind: str, key: str, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]
) -> bool:
    """Store `arrays` and a JSON-able `header`; returns whether that worked.

    A failure is logged, at warning level only if the user chose the folder.
    """
    path = _entry_path(kind, key)
    capacity = capacity_bytes()
    if not capacity:
        return False
    envelope = {"format": FORMAT_VERSION, "kind": kind, "key": key, "header": dict(header)}
    content = _encoded(arrays, envelope)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        _write_atomically(path, content)
        make_room(cache_dir(), sum(map(len, content)), capacity)
    except OSError as error:
        level = logging.WARNING if os.environ.get(ENV_VARIABLE) else logging.DEBUG
        logger.log(level, "could not write the cache entry %s: %s", path, error)
        return False
    return True


def load_arrays(
    kind: str, key: str, *, writable: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """The arrays and the header of an entry, or None if there is no sound one.

    Args:
        writable: numba looks up the type of read-only arguments on a slow path.
    """
    path = _entry_path(kind, key)
    if not capacity_bytes():
        return None
    try:
        arrays, header = _opened(_read(path), kind, key)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _DAMAGE as error:
        logger.warning("ignoring the unreadable cache entry %s: %s", path, error)
        return None
    for array in arrays.values():
        array.setflags(write=writable)
    return arrays, header


def has_entry(kind: str, key: str) -> bool:
    """Whether a file for the entry exists, sound or not."""
    return os.path.exists(_entry_path(kind, key))


def _entry_path(kind: str, key: str) -> str:
    """Where an entry lives; names are restricted so that none can point outside the folder."""
    for name in (kind, key):
        if not _NAME.fullmatch(name):
            raise OptionError(
                f"cache kinds and keys are 1 to 128 ASCII letters and digits, got {name!r}"
            )
    return f"{cache_dir()}/{kind}/{key}{SUFFIX}"


def _encoded(arrays: Mapping[str, NDArray[Any]], envelope: dict[str, Any]) -> list[bytes]:
    """The parts of a file: lengths and header, then the arrays, the widest items first.

    So every array begins at a multiple of the size of its items without gaps, which the layout
    forbids.
    """
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    described: dict[str, Any] = {
        "__metadata__": {"sha256": "0" * 64, "structgen": json.dumps(envelope)}
    }
    at = 0
    for name, array in ordered:
        span = [at, at + array.nbytes]
        described[name] = {
            "dtype": _NAMES[array.dtype], "shape": array.shape, "data_offsets": span
        }  # fmt: skip
        at += array.nbytes
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = bytearray(len(text).to_bytes(8, "little") + text)
    parts = [array.tobytes() for _, array in ordered]
    head[_DIGEST] = _digest([head, *parts])
    return [bytes(head), *parts]


def _digest(parts: list[bytearray | bytes]) -> bytes:
    """In hex, over everything but the place of the digest in the first part."""
    digest = hashlib.sha256()
    digest.update(memoryview(parts[0])[: _DIGEST.start])
    digest.update(memoryview(parts[0])[_DIGEST.stop :])
    for part in parts[1:]:
        digest.update(part)
    return digest.hexdigest().encode()


def _write_atomically(path: str, parts: list[bytes]) -> None:
    """Write the parts under a temporary name beside `path`, then rename."""
    folder = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".new-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read(path: str) -> bytearray:
    """The content of a file, which is marked as used.

    Raises:
        ValueError: it belongs to someone who is neither this user nor root.
    """
    with open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in (os.geteuid(), 0):
            raise ValueError(f"it belongs to user {status.st_uid}")
        content = bytearray(status.st_size)
        n_read = file.readinto(content)
    if n_read != len(content):
        raise ValueError("it is cut off")
    now = time.time()
    if now - status.st_mtime > _TOUCHED_S:
        _touch(path)
    return content


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except OSError as error:  # a read-only folder: others decide what is kept there
        logger.debug("could not mark the cache entry %s as used: %s", path, error)


def _opened(
    content: bytearray, kind: str, key: str
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header of a file, after checking that it is the entry that was asked for."""
    begins_well = bytes(content[8 : _DIGEST.start]) == _BEFORE_DIGEST
    if not begins_well or bytes(content[_DIGEST]) != _digest([content]):
        raise ValueError("it is damaged or of another format")
    start = 8 + int.from_bytes(content[:8], "little")
    described = json.loads(content[8:start])
    envelope = json.loads(described.pop("__metadata__")["structgen"])
    found = (envelope["format"], envelope["kind"], envelope["key"])
    if found != (FORMAT_VERSION, kind, key):
        raise ValueError(f"it calls itself {found}, not {(FORMAT_VERSION, kind, key)}")
    arrays: dict[str, NDArray[Any]] = {}
    for name, part in described.items():
        begin, end = part["data_offsets"]
        flat = np.frombuffer(content, np.uint8, end - begin, start + begin)
        arrays[name] = flat.view(_TYPES[part["dtype"]]).reshape(part["shape"]).copy()
    return arrays, cast("dict[str, Any]", envelope["header"])
