"""Names of parametrised tests."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def plain(value: object) -> str:
    """The value's `repr` without addresses: all processes of a run must give a test one name."""
    return _ADDRESS.sub("", repr(value))
