"""The frames of strings with patterns and lengths, against the automata they are made of."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import ACCEPT, FLAGS, Frame
from structgen.automata.patterns import pattern_frame
from structgen.regex import matches
from structgen.schema.nodes import Pattern, String
from structgen.schema.strings import content_dfa, has_string, string_dfa
from tests.automata.frames import accepts, step
from tests.strategies import examples

PATTERNS = (
    "^[a-c]*$", "^a+b$", "^(ab)*$", "^(?:\\S+\\s+){0,3}\\S+$", "^é{2,}$", "b$", "^a", "ab|ba",
    "^(a|bcb|aaaa)*$", "^(😀|aaé)+b$", "^a{2,4}$", '^"+\\\\$', "^$|^b{3}", "^[^a]*a[^a]*$", "\n",
)  # fmt: skip
TEXTS = st.text(st.sampled_from('ab c"\\\né😀'), max_size=7)
NODES = st.builds(
    lambda patterns, low, more: String(
        low, None if more is None else low + more, tuple(map(Pattern, patterns))
    ),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2),
    st.integers(0, 4),
    st.none() | st.integers(0, 5),
)


def in_time(node: String, text: str) -> bool:
    longest = len(text) if node.max_length is None else node.max_length
    dfa = content_dfa(node.patterns, node.excluded)
    return node.min_length <= len(text) <= longest and matches(dfa, text)


@examples(250)
@given(NODES, TEXTS)
def test_a_frame_reads_the_texts_that_fit(node, text):
    if has_string(node):
        frame, need, room = pattern_frame(node)
        spelled = json.dumps(text, ensure_ascii=False).encode()
        assert accepts(frame, spelled, need, room) == in_time(node, text)
    assert matches(string_dfa(node), text) == in_time(node, text)


@examples(200)
@given(NODES)
def test_some_text_fits_exactly_if_the_automaton_with_lengths_says_so(node):
    assert has_string(node) == bool(string_dfa(node).accepting)


def can_finish(frame: Frame, state: int, need: int, room: int) -> bool:
    """Whether some bytes lead from here to the frame's end."""
    seen = {(state, need, room)}
    todo = [(state, need, room)]
    while todo:
        state, need, room = todo.pop()
        if frame.states[state, FLAGS] & ACCEPT:
            return True
        for byte in range(256):
            after = step(frame, state, byte, need, room)
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)
    return False


@examples(50)
@given(NODES, TEXTS)
def test_whatever_was_read_can_be_finished(node, text):
    if not has_string(node):
        return
    frame, need, room = pattern_frame(node)
    at = (0, need, room)
    for byte in json.dumps(text, ensure_ascii=False).encode():
        after = step(frame, at[0], byte, *at[1:])
        if after is None:
            break
        at = after
        assert can_finish(frame, *at), (node, text)


@pytest.mark.parametrize("longest", [300, 32_767, 10**9])
def test_a_long_bound_takes_no_more_states_than_a_short_one(longest):
    words = Pattern("^(?:\\S+\\s+){0,29}\\S+$")
    short, _, _ = pattern_frame(String(0, 100, (words,)))
    long, _, room = pattern_frame(String(0, longest, (words,)))
    assert long is short
    assert room == min(longest - 1, NO_LIMIT)
