"""A position in the text of a pattern."""

from __future__ import annotations

from dataclasses import dataclass

from structgen.regex.charsets import CharClass, CharSet
from structgen.regex.limits import PatternError
from structgen.regex.syntax import Dialect

MAX_CODE_POINT = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Flags:
    """The inline flags in force."""

    fold: bool = False
    """i: letters match in either case."""
    dot_all: bool = False
    """s: the dot also matches line ends."""
    lines: bool = False
    """m: ^ and $ also match at line ends."""
    verbose: bool = False
    """x: white space and comments are skipped."""


class Cursor:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect: Dialect = dialect
        self.at = 0
        self.flags = Flags()
        self.names: set[str] = set()
        self.ahead: bool | None = None
        """Inside of look-around: whether it looks ahead."""
        self.negated = False
        """Inside of a negative look-around, which excludes what its body may match."""

    @property
    def rust(self) -> bool:
        """Whether the dialect is Rust's."""
        return self.dialect == "rust"

    @property
    def char(self) -> str:
        """The next character, empty at the end."""
        return self.pattern[self.at : self.at + 1]

    def sees(self, text: str) -> bool:
        """Whether `text` comes next."""
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        """Skip `text` if it comes next."""
        if self.sees(text):
            self.at += len(text)
            return True
        return False

    def read(self) -> str:
        """Take one character; an error at the end."""
        if self.at >= len(self.pattern):
            raise self.error("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def until(self, end: str, what: str) -> str:
        """Take everything before `end`, and `end` itself."""
        start = self.at
        stop = self.pattern.find(end, start)
        if stop < 0:
            raise self.error(f"{what} is not closed by {end!r}")
        self.at = stop + len(end)
        return self.pattern[start:stop]

    def hex_digits(self, count: int) -> int:
        """Take exactly `count` hexadecimal digits."""
        return self.hex_value(self.pattern[self.at : self.at + count], count)

    def hex_value(self, digits: str, count: int | None = None) -> int:
        """Take `digits`, which come next, as a hexadecimal number."""
        valid = digits and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        if not valid or (count is not None and len(digits) != count):
            raise self.error(f"expected hexadecimal digits, got {digits!r}")
        if count is not None:
            self.at += count
        number = (int(digits[:-8] or "0", 16) and MAX_CODE_POINT + 1) or int(digits, 16)
        if number > MAX_CODE_POINT:
            raise self.error(f"there is no character U+{digits}")
        return number

    def skip_space(self) -> None:
        """Under the flag x: skip white space and comments."""
        while self.flags.verbose and self.char:
            if self.char == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end + 1
            elif self.char in "\t\n\v\f\r \x85\u200e\u200f\u2028\u2029":
                self.at += 1
            else:
                return

    def pick(self, chars: CharClass) -> CharSet:
        """The characters of a class, or of a doubtful one those that keep the result certain."""
        return chars.possible if self.negated else chars.sure

    def error(self, problem: str, at: int | None = None) -> PatternError:
        """The error to raise for a problem here, or at another position."""
        where = self.at if at is None else at
        shown = self.pattern if len(self.pattern) <= 200 else self.pattern[:200] + "..."
        return PatternError(f"{problem}, at position {where} of the pattern {shown!r}")
