"""What stands beside a place in the text, which decides `^`, `$` and word edges."""

from __future__ import annotations

from typing import TypeAlias

from structgen.regex import unicode
from structgen.regex.charsets import CharClass, CharSet, contains
from structgen.regex.syntax import Dialect, Where

Kind: TypeAlias = int
EDGE, LINE, WORD, UNKNOWN, OTHER = range(5)
"""What is beside a place: the text's end, a newline, a word character, one that may be, or none."""


def holds(where: Where, before: Kind, after: Kind) -> bool:
    """Whether a place between two kinds of characters is one where `where` matches."""
    if where in ("text start", "text end"):
        return (before if where == "text start" else after) == EDGE
    if where in ("line start", "line end"):
        return (before if where == "line start" else after) in (EDGE, LINE)
    if where == "no word before":
        return before not in (WORD, UNKNOWN)
    if where == "no word after":
        return after not in (WORD, UNKNOWN)
    if UNKNOWN in (before, after):
        return False
    opens, closes = before != WORD and after == WORD, before == WORD and after != WORD
    if where in ("word edge", "no word edge"):
        return (opens or closes) == (where == "word edge")
    return opens if where == "word start" else closes


class Kinds:
    """The kinds of characters that some conditions can tell apart."""

    def __init__(self, wheres: set[Where], dialect: Dialect) -> None:
        self._lines = bool(wheres & {"line start", "line end"})
        self._words = CharClass.exactly(())
        if any("word" in where for where in wheres):
            self._words = unicode.unicode_word() if dialect == "rust" else unicode.ASCII_WORD

    def sets(self) -> list[CharSet]:
        """Sets of characters that must not be mixed."""
        return [unicode.NEWLINE if self._lines else (), self._words.sure, self._words.possible]

    def kind(self, char: int) -> Kind:
        """The kind of a code point."""
        if self._lines and char == 10:
            return LINE
        if contains(self._words.sure, char):
            return WORD
        return UNKNOWN if contains(self._words.possible, char) else OTHER
