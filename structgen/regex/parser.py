"""Pattern text -> tree."""

from __future__ import annotations

import re
from dataclasses import replace

from structgen.regex.brackets import read_brackets
from structgen.regex.charsets import CharClass
from structgen.regex.cursor import Cursor, Flags
from structgen.regex.escapes import dot, literal, read_escape
from structgen.regex.limits import CHARACTERS, PatternTooLarge
from structgen.regex.syntax import (
    At,
    Chars,
    Dialect,
    Look,
    Node,
    chain,
    choice,
    repeat,
)

MAX_NESTING = 100
MAX_COUNT_DIGITS = 9

_ECMA_COUNT = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}")
_RUST_COUNT = re.compile(r"\{\s*([0-9]+)\s*(,?)\s*([0-9]*)\s*\}")
_NAME = re.compile(r"[^\W\d][\w$.\[\]]*\Z|\$[\w$]*\Z")
_FLAG_NAMES = {"i": "fold", "s": "dot_all", "m": "lines", "x": "verbose"}


def parse(pattern: str, dialect: Dialect) -> Node:
    """Read a whole pattern.

    Raises:
        PatternError: It is not valid, or needs more than a finite automaton.
        PatternTooLarge: It is too long to be read.
    """
    if len(pattern) > CHARACTERS:
        raise PatternTooLarge(f"it has {len(pattern)} characters, more than {CHARACTERS}")
    cursor = Cursor(pattern, dialect)
    node = _choice(cursor, 0)
    if cursor.char:
        raise cursor.error("this ')' closes nothing")
    return node


def _choice(cursor: Cursor, depth: int) -> Node:
    """Options up to the end of the group; its flags end with it."""
    if depth > MAX_NESTING:
        raise cursor.error(f"more than {MAX_NESTING} nested groups")
    outside = cursor.flags
    options = [_chain(cursor, depth)]
    while cursor.take("|"):
        options.append(_chain(cursor, depth))
    cursor.flags = outside
    return choice(options)


def _chain(cursor: Cursor, depth: int) -> Node:
    parts: list[Node] = []
    while True:
        cursor.skip_space()
        if cursor.char in ("", "|", ")"):
            return chain(parts)
        bare = cursor.char != "("
        atom = _atom(cursor, depth)
        if atom is not None:
            countable = cursor.rust or not (bare and isinstance(atom, At))
            parts.append(_quantified(cursor, atom, countable=countable))


def _atom(cursor: Cursor, depth: int) -> Node | None:
    """One character, class, group or assertion; None for flags."""
    start = cursor.at
    char = cursor.read()
    if char == "(":
        return _group(cursor, depth)
    if char == "[":
        return Chars(cursor.pick(read_brackets(cursor)))
    if char == ".":
        return Chars(cursor.pick(dot(cursor)))
    if char == "^":
        return At("line start" if cursor.flags.lines else "text start")
    if char == "$":
        return At("line end" if cursor.flags.lines else "text end")
    if char in "*+?" or (char == "{" and (cursor.rust or _ECMA_COUNT.match(cursor.pattern, start))):
        raise cursor.error("there is nothing to repeat", start)
    if char == "\\":
        item = read_escape(cursor, in_class=False)
        if isinstance(item, At):
            return item
        return Chars(cursor.pick(item if isinstance(item, CharClass) else literal(cursor, item)))
    return Chars(cursor.pick(literal(cursor, ord(char))))


def _quantified(cursor: Cursor, atom: Node, *, countable: bool) -> Node:
    """The atom with the quantifiers that follow it; lazy ones match the same texts."""
    cursor.skip_space()
    count = 0
    start = cursor.at
    while (bounds := _quantifier(cursor)) is not None:
        if not countable or (count and not cursor.rust):
            raise cursor.error("there is nothing to repeat", start)
        count += 1
        if count > MAX_NESTING:
            raise cursor.error(f"more than {MAX_NESTING} quantifiers in a row")
        cursor.skip_space()
        cursor.take("?")
        atom = repeat(atom, *bounds)
        cursor.skip_space()
        start = cursor.at
    return atom


def _quantifier(cursor: Cursor) -> tuple[int, int | None] | None:
    for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
        if cursor.take(sign):
            return bounds
    return _count(cursor) if cursor.sees("{") else None


def _count(cursor: Cursor) -> tuple[int, int | None] | None:
    """Read `{2}`, `{2,}` or `{2,5}`; in ECMAScript other braces are themselves."""
    found = (_RUST_COUNT if cursor.rust else _ECMA_COUNT).match(cursor.pattern, cursor.at)
    if found is None:
        if not cursor.rust and not re.match(r"\{,[0-9]+\}", cursor.pattern[cursor.at :]):
            return None
        raise cursor.error("a count is written {2}, {2,} or {2,5}")
    if max(len(found[1]), len(found[3])) > MAX_COUNT_DIGITS:
        raise cursor.error("the count is too large")
    least = int(found[1] or "0")
    if found[3] and not found[2]:
        raise cursor.error("a count is written {2}, {2,} or {2,5}")
    most = (int(found[3]) if found[3] else None) if found[2] else least
    if most is not None and most < least:
        raise cursor.error("the bounds of the count are in the wrong order")
    cursor.at = found.end()
    return least, most


def _group(cursor: Cursor, depth: int) -> Node | None:
    """Read a group of which `(` was just taken."""
    start = cursor.at - 1
    outside = cursor.flags
    look: tuple[bool, bool] | None = None
    if cursor.take("?"):
        look = _look(cursor, start)
        if look is None and not _named(cursor, start):
            flags = _flags(cursor, start)
            if cursor.take(")"):
                return _set_flags(cursor, flags, start, depth)
            cursor.at += 1  # the colon
            cursor.flags = flags
    body = _choice(cursor, depth + 1) if look is None else _look_body(cursor, look, start, depth)
    cursor.flags = outside
    if not cursor.take(")"):
        raise cursor.error("the group is not closed by ')'", start)
    return body if look is None else Look(body, *look)


def _set_flags(cursor: Cursor, flags: Flags, start: int, depth: int) -> None:
    """`(?i)`: flags for the rest of the group; ECMAScript validators know it at the start only."""
    if not cursor.rust and (start or depth):
        raise cursor.error("flags can only be set at the start of the pattern", start)
    cursor.flags = flags


def _look(cursor: Cursor, start: int) -> tuple[bool, bool] | None:
    for sign, ahead, negative in (
        ("=", True, False),
        ("!", True, True),
        ("<=", False, False),
        ("<!", False, True),
    ):
        if cursor.take(sign):
            if cursor.rust:
                raise cursor.error("look-around is not supported by pydantic's engine", start)
            return ahead, negative
    return None


def _look_body(cursor: Cursor, look: tuple[bool, bool], start: int, depth: int) -> Node:
    ahead, negative = look
    outside = cursor.ahead
    if outside not in (None, ahead):
        raise cursor.error("look-ahead and look-behind inside each other are not supported", start)
    cursor.ahead = ahead
    cursor.negated ^= negative
    body = _choice(cursor, depth + 1)
    cursor.negated ^= negative
    cursor.ahead = outside
    return body


def _named(cursor: Cursor, start: int) -> bool:
    if not (cursor.take("P<") or cursor.take("<")):
        return False
    name = cursor.until(">", "the name of the group")
    if not _NAME.match(name):
        raise cursor.error(f"{name!r} is no name for a group", start)
    if cursor.rust and name in cursor.names:
        raise cursor.error(f"there are two groups {name!r}", start)
    cursor.names.add(name)
    return True


def _flags(cursor: Cursor, start: int) -> Flags:
    """Read flags such as `i-s` up to `:` or `)`, which is left in place."""
    flags = cursor.flags
    on = True
    seen: set[str] = set()
    while cursor.char not in (":", ")", ""):
        char = cursor.read()
        if char in seen:
            raise cursor.error(f"the flag {char} is given twice", start)
        seen.add(char)
        if char == "-":
            on = False
            continue
        if char in _FLAG_NAMES and (cursor.rust or char != "x"):
            flags = replace(flags, **{_FLAG_NAMES[char]: on})
        elif not (cursor.rust and (char == "U" or (char == "u" and on))):
            raise cursor.error(f"a group cannot start with (?{char}", start)
    if not cursor.char:
        raise cursor.error("the group is not closed by ')'", start)
    if cursor.pattern[cursor.at - 1] == "-" or (cursor.char == ")" and not seen):
        raise cursor.error("flags are missing", start)
    return flags
