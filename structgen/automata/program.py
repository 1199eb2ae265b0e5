"""Linked frames: one set of flat arrays that the kernels read.

S states, R table entries, K calls, L labels. State 0 is the end of the whole value: it has no
edges, and a thread in it means that everything is written. State 1 calls the root, state 2 is
where the root returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from structgen.automata.antichains import Antichain
from structgen.automata.assemble import LABELS, Assembly
from structgen.automata.calls import CALLEE as CALLED
from structgen.automata.calls import TO
from structgen.automata.frames import (
    CALL_FROM,
    CALL_TO,
    CHAIN,
    CLASSES,
    FLAG_BITS,
    FLAGS,
    FRAME,
    LABEL,
    LOOP,
    ROW,
    SCOPE,
    Frame,
    FrameBuilder,
    IntArray,
)
from structgen.errors import LimitError
from structgen.options import Limits

# Columns of `calls`.
CALLEE, RETURN, REG_A, REG_B, CALL_FLAGS, FLOOR = range(6)

ProgramArrays: TypeAlias = tuple[
    IntArray,
    IntArray,
    npt.NDArray[np.uint8],
    IntArray,
    npt.NDArray[np.uint8],
    npt.NDArray[np.int64],
]

MOST_STATES = 2 ** (31 - FLAG_BITS)
"""Entries of the table are int32."""

FINAL_STATE = 0
ROOT_STATE = 1
RETURN_STATE = 2
"""Does nothing but return."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkedFrame:
    """What is still asked of a frame when its states stand among those of a program."""

    n_states: int
    digest: str = ""
    """Content hash, for wide frames only."""
    max_tokens: int | None = None
    slack: int = 0
    like: IntArray | None = None
    """All as in `Frame`."""

    @classmethod
    def of(cls, frame: Frame) -> LinkedFrame:
        """What is kept of a frame."""
        return cls(len(frame.states), frame.digest, frame.max_tokens, frame.slack, frame.like)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An immutable linked automaton over bytes.

    The arrays are never written after linking. They are not flagged read-only because numba
    looks up the type of such arguments on its slow path (30 us a call instead of 2).
    """

    states: IntArray
    """int32[S, 8]; CLASSES is an offset into `classes`, LABEL states keep their depth in ROW."""
    table: IntArray
    """int32[R]: `target << FLAG_BITS | flags`, -1 where dead."""
    classes: npt.NDArray[np.uint8]
    """uint8[F * 256]: byte classes of every frame."""
    calls: IntArray
    """int32[K, 6]."""
    blob: npt.NDArray[np.uint8]
    """uint8[...]: all label texts, one after another."""
    starts: npt.NDArray[np.int64]
    """int64[L + 1]: where each label begins in `blob`."""
    frames: tuple[LinkedFrame, ...]
    bases: tuple[int, ...]
    """First state of each frame."""
    antichains: tuple[Antichain, ...] = ()
    has_scopes: bool = field(init=False)
    """Whether some parts of a value must differ from each other."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_scopes", bool((self.states[:, FLAGS] & SCOPE).any()))

    def label(self, number: int) -> bytes:
        """The text of a label."""
        return self.blob[self.starts[number] : self.starts[number + 1]].tobytes()

    def frame_of(self, state: int) -> tuple[LinkedFrame, int]:
        """The frame that a state belongs to, and its number there."""
        index = int(self.states[state, FRAME])
        return self.frames[index], state - self.bases[index]

    @property
    def arrays(self) -> ProgramArrays:
        """What the kernels take."""
        return self.states, self.table, self.classes, self.calls, self.blob, self.starts

    def can_read(self, state: int, a: int, b: int) -> bool:
        """Whether a thread in `state` has a byte edge, apart from calls and returns."""
        row = self.states[state]
        if not row[FLAGS] & LABEL:
            return bool(row[CHAIN] >= 0 or row[ROW] >= 0)
        # Of the labels in [a, b), only the first can end at this depth.
        return b - a > 1 or self.starts[a] + row[ROW] < self.starts[a + 1]

    @property
    def longest_label(self) -> int:
        """Bytes of the longest label; 0 without any."""
        return int(np.diff(self.starts).max(initial=0))

    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        likes = sum(frame.like.nbytes for frame in self.frames if frame.like is not None)
        return sum(part.nbytes for part in self.arrays) + likes


def link(assembly: Assembly, limits: Limits) -> Program:
    """Give every frame its place in common arrays and resolve the calls.

    Raises:
        LimitError: more states or label text than `limits` allows.
    """
    blob, starts = _label_pool(assembly.label_sets, limits)
    root = FrameBuilder("root")
    root.state()
    root.call(assembly.root)
    root.state(accept=True)
    by_key: dict[object, Frame] = {"root": root.frame(), **assembly.frames}
    if assembly.label_sets:
        by_key[LABELS] = _label_frame(int(np.diff(starts).max(initial=0)))
    frames = tuple(by_key.values())
    sizes = [len(frame.states) for frame in frames]
    bases = [0, *accumulate(sizes)]
    if bases[-1] > min(limits.max_states, MOST_STATES):
        raise LimitError(
            f"the schema needs {bases[-1]} automaton states, more than Limits.max_states="
            f"{limits.max_states} (at most {MOST_STATES}); split it, or raise the limit"
        )
    states, table, calls = _join(frames, dict(zip(by_key, bases, strict=False)))
    return Program(
        states=states,
        table=table,
        classes=np.concatenate([frame.classes for frame in frames]),
        calls=calls,
        blob=blob,
        starts=starts,
        frames=tuple(map(LinkedFrame.of, frames)),
        bases=tuple(bases[:-1]),
        antichains=assembly.antichains,
    )


def _join(
    frames: Sequence[Frame], base_of: dict[object, int]
) -> tuple[IntArray, IntArray, IntArray]:
    """All states, tables and calls, with numbers that mean the same among those of all frames."""
    states = np.concatenate([frame.states for frame in frames])
    table = np.concatenate([frame.table for frame in frames])
    calls = np.concatenate([frame.calls.rows for frame in frames])
    sizes = [
        (len(frame.states), len(frame.table), len(frame.calls.rows), len(frame.calls.callees))
        for frame in frames
    ]
    callees = [base_of[callee] for frame in frames for callee in frame.calls.callees]
    _move(states, table, calls, np.array(callees, np.int32), np.array(sizes, np.int64))
    return states, table, np.ascontiguousarray(calls[:, 1:])  # all but the state that calls


_MOVE = "(int32[:, ::1], int32[::1], int32[:, ::1], int32[::1], int64[:, ::1])"


@numba.njit(_MOVE, cache=True, nogil=True)
def _move(
    states: IntArray,
    table: IntArray,
    calls: IntArray,
    callees: IntArray,
    sizes: npt.NDArray[np.int64],
) -> None:
    """Move offsets and targets in place.

    Args:
        callees: the first state of every frame that a frame calls, frame by frame.
        sizes: int64[frames, 4], states, table entries, calls and callees.
    """
    base, row, call, callee = 0, 0, 0, 0
    for frame in range(len(sizes)):
        n_states, n_entries, n_calls, n_callees = sizes[frame]
        for state in range(base, base + n_states):
            if states[state, ROW] >= 0 and not states[state, FLAGS] & LABEL:
                states[state, ROW] += row
            if states[state, LOOP] >= 0:
                states[state, LOOP] += base
            states[state, CLASSES] = 256 * frame
            states[state, CALL_FROM] += call
            states[state, CALL_TO] += call
            states[state, FRAME] = frame
        for entry in range(row, row + n_entries):
            if table[entry] >= 0:
                table[entry] += base << FLAG_BITS
        for made in range(call, call + n_calls):
            calls[made, TO] += base
            calls[made, CALLED] = callees[callee + calls[made, CALLED]]
        base += n_states
        row += n_entries
        call += n_calls
        callee += n_callees


def _label_frame(longest: int) -> Frame:
    """One state a depth: the labels of a call are those in its registers' interval."""
    states = np.full((longest + 1, 8), -1, np.int32)
    states[:, CLASSES : FLAGS + 1] = 0
    states[:, ROW] = np.arange(longest + 1)
    states[:, FLAGS] = LABEL
    return Frame(LABELS, states, np.zeros(0, np.int32), np.zeros(256, np.uint8))


def _label_pool(
    label_sets: Sequence[tuple[bytes, ...]], limits: Limits
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    if not label_sets:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    texts = label_sets[0] if len(label_sets) == 1 else tuple(chain.from_iterable(label_sets))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    if starts[-1] > limits.max_label_bytes:
        raise LimitError(
            f"the labels take {starts[-1]} bytes, more than Limits.max_label_bytes="
            f"{limits.max_label_bytes}; shorten them, or raise the limit"
        )
    return np.frombuffer(bytearray().join(texts), np.uint8), starts
