"""Objects laid out on arrays are those that are built piece by piece."""

from __future__ import annotations

import json
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata.frames import (
    ACCEPT,
    CALL_FROM,
    CALL_TO,
    CALLS,
    CHAIN,
    FLAG_BITS,
    FLAGS,
    FRAME,
    LOOP,
    ROW,
    Frame,
)
from structgen.automata.structures import (
    Count,
    Extra,
    ObjectBuilder,
    Punctuation,
    Slot,
    object_frame,
)
from structgen.compiler import compile  # noqa: A004
from structgen.testing import byte_vocabulary

BYTES = byte_vocabulary()
NAMES = st.text('ab\u00e9"', max_size=3)
TARGETS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.integers(0, 3), st.integers(4, 9)), max_size=2
)
SLOTS = st.lists(
    st.builds(Slot, NAMES, TARGETS, st.booleans()), max_size=9, unique_by=lambda slot: slot.name
)
EXTRAS = st.lists(st.builds(Extra, TARGETS, TARGETS), max_size=2)


def moves(frame: Frame, state: int) -> dict[int, int]:
    """Where each byte leads."""
    chain, row = (int(frame.states[state, column]) for column in (CHAIN, ROW))
    if chain >= 0:
        return {chain: state + 1}
    entries = frame.table[row + frame.classes.astype(int)] if row >= 0 else []
    return {byte: int(entry) >> FLAG_BITS for byte, entry in enumerate(entries) if entry >= 0}


def assert_same(one: Frame, other: Frame) -> None:
    """Walk both at once; every pair of states must do the same."""
    pairs = {(0, 0)}
    todo = deque(pairs)
    while todo:
        a, b = todo.popleft()
        behind: list[tuple[int, int]] = []
        mine, theirs = moves(one, a), moves(other, b)
        assert mine.keys() == theirs.keys()
        behind += [(mine[byte], theirs[byte]) for byte in mine]
        assert one.states[a, FLAGS] == other.states[b, FLAGS]
        assert (one.states[a, CHAIN] < 0) == (other.states[b, CHAIN] < 0)
        calls = [
            list(frame.calls)[frame.states[state, CALL_FROM] : frame.states[state, CALL_TO]]
            for frame, state in ((one, a), (other, b))
        ]
        for (at, call), (place, twin) in zip(*calls, strict=True):
            assert (at, place) == (a, b)
            assert (call.callee, call.a, call.b, call.flags, call.floor) == (
                twin.callee, twin.a, twin.b, twin.flags, twin.floor
            )  # fmt: skip
            behind.append((call.to, twin.to))
        fresh = set(behind) - pairs
        pairs |= fresh
        todo.extend(fresh)
    assert len({a for a, _ in pairs}) == len(pairs) == len({b for _, b in pairs})
    assert len(one.states) == len(other.states)


@given(SLOTS, EXTRAS, st.booleans(), st.sampled_from(["spaced", "compact"]))
@settings(max_examples=300)
def test_laid_out_is_built(slots, extras, is_begun, layout):
    punctuation = Punctuation.of(layout, 0)
    begun = int(is_begun and bool(slots))
    laid = object_frame(slots, extras, Count(), punctuation, begun=begun)
    built = ObjectBuilder(slots, extras, Count(), punctuation).build(begun)
    assert_same(laid, built)
    assert (laid.states[:, [LOOP, FRAME]] == -1).all()
    assert sorted(state for state, _ in laid.calls) == [state for state, _ in laid.calls]
    assert ((laid.states[:, FLAGS] & CALLS > 0) == (laid.states[:, CALL_TO] > 0)).all()
    assert (laid.states[:, FLAGS] & ACCEPT > 0).sum() == 1


def test_many_keys_that_begin_alike():
    slots = [Slot("x" * 40 + str(n), [("value", 0, 1)], required=n == 150) for n in range(200)]
    punctuation = Punctuation.of("spaced", 0)
    laid = object_frame(slots, [], Count(), punctuation)
    assert_same(laid, ObjectBuilder(slots, [], Count(), punctuation).build())


@pytest.mark.parametrize("pattern", [".*", "^[a-z]*", ""])
@pytest.mark.parametrize("key", ["a", "ab", "b", "\u00e9", '"', "\x01", "\U0001f600"])
def test_keys_that_fit_a_pattern_of_every_text_are_all_but_the_declared(pattern, key):
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "patternProperties": {pattern: {"type": "integer"}},
    }
    session = compile(schema, BYTES).session()
    text = json.dumps({"a": 1, key: 2}, ensure_ascii=False) if key != "a" else '{"a": 1, "a": 2}'
    for at, byte in enumerate(text.encode()):
        if not session.allows(byte):
            assert (key, at) == ("a", text.rindex("a") + 1)
            return
        session.advance(byte)
    assert (session.accepting, key == "a") == (True, False)
