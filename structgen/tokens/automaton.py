"""A program bound to a vocabulary: what the kernels need, and how far every state is from done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from structgen.automata import kernels
from structgen.automata.frames import CHAIN, CLASSES, FLAGS, LABEL, ROW, WIDE, IntArray
from structgen.automata.kernels import Longs, Plan
from structgen.automata.program import Program, ProgramArrays
from structgen.errors import LimitError, VocabularyError
from structgen.options import DEEPEST, Limits
from structgen.tokens import distances
from structgen.tokens.label_costs import FEW_BYTES, NO_SLOTS, hash_children, label_costs
from structgen.tokens.trie import TOKEN
from structgen.tokens.vocabulary import Vocabulary

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """What the kernels read of a vocabulary."""

    trie: IntArray
    same_bytes: IntArray
    repeated: npt.NDArray[np.uint8]
    """uint8[N]: whether the token of a row of the trie has others with the same bytes."""
    first: IntArray
    """int32[256]: the trie root's child over each byte, or -1."""
    second: IntArray
    """int32[256, 256]: its grandchild over each pair of bytes, or -1."""
    blob: npt.NDArray[np.uint8]
    """uint8[...]: the bytes of all tokens, one after another."""
    starts: Longs
    """int64[W + 1]: where each token begins in `blob`."""
    chars_per_token: int


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """Immutable; shared by every session of one schema and vocabulary."""

    program: Program
    arrays: ProgramArrays
    plan: Plan
    vocabulary: Vocabulary
    lookup: Lookup
    min_tokens: int
    """Tokens that suffice for the shortest value."""

    def is_wide(self, state: int) -> bool:
        """Whether the state's frame keeps masks of its inside."""
        return bool(self.program.states[state, FLAGS] & WIDE)

    def step(self, state: int, a: int, b: int, byte: int) -> tuple[int, int, int]:
        """(state, a, b) after one byte; state is -1 where the byte is not legal."""
        return kernels.step(self.arrays, state, a, b, byte)

    def unlike(self, state: int, other: int) -> npt.NDArray[np.uint8]:
        """The bytes by which two states with rows of one frame lead to different places."""
        program = self.program
        classes = program.classes[program.states[state, CLASSES] :][:256].astype(np.int32)
        here, there = (program.table[program.states[s, ROW] + classes] for s in (state, other))
        return np.flatnonzero(here != there).astype(np.uint8)


def bind(program: Program, vocabulary: Vocabulary, limits: Limits) -> Automaton:
    """Measure every state's distance with this vocabulary.

    Raises:
        VocabularyError: the vocabulary cannot write any value of the schema.
        LimitError: even the shortest value is nested too deeply.
    """
    arrays = program.arrays
    lookup = _lookup(vocabulary)
    trie, first, second = lookup.trie, lookup.first, lookup.second
    label_cost = _label_cost(program, vocabulary, lookup)
    room = np.array([limits.max_depth, lookup.chars_per_token], np.int32)
    bases = np.array([*program.bases, len(program.states)], np.int64)
    cost = np.full((len(program.states), 4), kernels.UNREACHABLE, np.int32)
    cost[:, 2:] = 0
    scratch = np.empty((2, 256), np.int32), np.empty((len(cost), 4), np.int32)
    distances.distances(arrays, (cost, label_cost, room), (trie, first, second), scratch, bases)
    tokens, height = int(cost[1, 0]), int(cost[1, 2])
    if tokens >= kernels.UNREACHABLE and not vocabulary.missing_bytes:
        raise LimitError(
            f"$: the shortest value takes more than {kernels.UNREACHABLE} tokens; lower the counts "
            "that arrays, objects and strings must reach"
        )
    if tokens >= kernels.UNREACHABLE:
        missing = [byte for byte in vocabulary.missing_bytes if _occurs(program, byte)]
        listed = ", ".join(f"0x{byte:02X}" for byte in missing[:16])
        raise VocabularyError(
            "the vocabulary cannot write any value of the schema; it has no token for the bytes "
            f"{listed or 'of its strings'}; use a byte-level tokenizer or one with "
            "byte fallback",
            missing_bytes=missing,
        )
    if height > DEEPEST:
        raise LimitError(
            f"the shortest value is nested {height} levels deep, more than the {DEEPEST} that "
            "JSON parsers read safely; flatten the schema"
        )
    room[0] = max(limits.max_depth, height)
    if program.has_scopes:
        room[0] = max(min(room[0], kernels.MOST_SCOPES), height)
    return Automaton(program, arrays, (cost, label_cost, room), vocabulary, lookup, tokens)


def restored(program: Program, plan: Plan, vocabulary: Vocabulary, min_tokens: int) -> Automaton:
    """What `bind` returned once for the same program and vocabulary."""
    return Automaton(program, program.arrays, plan, vocabulary, _lookup(vocabulary), min_tokens)


def _label_cost(program: Program, vocabulary: Vocabulary, lookup: Lookup) -> IntArray:
    is_long = len(program.blob) > FEW_BYTES
    slots = _child_slots(vocabulary) if is_long else NO_SLOTS
    return label_costs(program, (lookup.trie, lookup.first, lookup.second), slots)


def _occurs(program: Program, byte: int) -> bool:
    """Whether the schema's structure, numbers or labels contain `byte`."""
    states = program.states
    if np.any(states[:, CHAIN] == byte) or np.any(program.blob == byte):
        return True
    rows = states[(states[:, ROW] >= 0) & (states[:, FLAGS] & (LABEL | WIDE) == 0)]
    entries = program.table[rows[:, ROW] + program.classes[rows[:, CLASSES] + byte]]
    return bool(np.any(entries >= 0))


@lru_cache(maxsize=8)
def _lookup(vocabulary: Vocabulary) -> Lookup:
    trie = _kernel_view(vocabulary.trie.nodes)
    first = _first_children(trie)
    second = np.full((256, 256), -1, np.int32)
    distances.second_children(trie, first, second)
    same_bytes = _kernel_view(vocabulary.trie.same_bytes)
    tokens = trie[:, TOKEN]
    repeated = ((tokens >= 0) & (same_bytes[tokens] >= 0)).astype(np.uint8)
    blob, starts = _kernel_view(vocabulary.blob), _kernel_view(vocabulary.starts)
    chars = _chars_per_token(vocabulary)
    return Lookup(trie, same_bytes, repeated, first, second, blob, starts, chars)


@lru_cache(maxsize=2)
def _child_slots(vocabulary: Vocabulary) -> Longs:
    """The hash table of `hash_children`."""
    trie = _lookup(vocabulary).trie
    slots = np.full(1 << int(1.5 * len(trie)).bit_length(), -1, np.int64)
    hash_children(trie, slots)
    return slots


def _kernel_view(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The same memory without the read-only flag, or a copy where that is impossible.

    numba looks up the type of read-only arguments on its slow path, 5 us for each array and call.
    No kernel writes to a vocabulary's arrays.
    """
    if array.flags.writeable:
        return array
    if not array.flags.owndata:
        return array.copy()
    array.setflags(write=True)
    view = array.view()
    array.setflags(write=False)
    return view


def _first_children(trie: IntArray) -> IntArray:
    """int32[256]: the root's child over each byte, -1 where there is none."""
    first = np.full(256, -1, np.int32)
    child = 1
    while child < len(trie):
        first[trie[child, 0]] = child
        child = int(trie[child, 2])
    return first


def _chars_per_token(vocabulary: Vocabulary) -> int:
    """The largest n so that for each length up to n a token of that many ASCII letters exists."""
    lengths = vocabulary_word_lengths(vocabulary)
    n = 0
    while n + 1 in lengths:
        n += 1
    return max(n, 1)


def vocabulary_word_lengths(vocabulary: Vocabulary) -> set[int]:
    """Lengths of the tokens that are ASCII letters and digits only."""
    blob, starts = vocabulary.blob, vocabulary.starts
    upper = blob & 0xDF
    plain = ((upper >= 0x41) & (upper <= 0x5A)) | ((blob >= 0x30) & (blob <= 0x39))
    strange = np.concatenate([[0], np.cumsum(~plain)])
    clean = (strange[starts[1:]] - strange[starts[:-1]]) == 0
    return set(np.unique(np.diff(starts)[clean]).tolist())
