"""Frames of arrays and objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from structgen.automata.frames import COUNT, END, ROOM, Call, Frame, FrameBuilder
from structgen.errors import LimitError
from structgen.options import Layout

UNIT = ROOM | COUNT
MOST_CHOICES = 500_000
"""Pairs of a place in an object and an optional property that may come there."""
BLANKS = "blanks"
"""Key of the frame of optional whitespace."""

Target = tuple[object, int, int]
"""(callee key, first registers a and b): one way to write a value."""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """How a layout writes what stands between values."""

    comma: bytes
    colon: bytes
    max_blanks: int
    """Optional whitespace after opening, comma and colon and before closing; 0 for none."""

    @classmethod
    def of(cls, layout: Layout, max_blanks: int) -> Punctuation:
        if layout == "spaced":
            return cls(b", ", b": ", 0)
        return cls(b",", b":", max_blanks if layout == "flexible" else 0)

    def gap(self, b: FrameBuilder) -> None:
        """Optional whitespace, where the layout has any, before whichever state comes next."""
        if self.max_blanks:
            b.call([(BLANKS, 0, self.max_blanks)])


@cache
def blanks_frame() -> Frame:
    """Whitespace, up to the room that the caller gives."""
    b = FrameBuilder(BLANKS)
    state = b.state(accept=True)
    b.bytes_edge(state, b" \n\t\r", state, UNIT)
    return b.frame(loop=state)


def array_frame(item: Sequence[Target], punctuation: Punctuation) -> Frame:
    """`[item, item]`; the registers count the items, an item is taken at its comma."""
    b = FrameBuilder("array")
    b.literal(b"[")
    punctuation.gap(b)
    opened = b.state()
    comma = b.literal(punctuation.comma[1:])
    punctuation.gap(b)
    after_comma = b.call(item)
    punctuation.gap(b)
    after_item = b.state()
    closed = b.state(accept=True)
    back = after_comma + 1
    for callee, a, room in item:
        b.add_call(opened, Call(callee, back, a, room, UNIT))
    b.edge(opened, 0x5D, 0x5D, closed, END)
    b.edge(after_item, 0x5D, 0x5D, closed, END)
    b.edge(after_item, 0x2C, 0x2C, comma, UNIT)
    return b.frame(loop=after_item)


def map_frame(key: Target, value: Sequence[Target], punctuation: Punctuation) -> Frame:
    """`{"key": value, "key": value}` with free keys."""
    b = FrameBuilder("map")
    b.literal(b"{")
    punctuation.gap(b)
    opened = b.state()
    comma = b.next_state
    _after_comma(b, punctuation)
    after_comma = b.call([key])
    back = after_comma + 1
    _colon(b, punctuation)
    b.call(value)
    punctuation.gap(b)
    after_value = b.state()
    closed = b.state(accept=True)
    b.add_call(opened, Call(key[0], back, key[1], key[2]))
    for state in (opened, after_value):
        b.edge(state, 0x7D, 0x7D, closed)
    b.edge(after_value, 0x2C, 0x2C, comma)
    return b.frame()


def _after_comma(b: FrameBuilder, punctuation: Punctuation) -> None:
    b.literal(punctuation.comma[1:])
    punctuation.gap(b)


def _colon(b: FrameBuilder, punctuation: Punctuation) -> None:
    b.literal(punctuation.colon)
    punctuation.gap(b)


@dataclass(frozen=True, slots=True)
class Slot:
    """One declared property: its key and the ways to write its value."""

    name: str
    value: Sequence[Target]
    required: bool


@dataclass(frozen=True, slots=True)
class Extra:
    """Undeclared properties: the frame of their keys and the ways to write their values."""

    key: Target
    value: Sequence[Target]


def object_frame(slots: Sequence[Slot], extra: Extra | None, punctuation: Punctuation) -> Frame:
    """`{"a": value, "b": value}`: declared order, optional properties may be left out."""
    return _ObjectBuilder(slots, extra, punctuation).build()


def _check_choices(slots: Sequence[Slot]) -> None:
    """Refuse an object whose choices of a next key would be too many (quadratic in a row)."""
    choices, in_a_row = 0, 0
    for slot in slots:
        in_a_row = 0 if slot.required else in_a_row + 1
        choices += in_a_row
    if choices > MOST_CHOICES:
        raise LimitError(
            f"an object with {len(slots)} properties leaves {choices} choices of a next key, more "
            f"than {MOST_CHOICES}; make properties required (require_all=True) or group them"
        )


class _ObjectBuilder:
    """Lays the properties out one after another, so that required ones are plain chains.

    Where a choice exists (an optional property, the end, an undeclared key) a row state leads
    into a trie over the possible keys; its single-key branches join the properties' chains.
    """

    def __init__(
        self, slots: Sequence[Slot], extra: Extra | None, punctuation: Punctuation
    ) -> None:
        _check_choices(slots)
        self._slots = slots
        self._extra = extra
        self._punctuation = punctuation
        self._b = FrameBuilder("object")
        self._keys = [json.dumps(slot.name, ensure_ascii=False).encode() for slot in slots]
        self._key_state: list[int] = []
        self._choices: list[tuple[int, int]] = []
        self._tries: dict[tuple[tuple[int, ...], int], int] = {}

    def build(self) -> Frame:
        b, slots = self._b, self._slots
        b.literal(b"{")
        self._punctuation.gap(b)
        self._choose(0, first=True)
        for index, slot in enumerate(slots):
            self._key_state.append(b.literal(self._keys[index]))
            _colon(b, self._punctuation)
            b.call(slot.value)
            self._choose(index + 1, first=False)
        if not self._choices:
            b.state(accept=True)
            return b.frame()
        self._close_choices()
        return b.frame()

    def _choose(self, position: int, *, first: bool) -> None:
        """What may follow once the properties before `position` are dealt with."""
        b = self._b
        keys = self._candidates(position)
        if not first:
            self._punctuation.gap(b)
        if len(keys) == 1 and self._slots[keys[0]].required:
            if not first:
                b.literal(self._punctuation.comma)
                self._punctuation.gap(b)
        elif not keys and self._extra is None and not self._choices:
            b.literal(b"}")  # the accepting state is added right behind it
        else:
            self._choices.append((b.state(), position if not first else -1))

    def _candidates(self, position: int) -> tuple[int, ...]:
        """Properties that may come next: those up to the next required one."""
        found: list[int] = []
        for index in range(position, len(self._slots)):
            found.append(index)
            if self._slots[index].required:
                break
        return tuple(found)

    def _close_choices(self) -> None:
        """Wire the row states, now that every key's chain has its place."""
        b = self._b
        closed = b.state(accept=True)
        other = self._add_extra(closed) if self._extra else None
        for state, position in self._choices:
            keys = self._candidates(max(position, 0))
            closable = not any(self._slots[index].required for index in keys)
            if closable:
                b.edge(state, 0x7D, 0x7D, closed)
            extra = other if closable else None
            if position < 0:
                self._fill_trie(state, keys, 0)
                self._call_extra(state, extra)
            elif keys or extra is not None:
                b.edge(state, 0x2C, 0x2C, self._after_comma(keys, extra))

    def _after_comma(self, keys: tuple[int, ...], extra: int | None) -> int:
        """The state behind a comma: optional blank, then one of `keys` or an undeclared key."""
        cached = self._tries.get((keys, -1))
        if cached is not None:
            return cached
        b = self._b
        start = b.next_state
        _after_comma(b, self._punctuation)
        state = b.state()
        self._tries[(keys, -1)] = start
        self._fill_trie(state, keys, 0)
        self._call_extra(state, extra)
        return start

    def _fill_trie(self, state: int, keys: tuple[int, ...], depth: int) -> None:
        by_byte: dict[int, list[int]] = {}
        for index in keys:
            by_byte.setdefault(self._keys[index][depth], []).append(index)
        for byte, group in by_byte.items():
            self._b.edge(state, byte, byte, self._trie(tuple(group), depth + 1))

    def _trie(self, keys: tuple[int, ...], depth: int) -> int:
        """The state in which `keys` agree with what was read, `depth` bytes of the key."""
        if len(keys) == 1:
            return self._key_state[keys[0]] + depth
        state = self._tries.get((keys, depth))
        if state is None:
            state = self._tries[(keys, depth)] = self._b.state()
            self._fill_trie(state, keys, depth)
        return state

    def _add_extra(self, closed: int) -> int:
        """States behind an undeclared key; returns the one its key's frame comes back to."""
        assert self._extra is not None
        b = self._b
        start = b.next_state
        _colon(b, self._punctuation)
        b.call(self._extra.value)
        self._punctuation.gap(b)
        state = b.state()
        b.edge(state, 0x7D, 0x7D, closed)
        comma = b.next_state
        _after_comma(b, self._punctuation)
        again = b.state()
        b.edge(state, 0x2C, 0x2C, comma)
        self._call_extra(again, start)
        return start

    def _call_extra(self, state: int, back: int | None) -> None:
        if back is not None and self._extra is not None:
            callee, a, room = self._extra.key
            self._b.add_call(state, Call(callee, back, a, room))


def targets_of(targets: Iterable[Sequence[Target]]) -> list[Target]:
    """All ways of several alternatives, doubles removed."""
    return list(dict.fromkeys(target for group in targets for target in group))
