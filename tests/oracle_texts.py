"""Strings with patterns, read slowly: which beginnings of a text some whole text continues.

Python's own parser reads the pattern; a set of positions in it is followed character by character.
Only literals, sets, dots, groups, alternatives, repeats and anchors are understood.
"""

from __future__ import annotations

import json
import re._parser as python  # pyright: ignore[reportMissingImports]
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from structgen.schema.nodes import String

LAST = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]
ANY: Ranges = ((0, LAST),)
NO_NEWLINE: Ranges = ((0, 9), (11, LAST))


class Edge(NamedTuple):
    """A way on from one position of a pattern: over a character, or over nothing."""

    to: int
    characters: Ranges | None = None
    anchor: str = ""
    """`start` or `end` where nothing is read but the place must be that."""


class Positions:
    """A pattern as numbered positions; 0 is the start, 1 the end of a match anywhere."""

    def __init__(self, source: str) -> None:
        self.edges: list[list[Edge]] = [[], []]
        first = self._position()
        self.edges[0] += [Edge(0, ANY), Edge(first)]
        self.edges[1].append(Edge(1, ANY))
        self._read(python.parse(source), first, 1)

    def _position(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def _read(self, tokens: Any, at: int, to: int) -> None:
        """Lay `tokens` between two positions."""
        for name, value in list(tokens):
            after = self._position()
            self._token(str(name), value, at, after)
            at = after
        self.edges[at].append(Edge(to))

    def _token(self, name: str, value: Any, at: int, to: int) -> None:
        match name:
            case "LITERAL":
                self.edges[at].append(Edge(to, ((value, value),)))
            case "NOT_LITERAL":
                self.edges[at].append(Edge(to, outside(((value, value),))))
            case "ANY":
                self.edges[at].append(Edge(to, NO_NEWLINE))
            case "IN":
                self.edges[at].append(Edge(to, members(value)))
            case "AT":
                anchor = {"AT_BEGINNING": "start", "AT_END": "end"}[str(value)]
                self.edges[at].append(Edge(to, None, anchor))
            case "BRANCH":
                for option in value[1]:
                    self._read(option, at, to)
            case "SUBPATTERN":
                self._read(value[3], at, to)
            case "MAX_REPEAT" | "MIN_REPEAT":
                self._repeat(*value, at, to)
            case _:
                raise NotImplementedError(name)

    def _repeat(self, low: int, high: Any, inner: Any, at: int, to: int) -> None:
        for _ in range(low):
            after = self._position()
            self._read(inner, at, after)
            at = after
        if high is python.MAXREPEAT:
            loop = self._position()
            self.edges[at].append(Edge(loop))
            self._read(inner, loop, loop)
            self.edges[loop].append(Edge(to))
            return
        for _ in range(high - low):
            self.edges[at].append(Edge(to))
            after = self._position()
            self._read(inner, at, after)
            at = after
        self.edges[at].append(Edge(to))

    def reached(self, positions: frozenset[int], *, start: bool, end: bool) -> frozenset[int]:
        """Positions that are reached without a character."""
        found, pending = set(positions), list(positions)
        while pending:
            for edge in self.edges[pending.pop()]:
                open_ = {"": True, "start": start, "end": end}[edge.anchor]
                if edge.characters is None and open_ and edge.to not in found:
                    found.add(edge.to)
                    pending.append(edge.to)
        return frozenset(found)

    def read(self, positions: frozenset[int], code: int, *, start: bool) -> frozenset[int]:
        """Positions behind one more character."""
        return frozenset(
            edge.to
            for position in self.reached(positions, start=start, end=False)
            for edge in self.edges[position]
            if edge.characters and any(low <= code <= high for low, high in edge.characters)
        )

    def borders(self) -> Iterator[int]:
        """Characters next to which a pattern may read otherwise."""
        for edges in self.edges:
            for edge in edges:
                for low, high in edge.characters or ():
                    yield from (low - 1, low, high, high + 1)


def outside(ranges: Ranges) -> Ranges:
    """All characters that are in none of `ranges`."""
    found: list[tuple[int, int]] = []
    at = 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return (*found, (at, LAST)) if at <= LAST else tuple(found)


def members(tokens: Any) -> Ranges:
    """The characters of a set."""
    ranges: list[tuple[int, int]] = []
    negated = False
    for name, value in tokens:
        match str(name):
            case "NEGATE":
                negated = True
            case "LITERAL":
                ranges.append((value, value))
            case "RANGE":
                ranges.append(value)
            case _:
                raise NotImplementedError(name)
    return outside(tuple(ranges)) if negated else tuple(ranges)


class State(NamedTuple):
    """How far a text is read."""

    positions: tuple[frozenset[int], ...]
    """In each pattern."""
    length: int
    """Counted up to what still matters."""
    text: str | None
    """The text itself, as long as it may become an excluded one."""


class Texts:
    """The texts of one string node."""

    def __init__(self, node: String) -> None:
        self._node = node
        self._patterns = [(Positions(p.source), p) for p in node.patterns]
        codes = {ord(c) for text in node.excluded for c in text} | {*map(ord, 'a"\\\n\x7fé\u0800')}
        codes.update(code for read, _ in self._patterns for code in read.borders())
        self.characters = [chr(c) for c in sorted(codes) if is_scalar(c)]
        """Some of every kind that the patterns tell apart."""
        self.start = State(tuple(frozenset({0}) for _ in self._patterns), 0, "")
        self._known: dict[State, bool] = {}
        self._reads: dict[tuple[State, str], State] = {}

    def read(self, state: State, char: str) -> State:
        """The state behind one more character."""
        known = self._reads.get((state, char))
        if known is None:
            known = self._reads[state, char] = self._read(state, char)
        return known

    def _read(self, state: State, char: str) -> State:
        start = state.length == 0
        positions = tuple(
            read.read(at, ord(char), start=start)
            for at, (read, _) in zip(state.positions, self._patterns, strict=True)
        )
        node = self._node
        most = node.min_length if node.max_length is None else node.max_length + 1
        text = None if state.text is None else state.text + char
        if text is not None and not any(other.startswith(text) for other in node.excluded):
            text = None
        return State(positions, min(state.length + 1, max(most, 1)), text)

    def is_text(self, state: State) -> bool:
        """Whether a text may end here."""
        node = self._node
        if state.length < node.min_length or state.text in node.excluded:
            return False
        if node.max_length is not None and state.length > node.max_length:
            return False
        return all(
            (1 in read.reached(at, start=state.length == 0, end=True)) != pattern.negated
            for at, (read, pattern) in zip(state.positions, self._patterns, strict=True)
        )

    def can_end(self, state: State) -> bool:
        """Whether some characters more make it a text."""
        if state not in self._known:
            self._known[state] = any(map(self.is_text, self._later(state)))
        return self._known[state]

    def _later(self, state: State) -> Iterator[State]:
        pending, seen = [state], {state}
        while pending:
            at = pending.pop()
            yield at
            if self._node.max_length is not None and at.length >= self._node.max_length:
                continue
            for after in {self.read(at, char) for char in self.characters}:
                if after not in seen:
                    seen.add(after)
                    pending.append(after)

    def sample(self, rng: Random) -> str | None:
        """A random text, None where there is none."""
        state, found = self.start, ""
        if not self.can_end(state):
            return None
        while not self.is_text(state) or (rng.random() < 0.6 and len(found) < 12):
            chars = [c for c in self.characters if self.can_end(self.read(state, c))]
            if not chars:
                break
            found += self._nearest(state) if len(found) > 12 else rng.choice(chars)
            state = self.start
            for char in found:
                state = self.read(state, char)
        return found

    def _nearest(self, state: State) -> str:
        """The fewest characters that end a text."""
        pending = {state: ""}
        while True:
            for at, behind in pending.items():
                if self.is_text(at):
                    return behind
            pending = {
                self.read(at, char): behind + char
                for at, behind in pending.items()
                for char in self.characters
            }

    def can_go_on(self, state: State, rest: bytes) -> bool:
        """Whether a character that is written with the bytes `rest` first leads to a text."""
        chars = {*self.characters, *completions(rest)}
        return any(
            written(char).startswith(rest) and self.can_end(self.read(state, char))
            for char in chars
        )


def is_scalar(code: int) -> bool:
    return 0 <= code <= LAST and not 0xD800 <= code < 0xE000


def written(char: str) -> bytes:
    """The one way to write a character in a string with a pattern."""
    return json.dumps(char, ensure_ascii=False).encode()[1:-1]


def completions(rest: bytes) -> Iterator[str]:
    """The first and last characters whose bytes begin with `rest`, and those written with `\\`."""
    if rest.startswith(b"\\"):
        yield from map(chr, range(0x60))
        return
    for fill in (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF):
        for last in (0x80, 0xBF):
            for more in range(4):
                tail = bytes([fill] + [last] * 3)[:more]
                try:
                    text = (rest + tail).decode()
                except UnicodeDecodeError:
                    continue
                if len(text) == 1:
                    yield text
