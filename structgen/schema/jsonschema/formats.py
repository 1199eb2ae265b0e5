"""What `format` says: it is enforced, or it is a hint, or nobody knows and that is told."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from structgen.schema.formats import FORMATS

INTEGER_FORMATS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
"""Formats of OpenAPI that say how large an integer may be."""

HINTS = frozenset({"password", "binary", "float", "double"})
"""Formats of OpenAPI that by their definition admit every value of their type."""

UNENFORCED = {
    "byte": "it is a hint of OpenAPI, and what is published as valid is often no base64",
}
"""Formats that somebody has defined and nobody asserts."""

ENFORCED = FORMATS - UNENFORCED.keys()
_KNOWN = ENFORCED | INTEGER_FORMATS.keys() | HINTS


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


_BY_PLAIN = {_plain(name): name for name in sorted(_KNOWN)}


@lru_cache(maxsize=1024)
def misspelt(name: str) -> str:
    """The format that a name is a misspelling of; empty if it is none.

    Example: `misspelt("datetime")` is `date-time`, `misspelt("mongoId")` is empty.
    """
    if name in _KNOWN or name in UNENFORCED:
        return ""
    plain = _plain(name)
    if plain in _BY_PLAIN:
        return _BY_PLAIN[plain]
    close = get_close_matches(plain, _BY_PLAIN, 1, 0.86) if len(plain) > 4 else []
    return _BY_PLAIN[close[0]] if close else ""


def unenforced(name: str) -> str:
    """Why a format is not enforced; empty where it is, or where it admits everything."""
    if name in _KNOWN:
        return ""
    reason = UNENFORCED.get(name, "nobody has defined it")
    return f"the format {name[:80]!r} is not enforced: {reason}"
