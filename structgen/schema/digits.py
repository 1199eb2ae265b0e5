"""Ranges of digit strings as regular expressions."""

from __future__ import annotations


def between(low: str, high: str) -> str:
    """Texts of one width between two bounds, in which digits stand where the bounds have digits.

    Example: `between("17", "32")` is `(?:1[7-9]|2[0-9]|3[0-2])`
    """
    if low == high:
        return "".join(map(_literal, low))
    first, last = low[0], high[0]
    if first == last:
        return _literal(first) + between(low[1:], high[1:])
    if _lowest(low[1:]) and _highest(high[1:]):
        return f"[{first}-{last}]" + _free(low[1:])
    options: list[str] = []
    if not _lowest(low[1:]):
        options.append(first + between(low[1:], _top(low[1:])))
        first = chr(ord(first) + 1)
    tail: list[str] = []
    if not _highest(high[1:]):
        tail.append(last + between(_bottom(high[1:]), high[1:]))
        last = chr(ord(last) - 1)
    if first <= last:
        options.append(f"[{first}-{last}]" + _free(low[1:]))
    return "(?:" + "|".join(options + tail) + ")"


def integers(low: int | None, high: int | None, most_digits: int) -> str:
    """Whole numbers between two bounds, without leading zeros and without `-0`.

    Args:
        most_digits: how long a number may be on a side without a bound.
    """
    reach = 10 ** max(most_digits, len(str(abs(low or 0))), len(str(abs(high or 0)))) - 1
    first = -reach if low is None else low
    last = reach if high is None else high
    options: list[str] = []
    if first < 0:
        below = min(last, -1)
        options += [f"-{part}" for part in _widths(-below, -first)]
    if last >= 0:
        options += _widths(max(first, 0), last)
    return "(?:" + "|".join(options) + ")"


def _widths(low: int, high: int) -> list[str]:
    """One expression for each number of digits."""
    found: list[str] = []
    for width in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (width - 1) if width > 1 else 0)
        found.append(between(str(first), str(min(high, 10**width - 1))))
    return found


def _literal(char: str) -> str:
    return char if char.isdigit() or char == "-" else f"\\{char}"


def _free(text: str) -> str:
    """Any digits in the shape of a text."""
    return "".join("[0-9]" if char.isdigit() else _literal(char) for char in text)


def _lowest(text: str) -> bool:
    return text == _bottom(text)


def _highest(text: str) -> bool:
    return text == _top(text)


def _bottom(text: str) -> str:
    return "".join("0" if char.isdigit() else char for char in text)


def _top(text: str) -> str:
    return "".join("9" if char.isdigit() else char for char in text)
