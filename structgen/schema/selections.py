"""Several labels as plain text: where such a text can be read in one way only, and its reading."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from structgen.errors import Fault
from structgen.schema.distinct import MOST_DISTINCT
from structgen.schema.nodes import Schema
from structgen.schema.reading import Piece

MOST_SHOWN = 5
_JSON = '"[{'


def ambiguous(texts: Collection[str], char: str) -> list[tuple[str, str]]:
    """Labels of which the second goes on with `char` where the first ends.

    Without any, a label is known to end where `char` follows it, whatever comes then.

    Example: `ambiguous(["a", "a, b"], ",")` -> `[("a", "a, b")]`
    """
    found: list[tuple[str, str]] = []
    for text in texts:
        at = text.find(char)
        while at >= 0:
            if text[:at] in texts:
                found.append((text[:at], text))
            at = text.find(char, at + 1)
    return found


def separator_faults(texts: Mapping[str, Any], separator: str, path: str) -> list[Fault]:
    """What keeps a text of labels and separators from being read in one way only."""
    faults: list[Fault] = []
    if "" in texts:
        faults.append(Fault(path, "an empty text cannot be one of several labels"))
    pairs = ambiguous(texts.keys(), separator[0])
    if pairs:
        shown = "; ".join(f"{one!r} and {other!r}" for one, other in pairs[:MOST_SHOWN])
        problem = (
            f"behind {len(pairs)} labels the separator {separator!r} could be taken for the "
            f"beginning of a longer label: {shown}"
        )
        advice = "use a separator whose first character does not follow a label in another"
        faults.append(Fault(path, problem, advice))
    return faults


def begin_faults(texts: Mapping[str, Any], path: str) -> list[Fault]:
    """Labels that the automaton would take for JSON when it compares them with each other."""
    odd = [text for text in texts if text[0] in _JSON]
    if len(texts) <= MOST_DISTINCT or not odd:
        return []
    shown = ", ".join(map(repr, odd[:MOST_SHOWN]))
    problem = f"{len(odd)} labels begin with a quotation mark or bracket: {shown}"
    advice = f"rename them; up to {MOST_DISTINCT} labels may begin with anything"
    return [Fault(path, problem, advice)]


def follower_faults(
    texts: Mapping[str, Any], separator: str, least: int, constant: str, path: str
) -> list[Fault]:
    """What is wrong with a constant right behind the labels."""
    char = constant[0]
    begins = char == separator[0] or bool(ambiguous(texts.keys(), char))
    if least == 0:
        begins = begins or any(text.startswith(char) for text in texts)
    if not begins:
        return []
    problem = f"the constant {constant!r} could be taken for a part of the labels before it"
    return [Fault(path, problem, "begin it with another character, such as a line end")]


class BareList:
    """Finds the labels in a text of several, with a separator between them."""

    def __init__(self, values: Mapping[str, Any], separator: str) -> None:
        self.values = values
        """By what is written."""
        self._separator = separator
        self._lengths = sorted({len(text) for text in values}, reverse=True)
        self._sorted = sorted(values)

    def read(self, text: str, start: int) -> tuple[list[tuple[int, int]], bool]:
        """Where the labels stand, and whether what follows the last one is no part of it.

        Each is the longest that fits, since none can end before.
        """
        found: list[tuple[int, int]] = []
        at = start
        while (end := self._label_end(text, at)) >= 0:
            found.append((at, end))
            at = end
            if not text.startswith(self._separator, end):
                break
            at += len(self._separator)
        rest = text[found[-1][1] if found else start :]
        open_ = self._separator.startswith(rest[: len(self._separator)])
        return found, not open_ and not self._is_begun(text[found[-1][0] if found else start :])

    def _label_end(self, text: str, start: int) -> int:
        for length in self._lengths:
            if start + length <= len(text) and text[start : start + length] in self.values:
                return start + length
        return -1

    def _is_begun(self, text: str) -> bool:
        """Whether a label may go on where a text ends."""
        at = bisect_left(self._sorted, text)
        return at < len(self._sorted) and self._sorted[at].startswith(text)


@dataclass(frozen=True)
class Selected:
    """Reads several of some texts, with a separator between them."""

    schema: Schema
    """Of one of them."""
    texts: Mapping[str, Any]
    separator: str
    least: int
    most: int

    @cached_property
    def _list(self) -> BareList:
        return BareList(self.texts, self.separator)

    def ends(self, text: str, start: int) -> Iterator[int]:
        spans, _ = self._list.read(text, start)
        if self._are_valid(text, spans):
            yield spans[-1][1] if spans else start

    def value(self, text: str) -> list[Any]:
        spans, _ = self._list.read(text, 0)
        end = spans[-1][1] if spans else 0
        if end != len(text) or not self._are_valid(text, spans):
            raise ValueError(f"{text!r} is no list of different choices")
        return [self.texts[text[begin:end]] for begin, end in spans]

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:
        for index, (begin, end) in enumerate(self._list.read(text, 0)[0]):
            yield Piece(f"{path}[{index}]", self.schema, start + begin, start + end)

    def _are_valid(self, text: str, spans: list[tuple[int, int]]) -> bool:
        written = {text[begin:end] for begin, end in spans}
        return len(written) == len(spans) and self.least <= len(spans) <= self.most
