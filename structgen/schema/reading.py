"""Reading back what was generated: the value of a text, and where its parts begin and end.

How a text of several parts is split is settled as in a regular expression: free text without a
stop string takes as little as it can, every other part as much as it can, and the first split in
which every part is valid counts.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import TypeAdapter

from structgen.regex import matches
from structgen.results import LabelScore
from structgen.schema.choices import value_of
from structgen.schema.nodes import Raw, Schema
from structgen.schema.raw import plain_dfa


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that was generated, in characters."""

    path: str
    schema: Schema
    start: int
    end: int


class Reader(Protocol):
    """What reads one value."""

    def ends(self, text: str, start: int) -> Iterator[int]:
        """Where a value that begins at `start` may end, the best end first."""
        ...

    def value(self, text: str) -> Any:
        """The value of a whole text; ValueError where it has none."""
        ...

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:
        """The parts of a whole text that stands behind `start` characters of another."""
        ...


class RatedReader(ABC):
    """A reader whose values say how sure the model was of them."""

    __slots__ = ()

    @abstractmethod
    def rated(self, value: Any, path: str, labels: Mapping[str, LabelScore]) -> Any:
        """The value with what is known once the scores of all labels are."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A text that is always the same."""

    text: str

    def ends(self, text: str, start: int) -> Iterator[int]:
        if text.startswith(self.text, start):
            yield start + len(self.text)

    def value(self, text: str) -> None:
        if text != self.text:
            raise ValueError(f"{text!r} is not {self.text!r}")

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:  # noqa: ARG002
        yield from ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """One of several texts."""

    schema: Schema
    texts: Mapping[str, Any]
    adapter: TypeAdapter[Any] | None = None
    """Validates the value once more, where the type has validators."""

    def ends(self, text: str, start: int) -> Iterator[int]:
        for length in sorted({len(known) for known in self.texts}, reverse=True):
            if text[start : start + length] in self.texts and start + length <= len(text):
                yield start + length

    def value(self, text: str) -> Any:
        value = value_of(self.texts, text)
        return value if self.adapter is None else self.adapter.validate_python(value)

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:
        yield Piece(path, self.schema, start, start + len(text))


@dataclass(frozen=True, slots=True)
class Free:
    """Free text, or text of a pattern."""

    node: Raw
    lazy: bool
    """It ends as soon as what follows can be read."""

    def ends(self, text: str, start: int) -> Iterator[int]:
        if self.node.stops:
            yield from self._first_stop(text, start)
            return
        found = self._matching(text, start)
        yield from found if self.lazy else reversed(list(found))

    def value(self, text: str) -> str:
        for end in self.ends(text, 0):
            if end == len(text):
                stop = next((s for s in self.node.stops if text.endswith(s)), "")
                return text[: len(text) - len(stop)]
        raise ValueError(f"{text!r} is no text of the demanded form")

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:  # noqa: ARG002
        yield from ()

    def _first_stop(self, text: str, start: int) -> Iterator[int]:
        places = [(text.find(stop, start), stop) for stop in self.node.stops]
        found = [(at + len(stop), stop) for at, stop in places if at >= 0]
        if found:
            end, stop = min(found)
            content = text[start : end - len(stop)]
            if self._has_length(len(content)) and matches(plain_dfa(self.node.content), content):
                yield end

    def _matching(self, text: str, start: int) -> Iterator[int]:
        dfa, state = plain_dfa(self.node.content), 0
        for at in range(start, len(text) + 1):
            if state in dfa.accepting and self._has_length(at - start):
                yield at
            if at < len(text):
                state = dfa.step(state, text[at])
                if state < 0:
                    return

    def _has_length(self, length: int) -> bool:
        content = self.node.content
        most = content.max_length
        return content.min_length <= length and (most is None or length <= most)


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value."""

    schema: Schema
    adapter: TypeAdapter[Any]

    def ends(self, text: str, start: int) -> Iterator[int]:
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield end
        if _NUMBER.fullmatch(text, start, end):
            for shorter in range(end - 1, start, -1):
                if _NUMBER.fullmatch(text, start, shorter):
                    yield shorter

    def value(self, text: str) -> Any:
        return self.adapter.validate_json(text)

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:
        yield Piece(path, self.schema, start, start + len(text))


@dataclass(frozen=True, slots=True)
class Several:
    """Parts that stand one behind another."""

    parts: Sequence[tuple[str, Reader]]
    """What each adds to a path (nothing if it has no value), and what reads it."""
    make: Callable[[list[Any]], Any] = field(repr=False)

    def ends(self, text: str, start: int) -> Iterator[int]:
        found: set[int] = set()
        for ends in self._splits(text, 0, start, None, set()):
            if ends[-1] not in found:
                found.add(ends[-1])
                yield ends[-1]

    def value(self, text: str) -> Any:
        return self._read(text)[1]

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:
        at = 0
        for (step, reader), end in zip(self.parts, self._read(text)[0], strict=True):
            yield from reader.pieces(text[at:end], path + step, start + at)
            at = end

    def _read(self, text: str) -> tuple[tuple[int, ...], Any]:
        """The first split in which every part is valid, and the value."""
        first: ValueError | None = None
        for ends in self._splits(text, 0, 0, len(text), set()):
            try:
                return ends, self._value(text, ends)
            except ValueError as error:
                first = first or error
        raise first or ValueError("the text cannot be split into the parts")

    def _value(self, text: str, ends: tuple[int, ...]) -> Any:
        values: list[Any] = []
        at = 0
        for (step, reader), end in zip(self.parts, ends, strict=True):
            value = reader.value(text[at:end])
            if step:
                values.append(value)
            at = end
        return self.make(values)

    def _splits(
        self, text: str, index: int, at: int, last: int | None, dead: set[tuple[int, int]]
    ) -> Iterator[tuple[int, ...]]:
        """The ends of all parts from `index` on; `dead` collects what leads nowhere."""
        if (index, at) in dead:
            return
        alive = False
        for end in self.parts[index][1].ends(text, at):
            if index + 1 < len(self.parts):
                for ends in self._splits(text, index + 1, end, last, dead):
                    alive = True
                    yield (end, *ends)
            elif last is None or end == last:
                alive = True
                yield (end,)
        if not alive:
            dead.add((index, at))


def rated(reader: Reader, value: Any, path: str, labels: Mapping[str, LabelScore]) -> Any:
    """The value that a reader read, with what the scores of labels say about it or its parts."""
    if isinstance(reader, RatedReader):
        return reader.rated(value, path, labels)
    if not isinstance(reader, Several):
        return value
    kept = [(step, part) for step, part in reader.parts if step]
    return reader.make(
        [
            rated(part, inner, path + step, labels)
            for (step, part), inner in zip(kept, value, strict=True)
        ]
    )


def adapters(reader: Reader) -> Iterator[TypeAdapter[Any]]:
    """What validates the JSON parts."""
    match reader:
        case Json():
            yield reader.adapter
        case Several():
            for _, part in reader.parts:
                yield from adapters(part)
        case _:
            return
