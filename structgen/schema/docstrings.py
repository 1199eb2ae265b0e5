"""What a docstring says about arguments, in the style of Google, NumPy or Sphinx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from structgen.schema.core_reader import plain_text

_SECTION = re.compile(r"^(?:Args|Arguments|Parameters|Params|Keyword Args|Other Parameters):\s*$")
_ANY_SECTION = re.compile(r"^[A-Z][A-Za-z ]*:\s*$")
_GOOGLE = re.compile(r"^\*{0,2}(\w+)(?:\s*\(.*?\))?\s*:\s*(.*)$")
_UNDERLINED = re.compile(r"^(?:Other )?Parameters$")
_RULE = re.compile(r"^-{3,}\s*$")
_NUMPY = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)(?:\s*:.*)?$")
_SPHINX = re.compile(r"^[:@](?:param|parameter|arg|argument|key|keyword)\s[^:]*?(\w+):\s*(.*)$")
_SPHINX_TYPE = re.compile(r"^[:@]type\s+\w+:")


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    r"""The text without what it says about arguments, and that by argument.

    Example: `"Forecast.\n\nArgs:\n    city: where"` -> `("Forecast.", {"city": "where"})`
    """
    parser = _Parser(plain_text(text).splitlines())
    parser.read()
    kept = "\n".join(parser.kept).strip()
    return re.sub(r"\n{3,}", "\n\n", kept), parser.described


class _Parser:
    """Goes through the lines once; a style is recognised where it begins."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self.kept: list[str] = []
        self.described: dict[str, str] = {}

    def read(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _SECTION.match(line):
                self._at += 1
                self._google()
            elif _UNDERLINED.match(line) and self._is_underlined(self._at):
                self._at += 2
                self._numpy()
            elif _SPHINX.match(line) or _SPHINX_TYPE.match(line):
                self._sphinx(line)
            else:
                self.kept.append(line)
                self._at += 1

    def _google(self) -> None:
        """Entries `name (type): words`, up to the next section."""
        current, indent = "", 0

        def ends(line: str) -> bool:
            prose = bool(line.strip()) and indent > 0 == _depth(line)
            return prose or bool(_ANY_SECTION.match(line))

        for line in self._until(ends):
            found = _GOOGLE.match(line.strip())
            if found and (not current or _depth(line) <= indent):
                current, indent = found[1], _depth(line)
            self._say(current, found[2] if found and found[1] == current else line)

    def _numpy(self) -> None:
        """Entries `name : type` with their words indented below, up to the next underline."""
        names: list[str] = []
        for line in self._until(lambda _: self._is_underlined(self._at)):
            found = _NUMPY.match(line)
            if found:
                names = [name.strip().lstrip("*") for name in found[1].split(",")]
            for name in names:
                self._say(name, "" if found else line)

    def _sphinx(self, line: str) -> None:
        """One entry `:param name: words`, and the indented lines below."""
        found = _SPHINX.match(line)
        name = found[1] if found else ""
        self._say(name, found[2] if found else "")
        self._at += 1
        for more in self._until(lambda line: not line[:1].isspace()):
            self._say(name, more)

    def _until(self, ends: Callable[[str], bool]) -> Iterator[str]:
        while self._at < len(self._lines) and not ends(self._lines[self._at]):
            self._at += 1
            yield self._lines[self._at - 1]

    def _is_underlined(self, at: int) -> bool:
        following = self._lines[at + 1 : at + 2]
        return bool(self._lines[at].strip()) and any(map(_RULE.match, following))

    def _say(self, name: str, words: str) -> None:
        if name:
            self.described[name] = f"{self.described.get(name, '')} {words.strip()}".strip()


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
