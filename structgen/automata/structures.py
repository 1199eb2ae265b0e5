"""Frames of arrays and objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.calls import NO_LIMIT, Call, Calls, numbered
from structgen.automata.frames import COUNT, END, ROOM, Frame, FrameBuilder, IntArray
from structgen.automata.object_kernels import lay_out
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


@dataclass(frozen=True, slots=True)
class Place:
    """A point between two items of an array: what may be written next."""

    items: Sequence[tuple[Sequence[Target], int]]
    """Ways to write an item, with the place behind it."""
    may_close: bool
    counted: bool = False
    """An item behind this place is a unit of the registers, which also say when to close."""


@dataclass(frozen=True, slots=True)
class Different:
    """Items or free keys that must differ from each other."""

    floor: int = 0
    """Tokens that suffice for one of them, whatever was written before and still is needed."""


def array_frame(
    places: Sequence[Place], punctuation: Punctuation, different: Different | None = None
) -> Frame:
    """`[item, item]`, beginning at the first place, to which no item leads back."""
    floor = different.floor if different else 0
    b = FrameBuilder("array")
    b.literal(b"[")
    punctuation.gap(b)
    befores: list[int] = []
    chooses: list[int] = []
    arrivals: list[int] = []
    for index, place in enumerate(places):
        if index:
            arrivals.append(b.next_state)
            punctuation.gap(b)
        else:
            arrivals.append(-1)
        before = b.state()
        befores.append(before)
        if index and place.items:
            b.edge(before, 0x2C, 0x2C, b.next_state, UNIT * place.counted)
            _after_comma(b, punctuation)
            choose = b.state()
        else:
            choose = before
        chooses.append(choose)
    closed = b.state(accept=True)
    for index, place in enumerate(places):
        if place.may_close:
            b.edge(befores[index], 0x5D, 0x5D, closed, END * place.counted)
        flags = UNIT * (place.counted and index == 0)
        for targets, to in place.items:
            for callee, a, room in targets:
                b.add_call(chooses[index], Call(callee, arrivals[to], a, room, flags, floor))
    if different:
        b.scope(arrivals[1:], closed)
    counted = [state for state, place in zip(befores, places, strict=True) if place.counted]
    return b.frame(loop=counted[-1] if counted else -1)


def _after_comma(b: FrameBuilder, punctuation: Punctuation) -> None:
    b.literal(punctuation.comma[1:])
    punctuation.gap(b)


def _colon(b: FrameBuilder, punctuation: Punctuation) -> None:
    b.literal(punctuation.colon)
    punctuation.gap(b)


class Slot(NamedTuple):
    """One declared property: its key and the ways to write its value."""

    name: str
    value: Sequence[Target]
    required: bool


class Extra(NamedTuple):
    """One kind of undeclared properties: the ways to write their keys and their values."""

    key: Sequence[Target]
    value: Sequence[Target]


@dataclass(frozen=True, slots=True)
class Count:
    """How many properties an object must and may have."""

    least: int = 0
    most: int | None = None
    different: Different | None = None
    """Of free keys, where a repetition would make the count wrong."""
    in_registers: bool = False
    """Undeclared properties are the units of the registers; all declared ones are required."""

    @property
    def ceiling(self) -> int:
        """More properties than this need not be told apart by a state of their own."""
        if self.in_registers:
            return 0
        return self.least if self.most is None else self.most


_UNCOUNTED = Count()


def object_frame(
    slots: Sequence[Slot],
    extras: Sequence[Extra],
    count: Count,
    punctuation: Punctuation,
    *,
    begun: int = 0,
) -> Frame:
    """`{"a": value, "b": value}`: declared order, optional properties may be left out.

    With `begun` it is what follows so many first properties, of an object that counts none.
    """
    _check_choices(slots, count)
    if count == _UNCOUNTED and not punctuation.max_blanks:
        return _laid_out(slots, extras, punctuation, begun)
    return ObjectBuilder(slots, extras, count, punctuation).build(begun)


def _laid_out(
    slots: Sequence[Slot], extras: Sequence[Extra], punctuation: Punctuation, begun: int
) -> Frame:
    """The frame of an object that counts no properties, in a layout without optional blanks."""
    chains = [_written(slot.name).encode() + punctuation.colon for slot in slots]
    chains += [punctuation.colon] * len(extras)
    chains.append(punctuation.comma)
    assert len({slot.name for slot in slots}) == len(slots), "the kernel tells keys apart by text"
    values = [part.value for part in (*slots[begun:], *extras)]
    callees, ways, spans = _ways([*[()] * begun, *values, *(extra.key for extra in extras)])
    states, table, classes, calls = lay_out(
        np.frombuffer(bytearray(b"".join(chains)), np.uint8),
        np.array([0, *accumulate(map(len, chains))], np.int64),
        np.array([slot.required for slot in slots], np.bool_),
        ways,
        spans,
        begun,
    )
    return Frame("object", states, table.ravel(), classes, Calls(callees, calls))


def _ways(
    sources: Iterable[Sequence[Target]],
) -> tuple[tuple[object, ...], IntArray, npt.NDArray[np.int64]]:
    """(callees, int32[W, 3] of the distinct targets' (callee, a, b), int64[S, 2] of each source)"""
    spans: list[int] = []
    found: list[Target] = []
    known: dict[int, tuple[int, int]] = {}
    for source in sources:
        span = known.get(id(source))
        if span is None:
            span = known[id(source)] = len(found), len(found) + len(source)
            found += source
        spans += span
    numbers: dict[object, int] = {}
    rows = (
        (numbers.setdefault(callee, len(numbers)), a, min(room, NO_LIMIT))
        for callee, a, room in found
    )
    ways = numbered(rows).reshape(-1, 3)
    return tuple(numbers), ways, np.array(spans, np.int64).reshape(-1, 2)


def _check_choices(slots: Sequence[Slot], count: Count) -> None:
    """Refuse an object whose choices of a next key would be too many (quadratic in a row)."""
    choices, in_a_row = 0, 0
    for slot in slots:
        in_a_row = 0 if slot.required else in_a_row + 1
        choices += in_a_row
    choices = (choices + len(slots) + 1) * (count.ceiling + 1)
    if choices > MOST_CHOICES:
        raise LimitError(
            f"an object with {len(slots)} properties leaves {choices} choices of a next key, more "
            f"than {MOST_CHOICES}; make properties required (require_all=True) or group them"
        )


_written = json.JSONEncoder(ensure_ascii=False).encode
"""`json.dumps` makes an encoder for each call with options."""

_Place = tuple[int, int]
"""Declared properties dealt with, and properties written as far as they are counted."""


_Keys: TypeAlias = "int | dict[int, _Keys] | None"
"""A trie of keys: the number of the only one, or what follows by the next byte."""


def _name(keys: _Keys) -> int:
    """Tells tries apart that are kept."""
    return id(keys) if isinstance(keys, dict) else -1 if keys is None else -2 - keys


class ObjectBuilder:
    """Lays the properties out one after another, so that required ones are plain chains.

    Where a choice exists (an optional property, the end, an undeclared key) a row state leads
    into a trie over the possible keys; its single-key branches join the properties' chains.
    Where the properties are counted, each count has states of its own, or the registers count.
    """

    def __init__(
        self, slots: Sequence[Slot], extras: Sequence[Extra], count: Count, punctuation: Punctuation
    ) -> None:
        self._slots = slots
        self._extras = extras
        self._count = count
        self._punctuation = punctuation
        self._b = FrameBuilder("object")
        self._keys = [_written(slot.name).encode() for slot in slots]
        self._key_state: dict[_Place, int] = {}
        self._choices: list[tuple[int, _Place, bool]] = []
        self._tries: dict[tuple[int, bool, int], int] = {}
        self._extra_state: dict[tuple[int, int], int] = {}
        required = [slot.required for slot in slots]
        self._required_from = [*accumulate(reversed(required), initial=0)][::-1]
        self._next = self._candidates()
        self._fewer: dict[tuple[int, ...], _Keys] = {}

    def build(self, begun: int = 0) -> Frame:
        b = self._b
        if not begun:
            b.literal(b"{")
            self._punctuation.gap(b)
        if self._count.ceiling:
            self._choices.append((b.state(), (0, 0), True))
        else:
            self._choose((begun, 0), first=not begun)
            for index in range(begun, len(self._slots)):
                self._property((index, 0))
            if not self._choices:
                b.state(accept=True)
                return b.frame()
        closed = b.state(accept=True)
        done = 0
        while done < len(self._choices):  # wiring one place may lay out more of them
            self._wire(*self._choices[done], closed)
            done += 1
        if self._count.different:
            b.scope(self._extra_state.values(), closed)
        return b.frame(loop=self._choices[-1][0] if self._count.in_registers else -1)

    def _property(self, place: _Place) -> int:
        """Lay out a property and what follows it; the first state of its key."""
        b = self._b
        index = place[0]
        start = self._key_state[place] = b.literal(self._keys[index])
        _colon(b, self._punctuation)
        b.call(self._slots[index].value)
        self._choose((index + 1, self._more(place[1])), first=False)
        return start

    def _more(self, written: int) -> int:
        return min(written + 1, self._count.ceiling)

    def _choose(self, place: _Place, *, first: bool) -> None:
        """What may follow once the properties before a place are dealt with."""
        b = self._b
        keys = self._next[place[0]]
        if not first:
            self._punctuation.gap(b)
        if self._count.ceiling:
            self._choices.append((b.state(), place, first))
        elif isinstance(keys, int) and self._slots[keys].required:
            if not first:
                b.literal(self._punctuation.comma)
                self._punctuation.gap(b)
        elif keys is None and not self._extras and not self._choices:
            b.literal(b"}")  # the accepting state is added right behind it
        else:
            self._choices.append((b.state(), place, first))

    def _candidates(self) -> list[_Keys]:
        """Properties that may come next from each position on: those up to the required one."""
        found: list[_Keys] = [None]
        for index in reversed(range(len(self._slots))):
            found.append(self._with(None if self._slots[index].required else found[-1], index))
        return found[::-1]

    def _with(self, keys: _Keys, index: int) -> _Keys:
        """A trie with one key more; what is the same is shared."""
        key = self._keys[index]
        path: list[dict[int, _Keys]] = []
        while isinstance(keys, dict):
            path.append(keys)
            keys = keys.get(key[len(path) - 1])
        found: _Keys = index
        if keys is not None:
            other, depth = self._keys[keys], len(path)
            while key[depth] == other[depth]:
                depth += 1
            found = {other[depth]: keys, key[depth]: index}
            for byte in reversed(key[len(path) : depth]):
                found = {byte: found}
        for byte, above in zip(key[len(path) - 1 :: -1] if path else b"", path[::-1], strict=True):
            found = {**above, byte: found}
        return found

    def _within_bounds(self, position: int, written: int) -> _Keys:
        """The properties that may come next without having too many or too few in the end."""
        least = 0 if self._extras else self._count.least
        most = len(self._slots) if self._count.most is None else self._count.most
        keys: list[int] = []
        for index, slot in enumerate(self._slots[position:], position):
            if written + len(self._slots) - index < least:
                break
            if written + 1 + self._required_from[index + 1] <= most:
                keys.append(index)
            if slot.required:
                break
        if tuple(keys) not in self._fewer:
            found: _Keys = None
            for index in reversed(keys):
                found = self._with(found, index)
            self._fewer[tuple(keys)] = found
        return self._fewer[tuple(keys)]

    def _allowed(self, place: _Place) -> tuple[_Keys, bool, bool]:
        """(properties that may come next, whether undeclared ones may, whether `}` may)."""
        position, written = place
        keys = self._next[position]
        settled = not self._required_from[position]
        extras = settled and bool(self._extras)
        if self._count.in_registers:
            return keys, extras, settled
        most = self._count.most
        if most is not None or self._count.least:
            keys = self._within_bounds(position, written)
            extras = extras and (most is None or written < most)
        return keys, extras, settled and written >= self._count.least

    def _wire(self, state: int, place: _Place, first: bool, closed: int) -> None:
        """Give a row state its edges."""
        keys, extras, closable = self._allowed(place)
        written = place[1]
        counted = self._count.in_registers
        if closable:
            self._b.edge(state, 0x7D, 0x7D, closed, END * counted)
        if first:
            self._fill_trie(state, keys, 0, written)
            self._call_extras(state, written if extras else -1, UNIT * counted)
        elif keys is not None or extras:
            to = self._after_comma(keys, written, extras)
            self._b.edge(state, 0x2C, 0x2C, to, UNIT * counted)

    def _after_comma(self, keys: _Keys, written: int, extras: bool) -> int:
        """The state behind a comma: optional blank, then one of `keys` or an undeclared key."""
        # Whether undeclared keys may come follows from the keys and the count.
        name = (_name(keys), True, written)
        cached = self._tries.get(name)
        if cached is not None:
            return cached
        b = self._b
        start = b.next_state
        _after_comma(b, self._punctuation)
        state = b.state()
        self._tries[name] = start
        self._fill_trie(state, keys, 0, written)
        self._call_extras(state, written if extras else -1)
        return start

    def _fill_trie(self, state: int, keys: _Keys, depth: int, written: int) -> None:
        """Let `state` read what follows `depth` bytes of each of `keys`."""
        if isinstance(keys, int):
            keys = {self._keys[keys][depth]: keys}
        row = self._b.row(state)
        starts, tries = self._key_state, self._tries
        for byte, longer in (keys or {}).items():
            if isinstance(longer, int):
                start = starts.get((longer, written))
                if start is None:
                    start = self._property((longer, written))
                to = start + depth + 1
            else:
                known = tries.get((id(longer), False, written))
                to = self._trie(longer, depth + 1, written) if known is None else known
            row.append((byte, byte, to, 0))

    def _trie(self, keys: _Keys, depth: int, written: int) -> int:
        """A state in which several keys agree with what was read, `depth` bytes of each."""
        state = self._tries[id(keys), False, written] = self._b.state()
        self._fill_trie(state, keys, depth, written)
        return state

    def _call_extras(self, state: int, written: int, flags: int = 0) -> None:
        """Let `state` also read an undeclared key, unless `written` is -1."""
        floor = self._count.different.floor if self._count.different else 0
        for index, extra in enumerate(self._extras if written >= 0 else ()):
            back = self._extra_state.get((index, written))
            if back is None:
                back = self._add_extra(index, written)
            for callee, a, room in extra.key:
                self._b.add_call(state, Call(callee, back, a, room, flags, floor))

    def _add_extra(self, index: int, written: int) -> int:
        """States behind an undeclared key; returns the one its key's frame comes back to."""
        b = self._b
        start = self._extra_state[(index, written)] = b.next_state
        _colon(b, self._punctuation)
        b.call(self._extras[index].value)
        self._choose((len(self._slots), self._more(written)), first=False)
        return start


def targets_of(targets: Iterable[Sequence[Target]]) -> list[Target]:
    """All ways of several alternatives, doubles removed."""
    return list(dict.fromkeys(target for group in targets for target in group))
