"""A frame: one object, array or lexeme as a small byte automaton that can call other frames.

A frame state has at most one of two kinds of byte edges:

- *chain*: exactly one byte is possible and leads to the next state number. Keys and punctuation
  are chains, so an object costs one Python call a field, not one a byte.
- *row*: a list of byte ranges, each with a target and flags.

Besides, it may accept (the frame returns to its caller) and may *call* other frames. Every call
in progress has two integer registers `(a, b)`: for counting frames they are `(need, room)`, how
many units must and may still come; for label frames the interval `[a, b)` of labels that agree
with the bytes read so far. `NO_LIMIT` in `b` means that there is no upper bound.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.calls import NO_CALLS, Call, Calls

IntArray: TypeAlias = npt.NDArray[np.int32]

# Flags of an edge or call. A counted unit is taken by ROOM | COUNT, a counter's end is END.
ROOM = 1
"""Only while the room register holds the units that are taken."""
COUNT = 2
"""Takes one unit: need and room go down by one."""
END = 4
"""Only when the need register is zero."""
EXTRA = 8
"""Of an edge: times n, takes n more units of room."""
MOST_EXTRA = 127
FLAG_BITS = 10

# Flags of a state.
ACCEPT = 1
CALLS = 2
LABEL = 4
"""Keeps the depth of the label in ROW."""
TAIL = 8
"""Nothing but a return: a call that would come back here is made as a jump."""
CHARS = 16
"""The counted units are characters, of which one token can hold many."""
WIDE = 32
"""Most of the vocabulary is legal inside the frame, so its masks are kept apart from callers'."""
SCOPE = 64
"""Inside an array or object some of whose parts must differ from each other."""
DIFFERS = 128
"""With SCOPE: what has just returned here is such a part."""
OPENS = 256
"""With SCOPE: the next byte begins the array or object."""
SPARE = 512
"""The room is what may be used beyond the shortest way to an end, whose edges take none."""

Edge: TypeAlias = tuple[int, int, int, int]
"""(first byte, last byte, target state, flags)"""


# Columns of a frame's and a program's state table.
CHAIN, ROW, CLASSES, CALL_FROM, CALL_TO, FLAGS, LOOP, FRAME = range(8)
"""CHAIN: the only possible byte, which leads to the next state. ROW: offset into the table.
CLASSES: offset of the frame's byte classes. CALL_FROM, CALL_TO: the state's calls. LOOP: the
state in which a counting frame is between two units. -1 stands for none."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """An immutable frame; state 0 is its start. S states, R row states, C byte classes."""

    name: str
    states: IntArray
    """int32[S, 8], columns as above, offsets within the frame."""
    table: IntArray
    """int32[R * C]: `target << FLAG_BITS | flags` by row and byte class, -1 where dead."""
    classes: npt.NDArray[np.uint8]
    """uint8[256]: the class of each byte."""
    calls: Calls = NO_CALLS
    digest: str = ""
    """Content hash, for wide frames only (they are shared between schemas)."""
    max_tokens: int | None = None
    """Tokens after which sessions leave the frame; the automaton itself does not count them."""
    slack: int = 0
    """Units of room that one text can take beyond one for each of its bytes."""
    like: IntArray | None = None
    """int32[S], of some wide frames: the state that each wide state reads as but for some bytes.

    The digest is that of the frame without the states that stand for another one."""


class FrameBuilder:
    """Collects states in order; `frame()` ends the building.

    Example: `b = FrameBuilder("pair"); b.literal(b"[1, 2]"); b.state(accept=True); b.frame()`
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._chain = array("i")
        self._accepting: list[int] = []
        self._rows: dict[int, list[Edge]] = {}
        self._calls: list[tuple[int, Call]] = []
        self._differing: list[int] = []
        self._outside: list[int] = []

    @property
    def next_state(self) -> int:
        """Number of the state that is added next."""
        return len(self._chain)

    def literal(self, data: bytes) -> int:
        """Add chain states for `data`; they lead to whichever state is added next."""
        first = len(self._chain)
        self._chain.extend(data)
        return first

    def state(self, *, accept: bool = False) -> int:
        """Add a state without edges."""
        self._chain.append(-1)
        number = len(self._chain) - 1
        if accept:
            self._accepting.append(number)
        return number

    def call(self, targets: Iterable[tuple[object, int, int]], *, flags: int = 0) -> int:
        """Add a state that calls any of `targets` (callee, a, b) and returns to the next state."""
        number = self.state()
        for callee, a, b in targets:
            self._calls.append((number, Call(callee, number + 1, a, b, flags)))
        return number

    def add_call(self, state: int, call: Call) -> None:
        """Let an existing state also make `call`."""
        self._calls.append((state, call))

    def edge(self, state: int, first: int, last: int, to: int, flags: int = 0) -> None:
        """Let `state` read any byte in [first, last] and go to `to`."""
        self._rows.setdefault(state, []).append((first, last, to, flags))

    def row(self, state: int) -> list[Edge]:
        """The list of the edges of `state`, to which more may be added."""
        return self._rows.setdefault(state, [])

    def bytes_edge(self, state: int, data: bytes, to: int, flags: int = 0) -> None:
        """Let `state` read any one byte of `data` and go to `to`."""
        for byte in data:
            self.edge(state, byte, byte, to, flags)

    def edges_of(self, state: int) -> list[Edge]:
        """The byte edges of a state so far, its chain byte included."""
        if self._chain[state] >= 0:
            return [(self._chain[state], self._chain[state], state + 1, 0)]
        return list(self._rows.get(state, ()))

    def scope(self, differing: Iterable[int], outside: int | None) -> None:
        """Parts that return to the states `differing` must differ; `outside` ends the frame.

        Where it is None the scope begins with its first part and ends with its last.
        """
        self._differing.extend(differing)
        self._outside.extend([] if outside is None else [outside])

    def frame(
        self, *, loop: int = -1, chars: bool = False, wide: bool = False, slack: int | None = None
    ) -> Frame:
        """The finished frame; with `slack`, its room is what goes beyond the shortest way."""
        self._calls.sort(key=lambda item: item[0])
        size = len(self._chain)
        call_from, call_to = (array("i", [0]) * size for _ in range(2))
        for index, (state, _) in enumerate(self._calls):
            if not call_to[state]:
                call_from[state] = index
            call_to[state] = index + 1
        rows, classes, table = self._table()
        flags = self._flags(
            rows, call_to, CHARS * chars + WIDE * wide + SPARE * (slack is not None)
        )
        # In the order of the columns; one after another, since numpy is slow on small arrays.
        columns = self._chain + rows + array("i", [0]) * size + call_from + call_to + flags
        columns += array("i", [loop]) * size + array("i", [-1]) * size
        states = np.frombuffer(columns, np.int32).reshape(8, size).T.copy()
        self._scopes_into(states)
        calls = Calls.of(self._calls) if self._calls else NO_CALLS
        digest = content_digest(states, table, classes) if wide else ""
        return Frame(self._name, states, table, classes, calls, digest, slack=slack or 0)

    def _flags(self, rows: array[int], call_to: array[int], common: int) -> array[int]:
        flags = array("i", [common]) * len(rows)
        for state in self._accepting:
            alone = rows[state] < 0 and not call_to[state]
            flags[state] |= ACCEPT + TAIL * alone
        for state, _ in self._calls:
            flags[state] |= CALLS
        return flags

    def _scopes_into(self, states: IntArray) -> None:
        if self._differing:
            states[:, FLAGS] |= SCOPE
            states[self._outside, FLAGS] &= ~SCOPE
            states[self._differing, FLAGS] |= DIFFERS
            states[self._differing, FLAGS] &= ~TAIL  # a jump would leave the part before it ends
            states[0, FLAGS] |= OPENS * bool(self._outside)

    def _table(self) -> tuple[array[int], npt.NDArray[np.uint8], IntArray]:
        """(each state's offset into the table or -1, the byte classes, the table)"""
        row_of = array("i", [-1]) * len(self._chain)
        if not self._rows:
            return row_of, _NO_CLASSES, _NO_TABLE
        rows = self._rows
        cuts = bytearray(257)
        for edges in rows.values():
            for first, last, _, _ in edges:
                cuts[first] = cuts[last + 1] = 1
        cuts[0] = 0
        class_of = bytearray(accumulate(cuts[:256]))
        n_classes = class_of[-1] + 1
        table = array("i", [-1]) * (len(rows) * n_classes)
        offset = 0
        for state, edges in rows.items():
            row_of[state] = offset
            for first, last, to, flags in edges:
                begin = offset + class_of[first]
                entry = to << FLAG_BITS | flags
                table[begin] = entry
                if first != last and (width := class_of[last] - class_of[first]):
                    table[begin : begin + width + 1] = array("i", [entry]) * (width + 1)
            offset += n_classes
        return row_of, np.frombuffer(class_of, np.uint8), np.frombuffer(table, np.int32)


_NO_CLASSES = np.zeros(256, np.uint8)
_NO_TABLE = np.zeros(0, np.int32)


def content_digest(*parts: npt.NDArray[np.generic]) -> str:
    """The digest of a wide frame."""
    content = hashlib.sha256()
    for part in parts:
        content.update(part.tobytes())
    return content.hexdigest()
