"""Reading a JSON text that grows: each character is looked at once, however often one asks."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic_core import from_json

from structgen.partial.places import Items, Members, Place
from structgen.partial.typed import ABSENT

logger = logging.getLogger("structgen")

_SPACE = re.compile(r"[\s,:]*")
_RUN = re.compile(r'[^"\\]*')
_ESCAPE = re.compile(
    r'\\(?:["\\/bfnrt]|u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})"
)
"""A whole character: of a pair of surrogates both halves."""
_NUMBER = re.compile(r"[-+.0-9eE]*")
_WORDS = {"t": "true", "f": "false", "n": "null"}


@dataclass(slots=True)
class _Object:
    """An object that is open."""

    place: Place
    start: int
    members: Members
    values: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """Of entries that have closed, by name."""
    key: str | None = None
    """The key whose value comes next or is open."""
    closed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Key and text of each entry, which are read once more where a tag tells the type."""

    def inner(self) -> Place:
        assert self.key is not None, "a value has a key"
        return self.members.place(self.key)

    def put(self, value: Any, text: str) -> None:
        """Add the value that has closed."""
        key, self.key = self.key, None
        assert key is not None, "a value has a key"
        name = self.members.name(key)
        if name is not ABSENT:
            self.values[name] = value
        self.closed.append((key, text))
        known = self.members.chosen(key, value)
        if known is not None:
            self._become(known)

    def _become(self, known: Members) -> None:
        entries, self.closed, self.values, self.members = self.closed, [], {}, known
        for key, text in entries:
            self.key = key
            self.put(_value(self.inner(), text, from_json(text)), text)

    def shown(self, last: Any) -> Any:
        """What is shown, with a value that is open."""
        values = self.values.copy()
        name = ABSENT if self.key is None or last is ABSENT else self.members.name(self.key)
        if name is not ABSENT:
            values[name] = last
        return self.members.made(values)


@dataclass(slots=True)
class _Array:
    """An array that is open."""

    place: Place
    start: int
    items: Items
    values: list[Any] = field(default_factory=list[Any])
    """Of items that have closed."""

    def inner(self) -> Place:
        return self.items.place(len(self.values))

    def put(self, value: Any, text: str) -> None:  # noqa: ARG002  # as for objects
        """Add the value that has closed."""
        self.values.append(value)

    def shown(self, last: Any) -> Any:
        """What is shown, with a value that is open."""
        return self.items.make(self.values + ([] if last is ABSENT else [last]))


_Open: TypeAlias = _Object | _Array


class JsonReader:
    """Reads one JSON value from `start` on."""

    def __init__(self, place: Place, start: int) -> None:
        self.end: int | None = None
        """Where the value ends, once that is certain."""
        self._place = place
        self._text = ""
        self._at = self._start = start
        """Where it goes on, and where the scalar that is open began."""
        self._stack: list[_Open] = []
        self._string: str | None = None
        """The content of the string or key that is open."""
        self._root: Any = ABSENT

    def advance(self, text: str) -> None:
        """Read on, in a text that begins with what was read before."""
        self._text = text
        while self.end is None and self._at < len(text) and self._token():
            pass

    def value(self) -> Any:
        """What is shown of the value; ABSENT before there is anything."""
        if self.end is not None:
            return self._root
        shown: Any = ABSENT
        if self._string is not None and not self._is_key() and self._inner().shows_text:
            shown = self._string
        for container in reversed(self._stack):
            shown = container.shown(shown)
        return shown

    def _inner(self) -> Place:
        """Where the value stands that is open or comes next."""
        return self._stack[-1].inner() if self._stack else self._place

    def _is_key(self) -> bool:
        last = self._stack[-1] if self._stack else None
        return isinstance(last, _Object) and last.key is None

    def _token(self) -> bool:
        """Read a token or a part of one; False where nothing goes on without more text."""
        if self._string is not None:
            return self._read_string()
        match = _SPACE.match(self._text, self._at)
        assert match is not None, "it matches nothing too"
        self._at = self._start = match.end()
        match self._text[self._at : self._at + 1]:
            case "":
                return False
            case '"':
                self._at += 1
                self._string = ""
                return True
            case "{" | "[" as bracket:
                self._open(bracket)
                return True
            case "}" | "]":
                self._close()
                return True
            case "t" | "f" | "n" as letter:
                return self._read_word(_WORDS[letter])
            case _:
                return self._read_number()

    def _read_string(self) -> bool:
        assert self._string is not None, "a string is open"
        run = _RUN.match(self._text, self._at)
        assert run is not None, "it matches nothing too"
        self._string += run[0]
        self._at = run.end()
        if self._at == len(self._text):
            return False
        if self._text[self._at] == '"':
            self._at += 1
            self._end_string()
            return True
        escape = _ESCAPE.match(self._text, self._at)
        if escape is None:
            return False
        self._string += from_json(f'"{escape[0]}"')
        self._at = escape.end()
        return True

    def _end_string(self) -> None:
        string, self._string = self._string, None
        last = self._stack[-1] if self._stack else None
        if isinstance(last, _Object) and last.key is None:
            last.key = string
        else:
            self._put(self._inner(), self._start, string)

    def _read_word(self, word: str) -> bool:
        end = self._start + len(word)
        if len(self._text) < end:
            return False
        self._at = end
        self._put(self._inner(), self._start, from_json(word))
        return True

    def _read_number(self) -> bool:
        """A number ends where something else follows."""
        match = _NUMBER.match(self._text, self._at)
        assert match is not None, "it matches nothing too"
        if match.end() == len(self._text) or not self._stack:
            return False
        self._at = match.end()
        self._put(self._inner(), self._start, from_json(match[0]))
        return True

    def _open(self, bracket: str) -> None:
        place = self._inner()
        if bracket == "{":
            self._stack.append(_Object(place, self._at, place.members))
        else:
            self._stack.append(_Array(place, self._at, place.items))
        self._at += 1

    def _close(self) -> None:
        container = self._stack.pop()
        self._at += 1
        self._put(container.place, container.start, container.shown(ABSENT))

    def _put(self, place: Place, start: int, plain: Any) -> None:
        """Close a value, of which `plain` is known."""
        text = self._text[start : self._at]
        value = plain if place.is_anything else _value(place, text, plain)
        if self._stack:
            self._stack[-1].put(value, text)
        else:
            self._root, self.end = value, self._at


def _value(place: Place, text: str, otherwise: Any) -> Any:
    """What Pydantic makes of a text that has closed.

    Where a validator rejects it, or cannot do without the rest of the value, the value stays as it
    is known otherwise: the finished value is validated as a whole, and then the error is raised.
    Validators are the user's and may raise anything.
    """
    try:
        return place.value(text)
    except Exception as error:
        logger.debug("shown without validation: %s: %s", text, error)
        return otherwise
