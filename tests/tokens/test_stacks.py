"""Stacks made permanent by a kernel, against a slow twin that keeps them in a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import TypingError

from structgen.automata import kernels
from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import CHAIN, FLAGS, FRAME, LABEL, LOOP, ROW
from structgen.automata.kernels import (
    A_A,
    A_B,
    A_CANONICAL,
    A_PARENT,
    A_STATE,
    BOTTOM,
    EITHER,
    END_OF_VALUE,
    T_STACK,
    kernel,
)
from structgen.automata.program import FINAL_STATE, ROOT_STATE, Program
from structgen.automata.records import empty_record, reader, writer
from structgen.compiler import compile as compile_schema
from structgen.options import Limits, Options
from structgen.tokens.automaton import Automaton
from structgen.tokens.layout import ARENA_COLUMNS
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.space import Space, Thread, Threads
from structgen.tokens.states import StateTable
from tests import strategies
from tests.strategies import ValueMaker, examples, random_vocabulary, write
from tests.tokens.test_ambiguity import VOCABULARY, Expression, Left
from tests.walks import allowed, compile_nodes, random_tokens


class Twin:
    """What `Space.after` does, one row at a time."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        longest = automaton.vocabulary.max_token_bytes
        self.room_cap = longest + 1
        self.threads = np.zeros((1 << 14, 4), np.int32)
        self.arena = np.zeros((1 << 15, ARENA_COLUMNS), np.int32)
        self.arena[:2] = Space(automaton, 1).arena[:2]
        self.used = 2
        self.stacks: dict[Thread, int] = {}
        self.canonical = [END_OF_VALUE, BOTTOM]

    def start(self) -> tuple[Threads, Threads]:
        self.threads[0] = ROOT_STATE, 0, 0, END_OF_VALUE
        arrays, plan = self.automaton.arrays, self.automaton.plan
        high, used, _ = kernels.close(
            arrays, plan, self.arena, self.used, self.threads, 0, 0, 1
        )  # fmt: skip
        return self.settle(0, high, used)

    def after(self, threads: Threads, data: bytes) -> tuple[Threads, Threads]:
        self.threads[: len(threads)] = threads
        low, high, used = kernels.read_bytes(
            self.automaton.arrays, self.automaton.plan, self.arena, self.used, self.threads,
            len(threads), np.frombuffer(bytearray(data), np.uint8),
        )  # fmt: skip
        return self.settle(low, high, used)

    def settle(self, low: int, high: int, used: int) -> tuple[Threads, Threads]:
        rows: list[Thread] = self.threads[low:high].tolist()
        kept = [row for row in rows if can_read(self.automaton.program, *row[:3])]
        places = self.place([row[T_STACK] for row in kept], used)
        threads = sorted({(s, a, b, places.get(stack, stack)) for s, a, b, stack in kept})
        canonical = {(s, a, self.cut(s, b), self.canonical[stack]) for s, a, b, stack in threads}
        return tuple(threads), tuple(sorted(canonical))

    def place(self, stacks: list[int], used: int) -> dict[int, int]:
        first = self.used
        pushed: list[list[int]] = self.arena[first:used].tolist()
        needed: set[int] = set()
        pending = [stack for stack in stacks if stack >= first]
        while pending:
            stack = pending.pop()
            if stack not in needed:
                needed.add(stack)
                row = pushed[stack - first]
                below = (row[A_A], row[A_B]) if row[A_STATE] == EITHER else (row[A_PARENT],)
                pending.extend(each for each in below if each >= first)
        places: dict[int, int] = {}
        for stack in sorted(needed):
            state, a, b, parent, *rest = pushed[stack - first][:A_CANONICAL]
            if state == EITHER:
                places[stack] = self.either(places.get(a, a), places.get(b, b), rest)
            else:
                places[stack] = self.stack((state, a, b, places.get(parent, parent)), rest)
        return places

    def either(self, one: int, other: int, rest: list[int]) -> int:
        low, high = min(one, other), max(one, other)
        return one if one == other else self.stack((EITHER, low, high, 0), rest)

    def stack(self, key: Thread, rest: list[int]) -> int:
        if key in self.stacks:
            return self.stacks[key]
        state, a, b, parent = key
        number = self.stacks[key] = self.used
        self.arena[number] = (*key, *rest, 0)
        self.used += 1
        self.canonical.append(number)
        if state == EITHER:
            self.canonical[number] = self.either(self.canonical[a], self.canonical[b], rest)
        else:
            like = (state, a, self.cut(state, b), self.canonical[parent])
            self.canonical[number] = self.stack(like, rest)
        self.arena[number, A_CANONICAL] = self.canonical[number]
        return number

    def cut(self, state: int, room: int) -> int:
        program = self.automaton.program
        if room == NO_LIMIT or program.states[state, LOOP] < 0:
            return room
        return min(room, self.room_cap + program.frames[program.states[state, FRAME]].slack)


def can_read(program: Program, state: int, a: int, b: int) -> bool:
    row = program.states[state]
    if row[FLAGS] & LABEL:
        return any(program.label(label)[row[ROW] :] for label in range(a, b))
    return state == FINAL_STATE or row[CHAIN] >= 0 or row[ROW] >= 0


def compare(automaton: Automaton, token_ids: list[int]) -> Space:
    """Both along tokens."""
    space = StateTable(automaton, ProfileCache(), Limits()).space
    twin = Twin(automaton)
    threads, canonical = twin.start()
    assert space.canonical(threads) == canonical
    for token_id in token_ids:
        data = automaton.vocabulary.bytes_of(token_id) or b""
        expected = twin.after(threads, data) if data else ((), ())
        assert space.after(threads, token_id) == expected
        assert space.used == twin.used
        np.testing.assert_array_equal(space.arena[: space.used], twin.arena[: twin.used])
        threads, canonical = expected
        if not threads:
            break
        assert space.canonical(threads) == canonical
    return space


@examples(60)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_stacks_along_values(schema, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    automaton = compile_nodes(schema, vocabulary, Options()).automaton
    value = ValueMaker(schema, rng, require_all=True).data()
    tokens = random_tokens(write(value).encode(), vocabulary, rng)
    tokens.insert(rng.randrange(len(tokens) + 1), rng.randrange(vocabulary.width))
    compare(automaton, tokens)


@pytest.mark.parametrize("source", [Expression, Left])
def test_ambiguous_stacks(source):
    compiled = compile_schema(source, VOCABULARY)
    for seed in range(10):
        session, tokens, rng = compiled.session(), [], random.Random(seed)
        while len(tokens) < 40 and not session.complete:
            text = [t for t in allowed(session) if t not in VOCABULARY.eos_token_ids]
            tokens.append(rng.choice(text))
            session.advance(tokens[-1])
        compare(session._source.current().automaton, tokens)


@examples(30)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_threads_adopted_by_another_space(schema, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    automaton = compile_nodes(schema, vocabulary, Options()).automaton
    table = StateTable(automaton, ProfileCache(), Limits())
    state = table.start
    value = ValueMaker(schema, rng, require_all=True).data()
    for token_id in random_tokens(write(value).encode(), vocabulary, rng):
        other = StateTable(automaton, ProfileCache(), Limits())
        moved = other.adopt(state)
        assert table.adopt(moved) is state
        assert (moved.accepting, moved.complete) == (state.accepting, state.complete)
        after = table.advance(state, token_id)
        assert after is not None
        assert table.adopt(other.advance(moved, token_id)) is after
        state = after


def test_spaces_grow_and_keep_their_rows():
    compiled = compile_schema(Left, VOCABULARY)
    automaton = compiled.session()._source.current().automaton
    opening = automaton.vocabulary.encode("[[[[")
    space = compare(automaton, opening * 30)
    before = len(space.arena)
    kept = space.arena[: space.used].copy()
    space.grow()
    assert len(space.arena) == 2 * before
    np.testing.assert_array_equal(space.arena[: space.used], kept)


ONE = [(np.int32, 4)]
_write, _read = writer(0, ONE), reader(0, ONE)


@kernel
def written(record, arrays):
    return _write(record, arrays)


@kernel
def total(record):
    return _read(record)[0].sum()


def test_records_refuse_other_arrays():
    record, array = empty_record(1), np.arange(12, dtype=np.int32).reshape(3, 4)
    assert written(record, (array,))
    assert record.tolist() == [array.ctypes.data, 3]
    assert total(record) == 66
    assert not written(record, (np.zeros((3, 5), np.int32),))
    fixed = array.copy()
    fixed.flags.writeable = False
    for other in (array.astype(np.int64), np.zeros((3, 8), np.int32)[:, ::2], fixed):
        with pytest.raises(TypingError):
            written(record, (other,))
