"""Lists of labels without a label beside one above it, against an enumeration of all lists."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata.antichains import without_the_widest
from structgen.schema.check import unsatisfiable
from structgen.schema.label_checks import DistinctLabels
from structgen.schema.nodes import Array, Labels, Schema, json_texts, labels
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed, compile_nodes

PIECES = [
    b'", "', b'",', b", ", b'"a"', b'["', b'"]', b'"a', b'["a", "', b'"a/b"', b"a/", b"/b", b'/a"',
    b'", "b', b'"b/', b'"a", "b"',
]  # fmt: skip
TOKENS = [*(bytes((byte,)) for byte in range(256)), *PIECES]
BYTES = Vocabulary.from_bytes([*TOKENS[:256], None], eos_token_ids=256)
WORDS = Vocabulary.from_bytes([*TOKENS, None], eos_token_ids=len(TOKENS))

paths = st.lists(st.sampled_from(["a", "b", "ab", 'q"']), min_size=1, max_size=3).map("/".join)
label_sets = st.sets(paths, min_size=1, max_size=12)


def node_of(texts: set[str], low: int, high: int | None) -> Array:
    item = labels(json_texts(sorted(texts)))
    assert isinstance(item, Labels)
    return Array(item, low, high, unique=True, antichain=True, separator="/")


def is_antichain(items: list[str]) -> bool:
    try:
        DistinctLabels(antichain=True, separator="/")(items)
    except ValueError:
        return False
    return True


def lists_of(node: Array, vocabulary: Vocabulary) -> set[str]:
    """All values that can be written, found by following every legal token."""
    end = vocabulary.eos_token_ids[0]
    pending = [compile_nodes(Schema(node, {}), vocabulary).session()]
    found: set[str] = set()
    seen: set[bytes] = set()
    while pending:
        session = pending.pop()
        legal = allowed(session)
        assert legal, "a dead end"
        for token_id in legal:
            after = session.fork()
            after.advance(token_id)
            text = vocabulary.decode(after.token_ids)
            if token_id == end:
                found.add(text.decode())
            elif text not in seen:
                seen.add(text)
                pending.append(after)
    return found


@settings(max_examples=25, deadline=None)
@given(label_sets, st.integers(0, 2), st.integers(1, 2), st.sampled_from([BYTES, WORDS]))
def test_exactly_the_antichains(
    texts: set[str], low: int, more: int, vocabulary: Vocabulary
) -> None:
    node = node_of(texts, low, low + more if low < 2 else 2)
    if unsatisfiable(Schema(node, {})):
        return
    kept = {json.loads(text) for text in without_the_widest(node).item.texts}  # pyright: ignore[reportAttributeAccessIssue]  # labels
    if len(texts) <= 8:
        kept = texts  # each set of labels has a place of its own
    expected = {
        json.dumps(list(items))
        for count in range(low, (node.max_items or 0) + 1)
        for items in permutations(sorted(kept), count)
        if is_antichain(list(items))
    }
    assert lists_of(node, vocabulary) == expected


@settings(max_examples=25, deadline=None)
@given(st.sets(paths, min_size=9, max_size=20), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_random_lists_end_with_enough_labels(texts: set[str], low: int, seed: int) -> None:
    node = node_of(texts, low, None)
    if unsatisfiable(Schema(node, {})):
        return
    rng = np.random.default_rng(seed)
    compiled = compile_nodes(Schema(node, {}), WORDS)
    for budget in (None, compiled.min_tokens, compiled.min_tokens + 7):
        session = compiled.session(budget)
        while not session.finished and not session.complete and not session.exhausted:
            legal = allowed(session)
            assert legal, "a dead end"
            session.advance(int(rng.choice(legal)))
        value = json.loads(WORDS.decode(session.token_ids))
        assert len(value) >= low
        assert is_antichain(value)
        assert set(value) <= texts


def test_more_than_can_stand_together_is_refused() -> None:
    texts = {"a", "a/b", "a/c", "b", "b/a", "c"}
    assert not unsatisfiable(Schema(node_of(texts, 4, None), {}))
    assert unsatisfiable(Schema(node_of(texts, 5, None), {}))


def test_a_label_that_would_leave_too_few_is_left_out() -> None:
    node = node_of({"a", "a/b", "a/c", "b"}, 2, None)
    assert without_the_widest(node) == node  # behind `a` there is `b`
    kept = without_the_widest(node_of({"a", "a/b", "a/c", "b"}, 3, None)).item
    assert kept == labels(json_texts(["a/b", "a/c", "b"]))
