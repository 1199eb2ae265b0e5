"""The record of a table: for kernels, an automaton, a vocabulary and the table's scratch space.

The arrays are those of `structgen.automata.kernels` and `structgen.tokens.walks`, and

    caps: int32[F], for each frame the room beyond which masks are the same.
    slots: int32[power of 2], a hash table of the arena's permanent rows, -1 where free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structgen.automata.frames import IntArray
from structgen.automata.kernels import kernel
from structgen.automata.records import Record, empty_record, reader, writer
from structgen.tokens.automaton import Automaton

ARENA_COLUMNS = 8

_PROGRAM = (
    (np.int32, 8), (np.int32, 0), (np.uint8, 0), (np.int32, 6), (np.uint8, 0), (np.int64, 0),
)  # fmt: skip
_PLAN = ((np.int32, 4), (np.int32, 0), (np.int32, 0))
_VOCABULARY = (
    (np.int32, 4), (np.int32, 0), (np.uint8, 0), (np.int32, 0), (np.uint8, 0), (np.int64, 0),
)  # fmt: skip
_SPACE = (
    (np.int32, ARENA_COLUMNS), (np.int32, 4), (np.int32, 0), (np.int32, 0), (np.int32, 5),
    (np.int32, 0),
)  # fmt: skip
_FIRST_OF_PLAN = len(_PROGRAM)
_FIRST_OF_VOCABULARY = _FIRST_OF_PLAN + len(_PLAN)
_FIRST_OF_SPACE = _FIRST_OF_VOCABULARY + len(_VOCABULARY)

program_of = reader(0, _PROGRAM)
"""(states, table, classes, calls, blob, starts)"""
plan_of = reader(_FIRST_OF_PLAN, _PLAN)
"""(cost, label_cost, limits)"""
vocabulary_of = reader(_FIRST_OF_VOCABULARY, _VOCABULARY)
"""(trie, same_bytes, repeated, first, blob, starts)"""
space_of = reader(_FIRST_OF_SPACE, _SPACE)
"""(arena, threads, slots, caps, levels, listed)"""


_put_program, _put_plan = writer(0, _PROGRAM), writer(_FIRST_OF_PLAN, _PLAN)
_put_vocabulary = writer(_FIRST_OF_VOCABULARY, _VOCABULARY)
_put_space = writer(_FIRST_OF_SPACE, _SPACE)


def new_record(automaton: Automaton) -> Record:
    """A record with the arrays of an automaton and its vocabulary, but without scratch space."""
    lookup = automaton.lookup
    words = (
        lookup.trie, lookup.same_bytes, lookup.repeated, lookup.first, lookup.blob, lookup.starts,
    )  # fmt: skip
    record = empty_record(_FIRST_OF_SPACE + len(_SPACE))
    _put_bound(record, automaton.arrays, automaton.plan, words)
    return record


@kernel
def _put_bound(record: Record, program: Any, plan: Any, words: Any) -> None:
    fits = _put_program(record, program) and _put_plan(record, plan)
    if not (fits and _put_vocabulary(record, words)):
        raise ValueError("arrays of an automaton have other columns than the kernels read")


@kernel
def put_space(record: Record, arrays: tuple[IntArray, ...]) -> None:
    """Write the arrays of the scratch space to a record, in the order of `space_of`."""
    if not _put_space(record, arrays):
        raise ValueError("arrays of the scratch space have other columns than the kernels read")
