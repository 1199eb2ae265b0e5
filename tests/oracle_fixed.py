"""Numbers on a decimal grid, looked at as integers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structgen.schema.nodes import Fixed

FIXED = re.compile(rb"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?")


def fixed_fits(text: bytes, node: Fixed) -> bool:
    """Whether `text` is one of a node's numbers."""
    match = FIXED.fullmatch(text)
    if match is None or len(match[3] or b"") > node.places:
        return False
    n = int(match[2] + (match[3] or b"").ljust(node.places, b"0"))
    if match[1] and n == 0:
        return False
    return _some(-n, -n, node) if match[1] else _some(n, n, node)


def fixed_prefix(text: bytes, node: Fixed) -> bool:
    """Whether more digits make `text` one of a node's numbers."""
    return any(_some(low, high, node) for low, high in _spans(text, node))


def _some(low: int, high: int, node: Fixed) -> bool:
    """Whether a multiple of the step lies between two numbers and within the bounds."""
    low, high = max(low, node.low), min(high, node.high)
    return -(-low // node.step) * node.step <= high


def _spans(text: bytes, node: Fixed) -> Iterator[tuple[int, int]]:
    """The first and last number of those that begin with `text`, by how many digits follow."""
    negative, magnitude = text[:1] == b"-", text.lstrip(b"-")
    if text.count(b"-") != negative:
        return
    for low, high in _magnitudes(magnitude, node):
        if not negative:
            yield low, high
        elif high:
            yield -high, -max(low, 1)
    if text == b"":
        yield from ((-high, -low) for low, high in _magnitudes(b"", node))


def _magnitudes(text: bytes, node: Fixed) -> Iterator[tuple[int, int]]:
    unit = 10**node.places
    digits = len(str(max(abs(node.low), abs(node.high)) // unit))
    if text == b"":
        yield 0, 10**digits * unit - 1
    elif FIXED.fullmatch(text) and b"." not in text:
        for more in range(digits - len(text) + 1 if text != b"0" else 1):
            low = int(text) * 10**more
            yield low * unit, (low + 10**more) * unit - 1
    elif FIXED.fullmatch(text + b"0" * text.endswith(b".")):
        whole, _, fraction = text.partition(b".")
        left = node.places - len(fraction)
        if left > 0 or (left == 0 and fraction):
            low = int(whole + fraction) * 10**left
            yield low, low + 10**left - 1
