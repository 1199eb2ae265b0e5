r"""Escapes such as `\d`, `\n`, `\u00e9` or `\p{Lu}`."""

from __future__ import annotations

from structgen.regex import unicode
from structgen.regex.charsets import CharClass
from structgen.regex.cursor import Cursor
from structgen.regex.syntax import At, Where

_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_RUST_META = "\\.+*?()|[]{}^$#&-~"
_RUST_EDGES: dict[str, Where] = {
    "{start-half}": "no word before",
    "{end-half}": "no word after",
    "{start}": "word start",
    "{end}": "word end",
}


def read_escape(cursor: Cursor, *, in_class: bool) -> int | CharClass | At:
    r"""Read what follows a backslash: a code point, a class or an assertion.

    Example: `n -> 10`, `d -> the class of digits`, `b -> At("word edge")`
    """
    start = cursor.at - 1
    char = cursor.read()
    if char in "dDsSwW":
        return _perl_class(cursor, char)
    if char in "pP":
        return _property(cursor, negated=char == "P")
    if char in _CONTROLS:
        return _CONTROLS[char]
    if char in "xu" or (char == "U" and cursor.rust):
        return _coded(cursor, char)
    if not in_class and (place := _place(cursor, char)):
        return At(place)
    if char in "123456789" or char == "k":
        raise cursor.error(f"back-references such as \\{char} are not supported", start)
    number = _rust_char(char) if cursor.rust else _ecma_char(cursor, char, in_class)
    if number is None:
        raise cursor.error(f"\\{char} is no escape of this dialect", start)
    return number


def _perl_class(cursor: Cursor, char: str) -> CharClass:
    lower = char.lower()
    if cursor.rust:
        chars = {
            "d": unicode.unicode_digits,
            "w": unicode.unicode_word,
            "s": lambda: CharClass.exactly(unicode.WHITE_SPACE),
        }[lower]()
    else:
        chars = {
            "d": unicode.ASCII_DIGITS,
            "w": unicode.ASCII_WORD,
            "s": CharClass.exactly(unicode.ECMA_SPACE),
        }[lower]
        if lower == "w" and cursor.flags.fold:
            chars = unicode.fold_case(chars)
    return chars if char == lower else ~chars


def _property(cursor: Cursor, *, negated: bool) -> CharClass:
    start = cursor.at - 2
    if cursor.take("{"):
        name = cursor.until("}", "the property")
    elif cursor.rust:
        name = cursor.read()
    else:
        raise cursor.error("a property needs braces, as in \\p{L}", start)
    if cursor.rust and "!=" in name:
        name, negated = name.replace("!=", "="), not negated
    chars = unicode.named(name.replace(":", "=") if cursor.rust else name)
    if chars is None:
        raise cursor.error(f"the Unicode property {name!r} is not known", start)
    if cursor.flags.fold:
        chars = unicode.fold_case(chars)
    return ~chars if negated else chars


def _coded(cursor: Cursor, char: str) -> int:
    if cursor.sees("{") and (cursor.rust or char == "u"):
        cursor.at += 1
        number = cursor.hex_value(cursor.until("}", "the code point"))
    else:
        number = cursor.hex_digits({"x": 2, "u": 4, "U": 8}[char])
        if not cursor.rust and 0xD800 <= number <= 0xDBFF and cursor.sees("\\u"):
            number = _joined(cursor, number)
    if cursor.rust and 0xD800 <= number <= 0xDFFF:
        raise cursor.error(f"U+{number:04X} is a surrogate, no character")
    return number


def _joined(cursor: Cursor, high: int) -> int:
    """A high surrogate with the low one that may follow it."""
    digits = cursor.pattern[cursor.at + 2 : cursor.at + 6]
    if len(digits) == 4 and digits[0] in "dD" and digits[1] in "cdefCDEF":
        cursor.at += 2
        return 0x10000 + ((high - 0xD800) << 10) + cursor.hex_digits(4) - 0xDC00
    return high


def _place(cursor: Cursor, char: str) -> Where | None:
    if char == "b" and cursor.rust:
        for name, place in _RUST_EDGES.items():
            if cursor.take(name):
                return place
    if char == "b":
        return "word edge"
    if char == "B":
        return "no word edge"
    if cursor.rust:
        places: dict[str, Where] = {
            "A": "text start", "z": "text end", "<": "word start", ">": "word end",
        }  # fmt: skip
        return places.get(char)
    return None


def _rust_char(char: str) -> int | None:
    if char == "a":
        return 7
    other = char.isascii() and not char.isalnum() and char not in "<>"
    return ord(char) if char in _RUST_META or other else None


def _ecma_char(cursor: Cursor, char: str, in_class: bool) -> int | None:
    if char == "0":
        if cursor.char and cursor.char in "0123456789":
            return None
        return 0
    if char == "b" and in_class:
        return 8
    if char == "c" and cursor.char.isascii() and cursor.char.isalpha():
        return ord(cursor.read()) % 32
    # Unlike the u flag, any sign may be escaped: `\-`, `\_` and `\"` have only one meaning.
    return None if char.isalnum() else ord(char)


def literal(cursor: Cursor, char: int) -> CharClass:
    """The class of one character, with its other cases under the flag i."""
    chars = CharClass.exactly(() if 0xD800 <= char <= 0xDFFF else ((char, char),))
    return unicode.fold_case(chars) if cursor.flags.fold else chars


def dot(cursor: Cursor) -> CharClass:
    """What `.` matches."""
    if cursor.flags.dot_all:
        return ~CharClass.exactly(())
    return ~CharClass.exactly(unicode.NEWLINE if cursor.rust else unicode.ECMA_LINE_ENDS)
