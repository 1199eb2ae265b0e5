"""Calls of tools, and what reads them out of JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from structgen.errors import UsageError
from structgen.results import LabelScore
from structgen.schema.nodes import Object, Property, Schema, json_text, labels
from structgen.schema.reading import Piece, RatedReader
from structgen.toolset.tool import Tool

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_NONE = re.compile(r'\{\s*"name"\s*:\s*null\s*\}')
_NAME = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')
_GAP = re.compile(r"\s*,?\s*")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model chose, and what it is to be called with.

    Example: `ToolCall(name="get_weather", arguments={"city": "Porto"}, probability=0.98, ...)`
    """

    name: str
    arguments: Any
    """Validated: a dictionary of Python values, or of a model its instance."""
    probability: float = field(default=math.nan, compare=False)
    """Of the name among all that could be chosen, "no tool" included; NaN where a text was
    validated that no generator wrote."""
    tool: Tool = field(kw_only=True, repr=False, compare=False)
    arguments_json: str = field(kw_only=True, repr=False, compare=False)
    """The arguments as they were written, e.g. for the history of a chat."""

    def call(self) -> Any:
        """Call the tool's function with these arguments; of an async one, the result is awaited.

        Raises:
            UsageError: the tool is a model or a schema, which has no function.
        """
        if self.tool.function is None:
            raise UsageError(
                f"the tool {self.name!r} was given without a function; look at `arguments` and "
                "call what it stands for"
            )
        return self.tool.function(**self.arguments)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one call stands in a text; one without a name calls nothing."""

    start: int
    end: int
    name: str | None = None
    first: int = 0
    """Where the arguments begin; they end before the last character."""


class CallReader(RatedReader):
    """Reads one call, or an array of calls.

    Args:
        schema: of the whole value.
        named: all tools by name.
        parallel: whether the value is an array.
    """

    __slots__ = ("_named", "_names", "_parallel", "_schema")

    def __init__(
        self, schema: Schema, named: Mapping[str, Tool], *, parallel: bool, none: bool
    ) -> None:
        self._schema = schema
        self._named = named
        self._parallel = parallel
        texts = [*map(json_text, named), *[b"null"] * (none and not parallel)]
        self._names = Schema(Object((Property("name", labels(texts)),)), {})

    def ends(self, text: str, start: int) -> Iterator[int]:
        """Where a value that begins at `start` may end."""
        try:
            yield _DECODER.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            return

    def value(self, text: str) -> Any:
        """The call, None for no tool, or the list of calls."""
        calls = [self._call(place, text) for place in self._places(text)]
        return calls if self._parallel else calls[0]

    def pieces(self, text: str, path: str, start: int) -> Iterator[Piece]:
        """The names, which share one set of labels, and the arguments."""
        for step, place in self._steps(text):
            yield Piece(path + step, self._names, start + place.start, start + place.end)
            if place.name is not None:
                schema, where = self._named[place.name].loaded.schema, f"{path}{step}.arguments"
                yield Piece(where, schema, start + place.first, start + place.end - 1)

    def rated(self, value: Any, path: str, labels: Mapping[str, LabelScore]) -> Any:
        """The calls with the probabilities of their names."""
        if isinstance(value, list):
            calls = cast("list[ToolCall]", value)
            return [_rated(call, f"{path}[{index}]", labels) for index, call in enumerate(calls)]
        return value if value is None else _rated(value, path, labels)

    def _call(self, place: _Place, text: str) -> ToolCall | None:
        if place.name is None:
            return None
        tool = self._named[place.name]
        written = text[place.first : place.end - 1]
        return ToolCall(place.name, tool.arguments(written), tool=tool, arguments_json=written)

    def _steps(self, text: str) -> Iterator[tuple[str, _Place]]:
        for index, place in enumerate(self._places(text)):
            yield f"[{index}]" if self._parallel else "", place

    def _places(self, text: str) -> list[_Place]:
        """Where the calls stand.

        Raises:
            ValueError: the text is none that the schema allows.
        """
        if not self._parallel:
            return [self._place(text, 0, len(text))]
        found: list[_Place] = []
        at = _blank(text, text.index("[") + 1)
        while text[at : at + 1] not in ("]", ""):
            end = _DECODER.raw_decode(text, at)[1]
            found.append(self._place(text, at, end))
            gap = _GAP.match(text, end)
            assert gap is not None, "it matches nothing, too"
            at = gap.end()
        return found

    def _place(self, text: str, start: int, end: int) -> _Place:
        if _NONE.fullmatch(text, start, end):
            return _Place(start, end)
        head = _NAME.match(text, start, end)
        name = json.loads(head[1]) if head else None
        if head is None or name not in self._named or not text[start:end].endswith("}"):
            raise ValueError(f"{text[start:end]!r} calls none of the tools")
        return _Place(start, end, name, head.end())


def _rated(call: ToolCall, path: str, labels: Mapping[str, LabelScore]) -> ToolCall:
    score = labels.get(f"{path}.name")
    return call if score is None else replace(call, probability=score.probability)


def _blank(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at
