"""Byte automata against the encoders of Python."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import regex

PATTERNS = ["", "^[^\"]*$", "^.{0,3}$", "é", "^[à-ÿ]+$", "^[\\u0000-\\u001f]*$", "^[\"\\\\]*$",
            "^\\p{L}*$", "^[\\u07f0-\\u0900\\uffff-\\u{10010}]*$", "^(a\\n|b\\u0001|\\u0011)*$",
            "^[^\\u{fff}-\\u{20000}]*$", "a|\\u{1F600}"]  # fmt: skip
AUTOMATA = [regex.search(pattern, "ecma") for pattern in PATTERNS]


def reads(automaton: regex.ByteDfa, data: bytes) -> bool:
    state = 0
    for byte in data:
        targets = [to for first, last, to, _ in automaton.edges[state] if first <= byte <= last]
        if not targets:
            return False
        (state,) = targets
    return automaton.accepting[state]


def json_inside(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()


TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from('aé"\\\b\t\n\f\r\0\x01\x0b\x11\x1f\x7f/😀\u07ff\u0800\ud7ff\ue000\uffff'),
    ),
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(AUTOMATA), TEXTS)
def test_a_text_is_read_in_its_bytes_exactly_if_it_is_accepted(dfa: regex.Dfa, text: str):
    expected = regex.matches(dfa, text)
    assert reads(regex.to_bytes(dfa, "json"), json_inside(text)) == expected
    assert reads(regex.to_bytes(dfa, "raw"), text.encode()) == expected


@pytest.mark.parametrize("encoding", ["json", "raw"])
@pytest.mark.parametrize("dfa", AUTOMATA, ids=PATTERNS)
def test_everything_that_is_read_is_the_one_way_to_write_an_accepted_text(
    dfa: regex.Dfa, encoding: regex.Encoding
):
    automaton = regex.to_bytes(dfa, encoding)
    for data in samples(automaton):
        text = json.loads(b'"' + data + b'"') if encoding == "json" else data.decode()
        assert regex.matches(dfa, text)
        assert (json_inside(text) if encoding == "json" else text.encode()) == data


def samples(automaton: regex.ByteDfa) -> list[bytes]:
    """Accepted texts that take each edge at its first and last byte."""
    ways = {0: b""}
    order = [0]
    for state in order:
        for first, _, to, _ in automaton.edges[state]:
            if to not in ways:
                ways[to] = ways[state] + bytes([first])
                order.append(to)
    rest = {state: b"" for state, accepts in enumerate(automaton.accepting) if accepts}
    changed = True
    while changed:
        changed = False
        for state, edges in enumerate(automaton.edges):
            for first, _, to, _ in edges:
                if state not in rest and to in rest:
                    rest[state] = bytes([first]) + rest[to]
                    changed = True
    return [
        ways[state] + bytes([byte]) + rest[to]
        for state in order
        for first, last, to, _ in automaton.edges[state]
        for byte in (first, last)
    ]


@pytest.mark.parametrize("dfa", AUTOMATA, ids=PATTERNS)
def test_states_between_characters_keep_their_numbers(dfa: regex.Dfa):
    automaton = regex.to_bytes(dfa, "json")
    assert automaton.characters == len(dfa)
    assert {n for n, accepts in enumerate(automaton.accepting) if accepts} == dfa.accepting
    for state, edges in enumerate(automaton.edges):
        assert all(begins == (state < len(dfa)) for _, _, _, begins in edges)
        for (_, last, _, _), (first, _, _, _) in itertools.pairwise(edges):
            assert last < first


def test_states_inside_of_characters_are_shared():
    assert len(regex.to_bytes(regex.search("", "ecma"), "raw").edges) <= 8
    assert len(regex.to_bytes(regex.search("^.{0,100}$", "ecma"), "json").edges) < 1700
    with pytest.raises(regex.PatternTooLarge):
        regex.to_bytes(regex.search(r"^\p{L}{100}$", "ecma"), "raw", limit=1000)
