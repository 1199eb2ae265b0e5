"""The costs of labels, in parts or not, are the shortest paths through the trie of each set."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata.assemble import assemble
from structgen.automata.frames import FLAGS, LABEL
from structgen.automata.program import CALLEE, REG_A, REG_B, Program, link
from structgen.options import Limits, Options
from structgen.schema import nodes
from structgen.schema.nodes import Schema
from structgen.testing import small_vocabulary
from structgen.tokens.automaton import _child_slots, _lookup
from structgen.tokens.label_costs import NO_SLOTS, label_costs

WORDS = [b"ab", b"abc", b"bc", b'"a', b'b"', b"aab", b"ca", b"cabab", b"ab ab"]
VOCABULARY = small_vocabulary(WORDS)
TOKENS = [*WORDS, *(bytes([byte]) for byte in range(256))]


def program(sets: list[set[str]]) -> Program:
    parts = [nodes.labels(nodes.json_texts(sorted(texts))) for texts in sets]
    kept = [*{id(part): part for part in parts}.values()]
    items = nodes.array(nodes.Never("no more"), len(kept), len(kept), kept)
    return link(assemble(Schema(items, {}), Options()), Limits())


def measured(of: Program, n_parts: int, *, hashed: bool) -> np.ndarray:
    lookup = _lookup(VOCABULARY)
    slots = _child_slots(VOCABULARY) if hashed else NO_SLOTS
    return label_costs(of, (lookup.trie, lookup.first, lookup.second), slots, n_parts)


def expected(of: Program) -> dict[int, int]:
    """What stands at each place that is read: a beginning, at the first label of a set with it."""
    found: dict[int, int] = {}
    calls = of.calls[of.states[of.calls[:, CALLEE], FLAGS] & LABEL != 0]
    for first, end in {(int(call[REG_A]), int(call[REG_B])) for call in calls}:
        texts = [of.label(number) for number in range(first, end)]

        @cache
        def cost(begun: bytes, texts: tuple[bytes, ...] = tuple(texts)) -> int:
            if begun in texts:
                return 0
            longer = [begun + token for token in TOKENS]
            return 1 + min(
                (cost(text) for text in longer if any(one.startswith(text) for one in texts)),
                default=10**6,
            )

        seen: set[bytes] = set()
        for number, text in enumerate(texts, first):
            for depth in range(len(text)):
                if text[:depth] not in seen:
                    seen.add(text[:depth])
                    found[int(of.starts[number]) + depth] = cost(text[:depth])
    return found


TEXTS = st.sets(st.text("abc ", max_size=7), min_size=1, max_size=8)


@given(st.lists(TEXTS, min_size=1, max_size=2), st.integers(1, 5), st.booleans())
@settings(max_examples=300, deadline=None)
def test_parts_are_the_shortest_paths(sets, n_parts, hashed):
    of = program(sets)
    costs = measured(of, n_parts, hashed=hashed)
    for at, cost in expected(of).items():
        assert costs[at] == cost


@pytest.mark.parametrize("n_parts", [2, 3, 7])
def test_many_labels_in_parts(n_parts):
    of = program([{f"a{n:b}".replace("1", "b").replace("0", "c") for n in range(3000)}])
    whole, parts = (measured(of, n, hashed=True) for n in (1, n_parts))
    read = [
        int(of.starts[label]) + depth
        for label in range(3000)
        for depth in range(len(of.label(label)))
        if not label or of.label(label)[:depth] != of.label(label - 1)[:depth]
    ]
    assert len(read) > 3000
    assert (whole[read] == parts[read]).all()
    assert whole[0] == parts[0]


def test_parts_with_long_beginnings_are_joined_in_one_pass():
    long = "abca" * 30_000
    of = program([{long[:60_000] + "A", long + "B", long + "C" + "z" * 350_000}])
    measured(program([{"aa", "ab"}]), 2, hashed=True)  # compiles the kernels
    started = time.process_time()
    parts = measured(of, 2, hashed=True)
    assert time.process_time() - started < 3
    assert parts[0] == measured(of, 1, hashed=True)[0]
