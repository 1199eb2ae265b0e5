"""The record of a table: for kernels, an automaton, a vocabulary and the table's scratch space.

The arrays are those of `structgen.automata.kernels` and `structgen.tokens.walks`, and

    caps: int32[F], for each frame the room beyond which masks are the same.
    slots: int32[power of 2], a hash table of the arena's permanent rows, -1 where free.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structgen.automata.frames import IntArray
from structgen.automata.records import Record, empty_record, put, reader
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


def new_record(automaton: Automaton) -> Record:
    """A record with the arrays of an automaton and its vocabulary, but without scratch space."""
    lookup = automaton.lookup
    words = (
        lookup.trie, lookup.same_bytes, lookup.repeated, lookup.first, lookup.blob, lookup.starts,
    )  # fmt: skip
    record = empty_record(_FIRST_OF_SPACE + len(_SPACE))
    put(record, 0, _PROGRAM, automaton.arrays)
    put(record, _FIRST_OF_PLAN, _PLAN, automaton.plan)
    put(record, _FIRST_OF_VOCABULARY, _VOCABULARY, words)
    return record


def put_space(record: Record, arrays: Sequence[IntArray]) -> None:
    """Write the arrays of the scratch space to a record, in the order of `space_of`."""
    put(record, _FIRST_OF_SPACE, _SPACE, arrays)
