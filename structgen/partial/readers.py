"""What reads a text that grows: one reader for each form of schema, and for a sequence of them.

A reader tells where its part ends as soon as that is certain. Where it depends on what follows,
the parts behind it are not shown before the text is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, cast

from pydantic import TypeAdapter

from structgen.partial.json_text import JsonReader
from structgen.partial.places import ANYTHING, Place
from structgen.partial.typed import ABSENT, Scope
from structgen.schema import roots
from structgen.schema.choices import bare_texts, choices_of
from structgen.schema.core_reader import Core
from structgen.schema.functions import arguments_model, is_function
from structgen.schema.selections import BareList
from structgen.schema.written import Composed


class Reader(Protocol):
    """Reads one value of a text that grows."""

    @property
    def end(self) -> int | None:
        """Where the value ends, once that is certain."""
        ...

    def advance(self, text: str) -> None:
        """Read on, in a text that begins with what was read before."""
        ...

    def value(self) -> Any:
        """What is shown of the value; ABSENT before there is anything."""
        ...


Begin: TypeAlias = Callable[[int], Reader]
"""From the place where a value begins to a reader."""


def begin_of(source: Any) -> Begin:
    """Readers of the values of whatever can be generated."""
    match source:
        case roots.Sequence():
            parts = cast("roots.Sequence[Any]", source)
            return partial(SequenceReader, [_part(part) for _, part in parts.parts], parts.make)
        case roots.Text():
            return partial(TextReader, source.stop)
        case roots.Regex():
            return partial(TextReader, ())
        case roots.SomeOf():
            form = cast("roots.SomeOf[Any]", source)
            texts = bare_texts(choices_of(form.choices) or (), "$")[0]
            return partial(SelectionReader, BareList(texts, form.separator))
        case Composed():
            return partial(JsonReader, ANYTHING)
        case _:
            pass
    choices = choices_of(source)
    if choices is not None:
        return partial(ChoiceReader, Choices(bare_texts(choices, "$")[0]))
    return partial(JsonReader, _place(source))


def _part(part: Any) -> tuple[bool, Begin]:
    """Whether a part of a sequence has a value, and its readers."""
    if isinstance(part, str):
        return False, partial(ConstantReader, part)
    return True, begin_of(part)


def _place(source: Any) -> Place:
    if isinstance(source, dict):  # a JSON Schema, whose values are plain data
        return ANYTHING
    if is_function(source):
        source = arguments_model(source)
    adapter = source if isinstance(source, TypeAdapter) else TypeAdapter[Any](source)
    # The settings of a TypeAdapter are no part of its core schema and have no public name.
    config: Mapping[str, Any] = getattr(adapter, "_config", None) or {}
    return Place(cast(Core, adapter.core_schema), Scope({}, config))


class ConstantReader:
    """Reads a text that is always the same and has no value."""

    def __init__(self, constant: str, start: int) -> None:
        self._end = start + len(constant)
        self.end: int | None = None

    def advance(self, text: str) -> None:
        if len(text) >= self._end:
            self.end = self._end

    def value(self) -> Any:
        return ABSENT


class TextReader:
    """Reads free text up to the first stop string; without any the rest of the text."""

    def __init__(self, stops: Sequence[str], start: int) -> None:
        self._stops = stops
        self._longest = max(map(len, stops), default=0)
        self._start = start
        self._text = ""
        self._value: str = ""
        self.end: int | None = None

    def advance(self, text: str) -> None:
        # A stop string that was incomplete may have begun before what is new.
        first = max(self._start, len(self._text) - self._longest + 1)
        self._text = text
        found = [
            (at + len(stop), at) for stop in self._stops if (at := text.find(stop, first)) >= 0
        ]
        if self.end is None and found:
            self.end, at = min(found)
            self._value = text[self._start : at]
        elif self.end is None:
            self._value = text[self._start : len(text) - self._begun_stop()]

    def value(self) -> Any:
        return self._value

    def _begun_stop(self) -> int:
        """How many characters at the end may be the beginning of a stop string."""
        most = min(self._longest - 1, len(self._text) - self._start)
        for length in range(most, 0, -1):
            last = self._text[-length:]
            if any(stop.startswith(last) for stop in self._stops):
                return length
        return 0


class ChoiceReader:
    """Reads one of several texts, which shows once it is complete."""

    def __init__(self, choices: Choices, start: int) -> None:
        self._choices = choices
        self._start = start
        self._value: Any = ABSENT
        self.end: int | None = None

    def advance(self, text: str) -> None:
        for length in self._choices.lengths:
            end = self._start + length
            written = text[self._start : end]
            if self.end is None and end <= len(text) and written in self._choices.certain:
                self._value, self.end = self._choices.certain[written], end

    def value(self) -> Any:
        return self._value


class Choices:
    """Several texts and their values."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        in_order = sorted(texts)
        longer = {a for a, b in pairwise(in_order) if b.startswith(a)}
        self.certain = {
            text: value
            for text, value in texts.items()
            if text not in longer and not any(text[:n] in longer for n in range(len(text)))
        }
        """Those that neither begin another one nor go on where another one ends."""
        self.lengths = sorted({len(text) for text in self.certain})


class SelectionReader:
    """Reads several texts with a separator; each shows once the separator follows it."""

    def __init__(self, texts: BareList, start: int) -> None:
        self._texts = texts
        self._start = start
        self._value: list[Any] = []
        self.end: int | None = None

    def advance(self, text: str) -> None:
        if self.end is None:
            spans, is_over = self._texts.read(text, self._start)
            shown = spans if is_over else spans[:-1]
            self._value = [self._texts.values[text[begin:end]] for begin, end in shown]
            if is_over:
                self.end = spans[-1][1] if spans else self._start

    def value(self) -> Any:
        return self._value


class SequenceReader:
    """Reads part after part; what has not begun is None."""

    def __init__(
        self, parts: Sequence[tuple[bool, Begin]], make: Callable[[list[Any]], Any], start: int
    ) -> None:
        self._parts = parts
        self._make = make
        self._readers = [parts[0][1](start)]
        self.end: int | None = None

    def advance(self, text: str) -> None:
        while self.end is None:
            last = self._readers[-1]
            last.advance(text)
            if last.end is None:
                return
            if len(self._readers) == len(self._parts):
                self.end = last.end
            else:
                self._readers.append(self._parts[len(self._readers)][1](last.end))

    def value(self) -> Any:
        shown = [reader.value() for reader in self._readers]
        shown += [ABSENT] * (len(self._parts) - len(shown))
        values = [
            None if value is ABSENT else value
            for value, (has_value, _) in zip(shown, self._parts, strict=True)
            if has_value
        ]
        return self._make(values)
