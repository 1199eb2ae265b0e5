"""Masks against the oracle: a token is allowed exactly if text + token begins some value."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.errors import IllegalTokenError
from structgen.options import Limits, Options
from structgen.schema.load import load_schema
from structgen.schema.nodes import Array, Integer, Schema, String
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.oracle import Oracle
from tests.strategies import ValueMaker, examples, random_vocabulary, write
from tests.walks import allowed, compile_nodes, pick, random_tokens
from tests.zoo import ZOO

LONGEST_TEXT = 60
"""Random walks stop here: the oracle knows no limit on nesting."""


def assert_mask_is_exact(
    session: Session, text: bytes, vocabulary: Vocabulary, oracle: Oracle, ids: list[int]
) -> None:
    """Compare the mask with the oracle on `ids`."""
    mask = set(allowed(session))
    is_value = oracle.is_value(text)
    known: dict[bytes, bool] = {}
    for token in ids:
        data = vocabulary.bytes_of(token)
        if data is None:
            expected = is_value and token in vocabulary.eos_token_ids
        else:
            for end in range(1, len(data) + 1):  # what is refused early is refused
                part = data[:end]
                if part not in known:
                    known[part] = oracle.is_prefix(text + part)
                if not known[part]:
                    break
            expected = known[part]
        assert (token in mask) == expected, (text, token, data, "expected", expected)
    assert session.accepting == is_value, text


def assert_advance_agrees(session: Session, vocabulary: Vocabulary) -> None:
    """`allows` says what `advance` does, for every id and the first ids outside."""
    for token in range(-2, vocabulary.width + 2):
        twin = session.fork()
        try:
            twin.advance(token)
        except IllegalTokenError:
            assert not session.allows(token), token
        else:
            assert session.allows(token), token


def check_random_walk(
    schema: Schema, vocabulary: Vocabulary, options: Options, rng: random.Random
) -> None:
    """Masks along a walk over random legal tokens."""
    oracle = Oracle(schema, options)
    session = compile_nodes(schema, vocabulary, options).session()
    ids = list(range(vocabulary.width))
    text = b""
    while not session.finished and len(text) < LONGEST_TEXT:
        if not text or rng.random() < 0.2:
            assert_mask_is_exact(session, text, vocabulary, oracle, ids)
        token = pick(session, vocabulary, rng)
        session.advance(token)
        text += vocabulary.bytes_of(token) or b""
    assert session.accepting or oracle.is_prefix(text)


def check_along_value(
    schema: Schema, vocabulary: Vocabulary, options: Options, rng: random.Random
) -> None:
    """Masks along a random value, and its end."""
    value = ValueMaker(schema, rng, require_all=options.require_all).data()
    text = write(value, options.layout, ascii_only=rng.random() < 0.3).encode()
    oracle = Oracle(schema, options)
    assert oracle.is_value(text), text
    session = compile_nodes(schema, vocabulary, options).session()
    ids = list(range(vocabulary.width))
    taken = b""
    tokens = random_tokens(text, vocabulary, rng)
    watched = set(rng.sample(range(len(tokens)), min(4, len(tokens)))) if len(text) < 400 else {0}
    for position, token in enumerate(tokens):
        if position in watched:
            assert_mask_is_exact(session, taken, vocabulary, oracle, ids)
        session.advance(token)
        taken += vocabulary.bytes_of(token) or b""
    assert session.accepting, text
    if len(text) < 400:
        assert_mask_is_exact(session, text, vocabulary, oracle, ids)


BYTES = strategies.byte_vocabulary()
SEEDS = st.integers(0, 2**32)


@examples(20)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_byte_masks_along_random_walks(schema, options, seed):
    check_random_walk(schema, BYTES, options, random.Random(seed))


@examples(30)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_byte_masks_along_random_values(schema, options, seed):
    check_along_value(schema, BYTES, options, random.Random(seed))


@examples(40)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_token_masks_along_random_walks(schema, options, seed):
    rng = random.Random(seed)
    check_random_walk(schema, random_vocabulary(rng), options, rng)


@examples(40)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_token_masks_along_random_values(schema, options, seed):
    rng = random.Random(seed)
    check_along_value(schema, random_vocabulary(rng), options, rng)


@examples(20)
@given(strategies.counted_objects(), SEEDS)
def test_token_masks_of_objects_that_hold_few_properties(schema, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    check_random_walk(schema, vocabulary, Options(), rng)
    check_along_value(schema, vocabulary, Options(), rng)


@examples(25)
@given(strategies.models(), strategies.layouts(), SEEDS)
def test_token_masks_of_pydantic_models(model, options, seed):
    rng = random.Random(seed)
    schema = load_schema(model).schema
    vocabulary = random_vocabulary(rng)
    check_along_value(schema, vocabulary, options, rng)
    check_random_walk(schema, vocabulary, options, rng)


@examples(25)
@given(strategies.schemas(), SEEDS)
def test_allows_says_what_advance_does(schema, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile_nodes(schema, vocabulary)
    for budget in (None, compiled.min_tokens + rng.randint(0, 4)):
        session = compiled.session(budget)
        for _ in range(rng.randint(0, 8)):
            if session.complete or session.exhausted:
                break
            session.advance(pick(session, vocabulary, rng))
            if session.finished:
                break
        assert_advance_agrees(session, vocabulary)


@examples(40)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_complete_says_that_nothing_can_follow(schema, options, seed):
    maker = ValueMaker(schema, random.Random(seed), require_all=options.require_all)
    text = write(maker.data(), options.layout).encode()
    session = compile_nodes(schema, BYTES, options).session()
    for byte in text:
        assert not session.complete
        session.advance(byte)
    assert session.complete == (not Oracle(schema, options).can_go_on(text))
    assert (allowed(session) == [257]) == session.complete


REPEATING = Vocabulary.from_bytes(
    [bytes([byte]) for byte in range(256)]
    + [b"a" * n for n in range(2, 8)]
    + [b" " * n for n in range(2, 8)]
    + [b",".join([b"1"] * n) for n in range(2, 5)]
    + [b",1" * n for n in range(1, 4)]
    + [b"aaaaaa]", b'aaaaa"]', b'a"', b"1,1,1]"],
    eos_token_ids=300,
)


@pytest.mark.parametrize("low", [0, 3, 9])
@pytest.mark.parametrize("more", [0, 1, 2, 5, 6, 7, 8, 9, 10])
@pytest.mark.parametrize(
    ("make", "start", "unit", "options"),
    [
        (lambda low, high: Array(String(low, high)), b'["', b"a", Options()),
        (lambda low, high: Array(Integer(), low, high), b"[", b"1,", Options("compact")),
        (lambda low, high: Array(Array(Integer(), low, high)), b"[[", b"1,", Options("compact")),
        (
            lambda low, high: Array(Integer()),
            b"[",
            b" ",
            Options("flexible", limits=Limits(max_whitespace=8)),
        ),
    ],
    ids=["characters", "items", "items inside", "blanks"],
)
def test_masks_near_the_bounds_of_a_count(make, start, unit, options, low, more):
    """Tokens that hold many counted units, where fewer and fewer of them may come."""
    schema = Schema(make(low, low + more), {})
    oracle = Oracle(schema, options)
    session = compile_nodes(schema, REPEATING, options).session()
    text = b""
    ids = sorted({*b'a1 ,]["', *range(256, REPEATING.width)})
    path = (start + unit * 24)[:40]
    for byte in path:
        assert_mask_is_exact(session, text, REPEATING, oracle, ids)
        if not session.allows(byte):
            break
        session.advance(byte)
        text += bytes([byte])


@pytest.mark.parametrize(
    "name", ["nested", "same prefix", "literal texts", "bounded list", "extra typed", "any"]
)
def test_masks_of_a_real_vocabulary(name, real_vocabulary):
    """A few states of a 129k-token vocabulary, on 600 allowed tokens and 600 of all."""
    rng = random.Random(name)
    schema = load_schema(ZOO[name]).schema
    oracle = Oracle(schema)
    for _ in range(2):
        session = compile_nodes(schema, real_vocabulary).session()
        text = b""
        value = write(ValueMaker(schema, rng).data()).encode()
        tokens = random_tokens(value, real_vocabulary, rng)
        watched = {0, *rng.sample(range(len(tokens)), min(3, len(tokens)))}
        for position, token in enumerate(tokens):
            if position in watched:
                ids = allowed(session)
                ids = rng.sample(ids, min(len(ids), 600))
                ids += rng.sample(range(real_vocabulary.width), 600)
                ids += real_vocabulary.eos_token_ids
                assert_mask_is_exact(session, text, real_vocabulary, oracle, ids)
            session.advance(token)
            text += real_vocabulary.bytes_of(token) or b""
        assert session.accepting
