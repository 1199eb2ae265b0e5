"""Sessions: forking, rolling back, dropped tables, threads, and tokens that are refused."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.compiler import compile  # noqa: A004
from structgen.errors import IllegalTokenError, OptionError
from structgen.options import Limits, Options
from structgen.tokens.session import Session, fill_masks
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.strategies import examples, random_vocabulary
from tests.walks import Compiled, allowed, compile_nodes, generate, pick
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()
SEEDS = st.integers(0, 2**32)
PROPERTIES = ("accepting", "complete", "finished", "exhausted", "n_tokens", "tokens_to_finish")
TINY = Options(limits=Limits(cache_bytes=1))
"""The table of states is dropped again and again."""


def replay(compiled: Compiled, tokens: list[int], max_tokens: int | None) -> Session:
    session = compiled.session(max_tokens)
    for token in tokens:
        session.advance(token)
    return session


def forced_bytes(session: Session) -> bytes:
    state = session._state
    return state.table.forced_bytes(state, 4096)


def assert_same(session: Session, other: Session) -> None:
    assert np.array_equal(session.mask(), other.mask())
    for name in PROPERTIES:
        assert getattr(session, name) == getattr(other, name), name
    assert session.forced() == other.forced()
    assert forced_bytes(session) == forced_bytes(other)


def check_moves(
    compiled: Compiled, twin: Compiled, rng: random.Random, max_tokens: int | None
) -> None:
    """Random moves against sessions that only ever went forward, of `twin`."""
    sessions: list[tuple[Session, list[int]]] = [(compiled.session(max_tokens), [])]
    for _ in range(15):
        session, taken = rng.choice(sessions)
        move = rng.random()
        if move < 0.15 and len(sessions) < 4:
            sessions.append((session.fork(), taken.copy()))
        elif move < 0.35:
            n = rng.randint(0, len(taken))
            session.rollback(n)
            del taken[len(taken) - n :]
        elif not (session.finished or session.exhausted):
            token = pick(session, compiled.vocabulary, rng)
            session.advance(token)
            taken.append(token)
        for other, tokens in sessions:
            assert other.n_tokens + other.finished == len(tokens)
        assert_same(session, replay(twin, taken, max_tokens))
    for session, taken in sessions:
        assert_same(session, replay(twin, taken, max_tokens))


@examples(40)
@given(strategies.schemas(), SEEDS, st.booleans())
def test_moves_are_the_same_as_a_replay(schema, seed, limited):
    rng = random.Random(seed)
    compiled = compile_nodes(schema, random_vocabulary(rng))
    budget = compiled.min_tokens + rng.randint(0, 20) if limited else None
    check_moves(compiled, compiled, rng, budget)


@examples(40)
@given(strategies.schemas(), SEEDS, st.booleans())
def test_moves_are_the_same_while_tables_are_dropped(schema, seed, limited):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile_nodes(schema, vocabulary, TINY)
    budget = compiled.min_tokens + rng.randint(0, 20) if limited else None
    check_moves(compiled, compile_nodes(schema, vocabulary), rng, budget)
    assert compiled.tables.n_resets > 0


@pytest.mark.parametrize("cache_bytes", [1, 3000, 50_000])
def test_a_small_cache_changes_nothing(cache_bytes):
    vocabulary = random_vocabulary(random.Random(1))
    for name in ("nested", "same prefix", "any", "ambiguous lists", "extra typed", "tagged twice"):
        small = compile(ZOO[name], vocabulary, limits=Limits(cache_bytes=cache_bytes))
        large = compile(ZOO[name], vocabulary)
        for seed in range(6):
            budget = large.min_tokens + 5 * seed
            walks = [
                generate(compiled.session, vocabulary, random.Random(seed), budget)
                for compiled in (small, large)
            ]
            assert walks[0] == walks[1]


def test_the_cache_stays_small(real_vocabulary):
    cache_bytes = 2**18
    compiled = compile(ZOO["nested"], real_vocabulary, limits=Limits(cache_bytes=cache_bytes))
    rng = random.Random(0)
    for _ in range(8):
        generate(compiled.session, real_vocabulary, rng, 120)
    table = compiled._tables.current()
    assert compiled._tables.n_resets > 0
    assert table.bytes_used < 2 * cache_bytes


@pytest.mark.parametrize("cache_bytes", [1, 20_000, 2**26])
def test_threads_share_a_compiled_schema(cache_bytes):
    vocabulary = random_vocabulary(random.Random(2))
    limits = Limits(cache_bytes=cache_bytes)

    def walks(name: str, seed: int) -> list[tuple[bytes, list[int]]]:
        compiled = compile(ZOO[name], vocabulary, limits=limits)
        rng = random.Random(seed)
        return [generate(compiled.session, vocabulary, rng, 90 + n) for n in range(6)]

    jobs = [(name, seed) for seed in range(3) for name in ("nested", "any", "same prefix", "tree")]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: walks(*job), jobs))
    assert together == [walks(*job) for job in jobs]


def test_a_fork_is_independent():
    session = compile(ZOO["list"], BYTES).session(20)
    session.advance(ord("["))
    twin = session.fork()
    twin.advance(ord("1"))
    assert (session.n_tokens, twin.n_tokens) == (1, 2)
    assert not session.allows(ord(","))
    assert twin.allows(ord(","))
    session.advance(ord("]"))
    assert session.complete
    assert not twin.complete


def test_rollback_takes_back_the_end():
    session = compile(bool, BYTES).session()
    for token in b"true":
        session.advance(token)
    session.advance(257)
    assert session.finished
    assert allowed(session) == []
    session.rollback(0)
    assert session.finished
    session.rollback(1)
    assert not session.finished
    assert session.accepting
    assert session.n_tokens == 4
    session.advance(257)
    session.rollback(3)
    assert session.n_tokens == 2
    assert allowed(session) == [ord("u")]
    session.rollback(2)
    assert session.n_tokens == 0


@pytest.mark.parametrize("n", [-1, 3, 100])
def test_rollback_of_too_much_is_refused(n):
    session = compile(int, BYTES).session()
    session.advance(ord("1"))
    session.advance(ord("2"))
    with pytest.raises(OptionError, match=rf"rollback\({n}\): 2 tokens were taken"):
        session.rollback(n)
    assert session.n_tokens == 2


ILLEGAL = [
    (257, "the value is not finished"),
    (256, "it is a special or unused token"),
    (258, "the vocabulary has 258 ids"),
    (10**9, "the vocabulary has 258 ids"),
    (-1, "the vocabulary has 258 ids"),
    (-(2**40), "the vocabulary has 258 ids"),
    (ord("x"), "b'x' does not fit the schema"),
]


@pytest.mark.parametrize("max_tokens", [None, 30])
@pytest.mark.parametrize(("token", "why"), ILLEGAL)
def test_an_illegal_token_changes_nothing(token, why, max_tokens):
    session = compile(ZOO["list"], BYTES).session(max_tokens)
    session.advance(ord("["))
    before = session.mask().copy()
    assert not session.allows(token)
    with pytest.raises(IllegalTokenError, match=why) as caught:
        session.advance(token)
    assert caught.value.token_id == token
    assert str(token) in str(caught.value)
    assert np.array_equal(session.mask(), before)
    assert session.n_tokens == 1
    session.advance(ord("]"))
    assert session.accepting


@pytest.mark.parametrize("token", [257, 0, ord("1"), -1, 300])
def test_nothing_follows_the_end(token):
    session = compile(int, BYTES).session()
    session.advance(ord("1"))
    session.advance(257)
    assert not session.allows(token)
    with pytest.raises(IllegalTokenError, match="the value has ended"):
        session.advance(token)
    assert session.finished
    assert session.n_tokens == 1


def test_numpy_integers_are_tokens():
    session = compile(int, BYTES).session(5)
    assert session.allows(np.int64(ord("7")))
    session.advance(np.int32(ord("7")))
    assert session.n_tokens == 1


def test_masks_are_written_to_the_callers_memory():
    compiled = compile(int, BYTES)
    sessions = [compiled.session(), compiled.session(3)]
    sessions[0].advance(ord("1"))
    out = np.full((2, BYTES.n_words), -1, np.int32)
    fill_masks(sessions, out)
    for row, session in zip(out, sessions, strict=True):
        assert np.array_equal(row, session.mask())
        other = np.full(BYTES.n_words, 7, np.int32)
        session.fill_mask(other)
        assert np.array_equal(row, other)
    assert not sessions[0].mask().flags.writeable


def test_a_key_behind_which_too_few_could_follow_is_no_choice():
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}, "ab": {"const": 2}},
        "required": ["ab"],
        "minProperties": 2,
        "additionalProperties": False,
    }
    assert bytes(forced_bytes(compile(schema, BYTES).session())) == b'{"a": 1, "ab": 2}'


@examples(40)
@given(strategies.schemas(), SEEDS)
def test_forced_bytes_are_those_without_a_choice(schema, seed):
    """Each forced byte is the only legal one, and behind them there is a choice or the end."""
    rng = random.Random(seed)
    compiled = compile_nodes(schema, BYTES)
    session = compiled.session()
    for _ in range(rng.randint(0, 12)):
        if session.complete or session.finished:
            break
        session.advance(pick(session, BYTES, rng))
    if session.finished:
        return
    twin = session.fork()
    for byte in forced_bytes(session):
        assert allowed(twin) == [byte]
        twin.advance(byte)
    ids = allowed(twin)
    assert len(ids) != 1 or ids == [257]


def test_tokens_that_spell_the_same_are_all_allowed():
    vocabulary = Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b"1", b"tr", b"tr"], 300)
    assert [t for t in allowed(compile(int, vocabulary).session()) if t > 255] == [256]
    assert [t for t in allowed(compile(bool, vocabulary).session()) if t > 255] == [257, 258]
    session = compile(bool, vocabulary).session()
    session.advance(258)
    assert allowed(session) == [ord("u")]
