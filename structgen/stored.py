"""Compiled automata on disk: the arrays of a program and of its distances."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from structgen.automata.antichains import Antichain
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
    IntArray,
)
from structgen.automata.program import (
    CALLEE,
    REG_A,
    REG_B,
    RETURN,
    LinkedFrame,
    Program,
)
from structgen.cache import has_entry, load_arrays, save_arrays
from structgen.options import Options
from structgen.stamp import key as stamped
from structgen.tokens.automaton import Automaton, restored
from structgen.tokens.vocabulary import Vocabulary

logger = logging.getLogger("structgen")

KIND = "schema"
Arrays = Mapping[str, NDArray[Any]]

_INT, _BYTE = np.dtype(np.int32), np.dtype(np.uint8)
_TYPES = {
    "states": (_INT, 2), "table": (_INT, 1), "classes": (_BYTE, 1), "calls": (_INT, 2),
    "blob": (_BYTE, 1), "starts": (np.dtype(np.int64), 1), "like": (_INT, 1), "cost": (_INT, 2),
    "label_cost": (_INT, 1), "room": (_INT, 1),
}  # fmt: skip
"""Type and number of axes of every array."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What one entry holds."""

    automaton: Automaton
    fingerprint: str
    title: str


def entry_name(content: bytes, vocabulary: Vocabulary, options: Options) -> str:
    """The key of what is compiled from a schema of this content."""
    return stamped("schema", content, repr(options), vocabulary.fingerprint)


def is_stored(name: str) -> bool:
    """Whether there is an entry, sound or not."""
    return has_entry(KIND, name)


def save(name: str, stored: Stored) -> bool:
    """Keep an automaton; returns whether that worked."""
    automaton, program = stored.automaton, stored.automaton.program
    cost, label_cost, room = automaton.plan
    likes = [frame.like for frame in program.frames if frame.like is not None]
    arrays = {
        "states": program.states, "table": program.table, "classes": program.classes,
        "calls": program.calls, "blob": program.blob, "starts": program.starts,
        "like": np.concatenate([np.zeros(0, np.int32), *likes]),
        "cost": cost, "label_cost": label_cost, "room": room,
    }  # fmt: skip
    header = {
        "fingerprint": stored.fingerprint,
        "title": stored.title,
        "min_tokens": automaton.min_tokens,
        "antichains": [(each.first, each.end, each.separator) for each in program.antichains],
        "frames": [
            (frame.n_states, frame.digest, frame.max_tokens, frame.slack, frame.like is not None)
            for frame in program.frames
        ],
    }
    return save_arrays(KIND, name, arrays, header)


def load(name: str, vocabulary: Vocabulary) -> Stored | None:
    """What was kept under a name; None where nothing sound is there."""
    found = load_arrays(KIND, name, writable=True)
    if found is None:
        return None
    arrays, header = found
    try:
        for part, (kind, n_axes) in _TYPES.items():
            if arrays[part].dtype != kind or arrays[part].ndim != n_axes:
                raise ValueError(f"{part} is {arrays[part].dtype} {arrays[part].shape}")
        program = _program(arrays, header)
        _check(program, arrays)
        plan = arrays["cost"], arrays["label_cost"], arrays["room"]
        automaton = restored(program, plan, vocabulary, int(header["min_tokens"]))
        return Stored(automaton, header["fingerprint"], header["title"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        logger.warning("ignoring the cached schema %s: %r", name, error)
        return None


def _program(arrays: Arrays, header: Mapping[str, Any]) -> Program:
    frames: list[LinkedFrame] = []
    bases: list[int] = []
    at = liked = 0
    for n_states, digest, max_tokens, slack, has_like in header["frames"]:
        like = None
        if has_like:
            like = arrays["like"][liked : liked + n_states].copy()
            liked += n_states
        frames.append(LinkedFrame(n_states, digest, max_tokens, slack, like))
        bases.append(at)
        at += n_states
    parts = {name: arrays[name] for name in ("states", "table", "classes", "calls")}
    labels = {name: arrays[name] for name in ("blob", "starts")}
    antichains = tuple(Antichain(*each) for each in header["antichains"])
    return Program(
        **cast(Any, parts | labels),
        frames=tuple(frames),
        bases=tuple(bases),
        antichains=antichains,
    )


def _check(program: Program, arrays: Arrays) -> None:
    """Refuse numbers that would let a kernel read outside of an array, whoever wrote them."""
    states, table, classes, calls, blob, starts = program.arrays
    n_states, n_frames, n_labels = len(states), len(program.frames), len(starts) - 1
    _demand(n_states > 2 and states.shape[1] == 8 and calls.shape[1] == 6 and n_labels >= 0)
    _demand(sum(frame.n_states for frame in program.frames) == n_states)
    _demand(arrays["cost"].shape == (n_states, 4) and arrays["label_cost"].shape == blob.shape)
    _demand(len(arrays["room"]) == 2 and len(classes) == 256 * n_frames)
    low, high = states.min(axis=0), states.max(axis=0)
    _demand(low[CHAIN] >= -1 and high[CHAIN] < 256 and states[-1, CHAIN] < 0 and low[ROW] >= -1)
    _demand(low[CLASSES] >= 0 and high[CLASSES] <= len(classes) - 256)
    _demand(low[CALL_FROM] >= 0 and low[CALL_TO] >= 0)
    _demand(high[CALL_FROM] <= len(calls) and high[CALL_TO] <= len(calls))
    _demand(low[LOOP] >= -1 and high[LOOP] < n_states)
    _demand(low[FRAME] >= 0 and high[FRAME] < n_frames)
    if len(table):
        _demand(table.min() >= -1 and int(table.max()) >> FLAG_BITS < n_states)
        # A row is as wide as its frame has classes.
        widest = classes.reshape(-1, 256).max(axis=1).astype(np.int64)
        rows = states[(states[:, ROW] >= 0) & (states[:, FLAGS] & LABEL == 0)]
        _demand(not len(rows) or (rows[:, ROW] + widest[rows[:, FRAME]]).max() < len(table))
    if len(calls):
        low, high = calls.min(axis=0), calls.max(axis=0)
        _demand(low[CALLEE] >= 0 and low[RETURN] >= 0)
        _demand(high[CALLEE] < n_states and high[RETURN] < n_states)
    _demand(starts[0] == 0 and starts[-1] == len(blob))
    if n_labels:
        _check_labels(states, calls, starts)
    for chain in program.antichains:
        _demand(0 <= chain.first <= chain.end <= n_labels and bool(chain.separator))
    for frame in program.frames:
        like = frame.like
        _demand(like is None or (like.min() >= 0 and like.max() < frame.n_states))


def _check_labels(states: IntArray, calls: IntArray, starts: NDArray[np.int64]) -> None:
    """Every call of the labels means some that exist; they are as deep as the frame has states."""
    lengths = np.diff(starts)
    is_label = states[:, FLAGS] & LABEL != 0
    _demand(lengths.min() >= 0 and lengths.max() < is_label.sum())
    registers = calls[is_label[calls[:, CALLEE]], REG_A : REG_B + 1]
    _demand(not len(registers) or (registers.min() >= 0 and registers.max() < len(starts)))


def _demand(sound: Any) -> None:
    if not sound:
        raise ValueError("numbers out of their ranges")
