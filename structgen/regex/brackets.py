"""Character classes in brackets."""

from __future__ import annotations

from structgen.regex import unicode
from structgen.regex.charsets import CharClass, charset
from structgen.regex.cursor import Cursor
from structgen.regex.escapes import read_escape
from structgen.regex.limits import PatternError

MAX_NESTING = 100


def read_brackets(cursor: Cursor, depth: int = 0) -> CharClass:
    """Read a class of which `[` was just taken.

    Example: `^a-z] -> everything but the letters a to z`
    """
    start = cursor.at - 1
    if depth > MAX_NESTING:
        raise cursor.error(f"more than {MAX_NESTING} nested classes", start)
    cursor.skip_space()
    negated = cursor.take("^")
    chars = _rust_items(cursor, depth, start) if cursor.rust else _ecma_items(cursor, start)
    return ~chars if negated else chars


def _unclosed(cursor: Cursor, start: int) -> PatternError:
    return cursor.error("the class is not closed by ']'", start)


def _ecma_items(cursor: Cursor, start: int) -> CharClass:
    parts: list[CharClass] = []
    ranges: list[tuple[int, int]] = []
    while not cursor.take("]"):
        if not cursor.char:
            raise _unclosed(cursor, start)
        _read_item(cursor, parts, ranges)
    return _all_of(cursor, parts, ranges)


def _rust_items(cursor: Cursor, depth: int, start: int) -> CharClass:
    """Items, nested classes and the operations `&&`, `--` and `~~`, which bind alike."""
    parts: list[CharClass] = []
    ranges: list[tuple[int, int]] = []
    left: CharClass | None = None
    operator = ""
    cursor.skip_space()
    while cursor.take("-"):
        ranges.append((0x2D, 0x2D))
        cursor.skip_space()
    if not ranges and cursor.take("]"):
        ranges.append((0x5D, 0x5D))
    while True:
        cursor.skip_space()
        if not cursor.char:
            raise _unclosed(cursor, start)
        if cursor.char == "]" or cursor.pattern[cursor.at : cursor.at + 2] in ("&&", "--", "~~"):
            left = _combined(left, operator, _all_of(cursor, parts, ranges))
            parts, ranges = [], []
            if cursor.take("]"):
                return left
            operator = cursor.read() + cursor.read()
        elif cursor.sees("[:") and (chars := _posix(cursor)):
            parts.append(chars)
        elif cursor.take("["):
            parts.append(read_brackets(cursor, depth + 1))
        else:
            _read_item(cursor, parts, ranges)


def _combined(left: CharClass | None, operator: str, right: CharClass) -> CharClass:
    if left is None:
        return right
    if operator == "&&":
        return left & right
    return left - right if operator == "--" else (left - right) | (right - left)


def _posix(cursor: Cursor) -> CharClass | None:
    """Read `[:name:]`; None and nothing read if it is something else."""
    end = cursor.pattern.find(":]", cursor.at)
    name = cursor.pattern[cursor.at + 2 : end] if end > 0 else ""
    chars = unicode.posix(name.removeprefix("^"))
    if chars is None:
        return None
    if cursor.flags.fold:
        chars = unicode.fold_case(chars)
    cursor.at = end + 2
    return ~chars if name.startswith("^") else chars


def _read_item(cursor: Cursor, parts: list[CharClass], ranges: list[tuple[int, int]]) -> None:
    """Read one character, class escape or range."""
    start = cursor.at
    first = _endpoint(cursor)
    cursor.skip_space()
    if not _is_range(cursor):
        _add(first, parts, ranges)
        return
    cursor.at += 1
    cursor.skip_space()
    last = _endpoint(cursor)
    if isinstance(first, CharClass) or isinstance(last, CharClass):
        if cursor.rust:
            raise cursor.error("a range needs a character at both ends", start)
        # Without the u flag, the hyphen of [\w-.] stands for itself.
        for item in (first, 0x2D, last):
            _add(item, parts, ranges)
    elif first > last:
        raise cursor.error("the range of the class goes backwards", start)
    else:
        ranges.append((first, last))


def _is_range(cursor: Cursor) -> bool:
    following = cursor.pattern[cursor.at + 1 : cursor.at + 2]
    if cursor.char != "-" or following in ("", "]"):
        return False
    return not (cursor.rust and following == "-")


def _endpoint(cursor: Cursor) -> int | CharClass:
    char = cursor.read()
    if char != "\\":
        return ord(char)
    item = read_escape(cursor, in_class=True)
    if not isinstance(item, int | CharClass):
        raise cursor.error("an assertion cannot stand in a class")
    return item


def _add(item: int | CharClass, parts: list[CharClass], ranges: list[tuple[int, int]]) -> None:
    if isinstance(item, CharClass):
        parts.append(item)
    else:
        ranges.append((item, item))


def _all_of(cursor: Cursor, parts: list[CharClass], ranges: list[tuple[int, int]]) -> CharClass:
    chars = CharClass.exactly(charset(ranges))
    if cursor.flags.fold:
        chars = unicode.fold_case(chars)
    for part in parts:
        chars |= part
    return chars
