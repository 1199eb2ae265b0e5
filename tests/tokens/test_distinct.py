"""Arrays and objects whose parts must differ, against an enumeration of all their texts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from structgen.errors import UnsupportedSchemaError
from structgen.options import Options
from structgen.schema.enforce import unenforceable
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Contains,
    Extra,
    Integer,
    Labels,
    Node,
    Number,
    Object,
    Pattern,
    Property,
    Schema,
    String,
    Union,
    labels,
    union,
)
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed, compile_nodes

BYTES = Vocabulary.from_bytes([*(bytes((byte,)) for byte in range(256)), None], eos_token_ids=256)
PIECES = [
    b'", "', b'",', b", ", b'"a"', b'["', b'"]', b"1, ", b"12", b", 1", b'"a', b'["a", "', b"1, 1",
    b'"}', b'": ', b"], [", b'"a", "a"', b", 1, 2", b"ab", b'b", "',
]  # fmt: skip
TOKENS = [*(bytes((byte,)) for byte in range(256)), *PIECES]
WORDS = Vocabulary.from_bytes([*TOKENS, None], eos_token_ids=len(TOKENS))

SMALL = st.sampled_from(["", "a", "b", "ab", "aba", "b1"])
LABELS = st.lists(SMALL, min_size=1, max_size=4, unique=True).map(
    lambda texts: labels(json.dumps(text).encode() for text in texts)
)
INTEGERS = st.tuples(st.integers(-2, 12), st.integers(0, 2)).map(
    lambda pair: Integer(pair[0], pair[0] + pair[1])
)
PATTERNS = st.sampled_from(["^[ab]?$", "^a{0,2}$", "^(a|ab)$", "^b[12]$"]).map(
    lambda source: String(patterns=(Pattern(source),))
)
ITEMS = st.lists(LABELS | INTEGERS | PATTERNS, min_size=1, max_size=2).map(union)
MOST_TEXTS = 80
PAIRS = ITEMS.map(lambda item: Array(item, 1, 2))
RECORDS = ITEMS.map(lambda item: Object((Property("k", item), Property("m", item, False))))


def is_distinct(value: Any) -> bool:
    texts = [json.dumps(item, sort_keys=True) for item in value]  # in Python 1 is True
    return len(set(texts)) == len(texts)


def texts_of(node: Node) -> set[bytes]:
    """All texts of a node with few, found by following every legal byte."""
    compiled = compile_nodes(Schema(node, {}), BYTES)
    found: set[bytes] = set()
    pending = [(b"", compiled.session())]
    while pending:
        text, session = pending.pop()
        for token_id in allowed(session):
            if token_id == 256:
                found.add(text)
                continue
            after = session.fork()
            after.advance(token_id)
            pending.append((text + bytes((token_id,)), after))
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(ITEMS | PAIRS | RECORDS, st.integers(0, 2), st.integers(1, 3))
def test_exactly_the_arrays_without_repeats(item: Node, low: int, high: int) -> None:
    """Every legal byte leads on, and no array without repeats is lost."""
    assume(len(texts_of(item)) ** high <= MOST_TEXTS)
    repeating = Array(item, min(low, high), high)
    node = Array(item, min(low, high), high, prefix=(item,), unique=True)
    if unenforceable(Schema(node, {})):
        return
    expected = {text for text in texts_of(repeating) if is_distinct(json.loads(text))}
    assert texts_of(node) == expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.lists(LABELS | PATTERNS, min_size=1, max_size=2).map(union),
    st.integers(2, 3),
    st.integers(2, 3),
)
def test_exactly_the_objects_with_enough_keys(key: Node, low: int, high: int) -> None:
    """Free keys differ where a count depends on it."""
    value = Integer(0, 0)
    assume(len(texts_of(key)) ** max(low, high) <= MOST_TEXTS)
    free = Object(extras=(Extra(key, value),), max_properties=max(low, high))
    node = Object(extras=(Extra(key, value),), min_properties=low, max_properties=max(low, high))
    if unenforceable(Schema(node, {})):
        return
    expected = {
        text
        for text in texts_of(free)
        if len(json.loads(text)) >= low and text.count(b": ") == len(json.loads(text))
    }
    assert texts_of(node) == expected


SCHEMAS: list[Node] = [
    Array(String(), unique=True),
    Array(String(max_length=1), 2, None, unique=True),
    Array(AnyJson(), unique=True),
    Array(Number(), 3, None, unique=True),
    Array(Number(0.0, 2.0), 2, 5, unique=True),
    Array(Integer(0, 12), 13, None, unique=True),
    Array(labels(f'"l{i}"'.encode() for i in range(12)), 12, None, unique=True),
    Array(labels((b'"a"', b'"ab"', b'"abc"', b"1", b"12", b"true")), 4, None, unique=True),
    Array(Array(Integer(0, 2), 0, 2), 0, None, unique=True),
    Array(Array(Integer(0, 11), unique=True), 2),
    Array(Array(String(), unique=True), 0, None, unique=True),
    Array(Object((Property("a", Integer(0, 3)),)), 4, None, unique=True),
    Array(Object(extras=(Extra(String(), Integer(0, 1)),)), 0, None, unique=True),
    Object(extras=(Extra(String(), Integer()),), min_properties=4),
    Object(
        (Property("a", Array(String(), 2, None, unique=True)),),
        (Extra(String(), AnyJson()),),
        ("a",),
        4,
    ),
    Union((Array(String(), 2, None, unique=True), String(), Integer())),
]


def check(value: Any, node: Node) -> bool:
    """Whether a value keeps its distances: arrays wherever the table says so."""
    match node:
        case Union():
            return not isinstance(value, list) or is_distinct(value)
        case Array():
            inner = all(check(item, node.item) for item in value)
            return inner and (not node.unique or is_distinct(value))
        case Object():
            known = {prop.name: prop.node for prop in node.properties}
            inner = all(check(value[name], part) for name, part in known.items())
            return inner and len(value) >= node.min_properties
        case _:
            return True


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
@pytest.mark.parametrize("layout", ["spaced", "flexible"])
def test_random_walks_end_in_time_and_without_repeats(index: int, layout: Any) -> None:
    node = SCHEMAS[index]
    schema = Schema(node, {})
    assert not unenforceable(schema)
    compiled = compile_nodes(schema, WORDS, Options(layout=layout))
    rng = random.Random(index)
    for more in [*range(12), 25, 40, 60]:
        session = compiled.session(max_tokens=compiled.min_tokens + more)
        text = b""
        while not session.complete and not session.exhausted:
            legal = allowed(session)
            assert legal, text
            repeating = [t for t in legal if t < len(TOKENS) and TOKENS[t][:1] in b'",]}01a']
            session.advance(
                token_id := rng.choice(repeating if repeating and rng.random() < 0.9 else legal)
            )
            if session.finished:
                break
            text += TOKENS[token_id]
        assert check(json.loads(text), node), text


def test_masks_agree_with_steps() -> None:
    """Each token is legal exactly if its bytes are, one by one."""
    rng = random.Random(1)
    for node in SCHEMAS[:11]:
        session = compile_nodes(Schema(node, {}), WORDS).session()
        for _ in range(25):
            legal = set(allowed(session))
            for token_id in rng.sample(range(len(TOKENS)), 40) + list(range(256, len(TOKENS))):
                after: Any = session.fork()
                for byte in TOKENS[token_id]:
                    if after is not None and byte in allowed(after):
                        after.advance(byte)
                    else:
                        after = None
                assert (token_id in legal) == (after is not None), (node, session.token_ids)
            inside = sorted(legal - {len(TOKENS)})
            if not inside:
                break
            structure = [t for t in inside if TOKENS[t][:1] in b'",]01a'] or inside
            session.advance(rng.choice(structure))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (Array(Integer(0, 3), 5, None, unique=True), "at least 5 different"),
        (
            Union((Array(String(), unique=True), Array(Union((String(), Integer()))))),
            "begin alike",
        ),
        (
            Array(Object(extras=(Extra(Labels((b'"a"', b'"b"')), Integer()),)), unique=True),
            "free keys are few",
        ),
    ],
)
def test_what_cannot_be_enforced_is_refused(node: Node, words: str) -> None:
    faults = unenforceable(Schema(node, {}))
    assert words in str(UnsupportedSchemaError(faults, schema="it"))


def test_sessions_with_different_histories_stay_apart() -> None:
    schema = Schema(Array(labels(f'"{c}"'.encode() for c in "abcdefghijkl"), unique=True), {})
    compiled = compile_nodes(schema, BYTES)
    first, second = compiled.session(), compiled.session()
    for byte in b'["a", "':
        first.advance(byte)
    for byte in b'["b", "':
        second.advance(byte)
    assert ord("a") not in allowed(first)
    assert ord("b") in allowed(first)
    assert ord("a") in allowed(second)
    first.rollback(5)
    assert first.token_ids == list(b'["')
    assert ord("a") in allowed(first)


def follow(session: Any, text: bytes) -> bool:
    """Take bytes as long as the mask allows them."""
    for byte in text:
        if byte not in allowed(session):
            return False
        session.advance(byte)
    return True


NESTED = Array(Array(Integer(), unique=True), unique=True)


@pytest.mark.parametrize(
    ("node", "legal", "illegal"),
    [
        (NESTED, b"[[1], [2], []]", b"[[1], [1]]"),
        (NESTED, b"[[1, 2], [1], [2, 1]]", b"[[1, 2], [1], [1, 2]]"),
        (NESTED, b"[[], [1]]", b"[[], []]"),
        (
            Object((Property("b", Integer(), False),), (Extra(String(), Integer()),), (), 2),
            b'{"b": 1, "ba": 2, "a": 3}',
            b'{"a": 1, "a": 2}',
        ),
        (
            Object((Property("abc", Integer(), False),), (Extra(String(), Integer()),), (), 2),
            b'{"abd": 1, "ab": 2}',
            b'{"abd": 1, "abd": 2}',
        ),
        (
            Object((Property("abc", Integer(), False),), (Extra(String(), Integer()),), (), 2),
            b'{"abc": 1, "ab": 2}',
            b'{"ab": 1, "ab": 2}',
        ),
    ],
)
def test_scopes_within_scopes_and_keys_that_begin_alike(
    node: Node, legal: bytes, illegal: bytes
) -> None:
    compiled = compile_nodes(Schema(node, {}), BYTES)
    assert follow(compiled.session(), legal)
    assert not follow(compiled.session(), illegal)


def test_contained_items_without_repeats_fit_every_budget() -> None:
    """A token of several bytes does not make a part cheaper than was promised."""
    pieces = [b"true", b"false", b"[1", b", "]
    tokens = [*(bytes((byte,)) for byte in range(256)), *pieces]
    vocabulary = Vocabulary.from_bytes([*tokens, None], eos_token_ids=len(tokens))
    kinds = Contains(labels((b"false", b"true")), AnyJson())
    node = Array(AnyJson(), 1, None, contains=(kinds,), unique=True)
    compiled = compile_nodes(Schema(node, {}), vocabulary)
    rng = random.Random(0)
    for more in range(12):
        for _ in range(20):
            session = compiled.session(max_tokens=compiled.min_tokens + more)
            while not session.complete and not session.exhausted:
                legal = [token for token in allowed(session) if token < len(tokens)]
                assert legal or session.accepting
                if not legal:
                    break
                likely = [token for token in legal if tokens[token][:1] in b"[1,t]"]
                session.advance(rng.choice(likely or legal))
