"""Token budgets: whatever is chosen, the value is complete within the budget."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.compiler import compile  # noqa: A004
from structgen.errors import BudgetError, IllegalTokenError, VocabularyError
from structgen.options import Limits, Options
from structgen.schema import nodes
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.oracle import Oracle
from tests.strategies import examples, random_vocabulary
from tests.walks import allowed, compile_nodes, generate
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()
SEEDS = st.integers(0, 2**32)
SLACK = range(26)


def uniform(session: Session, vocabulary: Vocabulary, rng: random.Random) -> int:
    return rng.choice(allowed(session))


def wasteful(session: Session, vocabulary: Vocabulary, rng: random.Random) -> int:
    """The one of several legal tokens after which the most is left to do."""
    ids = allowed(session)
    best, most = ids[0], -1
    for token in rng.sample(ids, min(6, len(ids))):
        twin = session.fork()
        twin.advance(token)
        if not twin.finished and twin.tokens_to_finish > most:
            best, most = token, twin.tokens_to_finish
    return best


@pytest.mark.parametrize("name", ZOO)
def test_every_budget_is_kept(name):
    compiled = compile(ZOO[name], BYTES)
    rng = random.Random(name)
    for slack in SLACK:
        budget = compiled.min_tokens + slack
        choose = wasteful if slack % 5 == 0 else uniform
        text, taken = generate(compiled.session, BYTES, rng, budget, choose)
        assert len(taken) <= budget
        compiled.validate(text)


@pytest.mark.parametrize("name", ZOO)
def test_every_budget_is_kept_with_longer_tokens(name):
    rng = random.Random(name)
    vocabulary = random_vocabulary(rng)
    layout = rng.choice(["spaced", "compact", "flexible"])
    compiled = compile(ZOO[name], vocabulary, layout=layout)
    for slack in SLACK:
        budget = compiled.min_tokens + slack
        choose = wasteful if slack % 5 == 0 else uniform
        text, taken = generate(compiled.session, vocabulary, rng, budget, choose)
        assert len(taken) <= budget
        compiled.validate(text)


REAL = ["nested", "lists of lists", "bounded str", "long str", "tagged twice", "recursive root"]
REAL += ["extra typed", "literal texts", "fraction", "alternating", "any", "dict of models"]


@pytest.mark.parametrize("name", REAL)
def test_every_budget_is_kept_with_a_real_vocabulary(name, real_vocabulary):
    compiled = compile(ZOO[name], real_vocabulary)
    rng = random.Random(name)
    for slack in (*range(6), 9, 14, 20, 25):
        budget = compiled.min_tokens + slack
        text, taken = generate(compiled.session, real_vocabulary, rng, budget, uniform)
        assert len(taken) <= budget
        compiled.validate(text)


@examples(60)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_budgets_of_random_schemas(schema, options, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile_nodes(schema, vocabulary, options)
    oracle = Oracle(schema, options)
    for slack in (0, 1, 2, 3, 5, 8, 13, 25):
        budget = compiled.min_tokens + slack
        choose = wasteful if slack % 2 else uniform
        text, taken = generate(compiled.session, vocabulary, rng, budget, choose)
        assert len(taken) <= budget
        assert oracle.is_value(text), text


@pytest.mark.parametrize("seed", [76, 119, 121])
def test_a_unit_under_way_is_reckoned(seed):
    """Twice escaped, a character may begin with three backslashes, which hold no unit yet."""
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    item = nodes.Embedded(nodes.Embedded(nodes.Array(nodes.String(2))))
    compiled = compile_nodes(
        nodes.Schema(nodes.Array(item, 3), {}), vocabulary, Options(layout="compact")
    )
    for slack in SLACK:
        budget = compiled.min_tokens + slack
        _, taken = generate(compiled.session, vocabulary, rng, budget, wasteful)
        assert len(taken) <= budget


@examples(40)
@given(strategies.schemas(), SEEDS)
def test_a_budget_forbids_no_more_than_it_must(schema, seed):
    """Allowed are exactly the tokens after which what is left suffices."""
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile_nodes(schema, vocabulary)
    budget = compiled.min_tokens + rng.randint(0, 12)
    limited, free = compiled.session(budget), compiled.session()
    while True:
        left = budget - limited.n_tokens - 1
        expected: set[int] = set()
        for token in allowed(free):
            twin = free.fork()
            twin.advance(token)
            if twin.finished or twin.tokens_to_finish <= left:
                expected.add(token)
        assert set(allowed(limited)) == expected
        if limited.exhausted or limited.complete:
            break
        token = rng.choice(sorted(expected))
        limited.advance(token)
        free.advance(token)
        if limited.finished:
            break


@pytest.mark.parametrize("name", ZOO)
def test_a_budget_below_the_minimum_is_refused(name):
    compiled = compile(ZOO[name], BYTES)
    compiled.session(compiled.min_tokens)
    for budget in (compiled.min_tokens - 1, 0, -1):
        with pytest.raises(BudgetError, match=f"takes {compiled.min_tokens}") as caught:
            compiled.session(budget)
        assert (caught.value.budget, caught.value.needed) == (budget, compiled.min_tokens)


MINIMA = {
    "null": b"null", "bool": b"true", "int": b"0", "bounded str": b'"ab"', "enum": b"2",
    "dict": b"{}", "long str": b'"' + b"a" * 40 + b'"', "exact list": b"[true, true, true]",
    "lists of lists": b"[[[0], [0]]]", "prefixes": b'{"a": 0, "abd": 0}', "one-sided int": b"100",
    "tree": b'{"label": "x"}', "recursive root": b"0", "huge int": b"1" + b"0" * 25,
    "validators": b'{"low": 0, "high": 0}', "tagged field": b'{"pet": {"kind": "cat"}}',
}  # fmt: skip


@pytest.mark.parametrize(("name", "shortest"), MINIMA.items())
def test_the_minimum_is_the_shortest_value(name, shortest):
    compiled = compile(ZOO[name], BYTES)
    compiled.validate(shortest)
    assert compiled.min_tokens == len(shortest)


def test_an_exhausted_session_allows_only_the_end():
    session = compile(int, BYTES).session(1)
    session.advance(ord("1"))
    assert session.exhausted
    assert session.accepting
    assert not session.complete
    assert allowed(session) == [257]
    with pytest.raises(IllegalTokenError, match="budget is used up"):
        session.advance(ord("2"))
    assert session.n_tokens == 1
    session.advance(257)
    assert session.finished


def nesting(text: bytes) -> tuple[int, bool]:
    """Open brackets, and whether the text ends inside a string."""
    depth, in_string, escaped = 0, False, False
    for byte in text:
        if in_string:
            in_string = escaped or byte != 0x22
            escaped = byte == 0x5C and not escaped
        else:
            in_string = byte == 0x22
            depth += (byte in b"[{") - (byte in b"]}")
    return depth, in_string


@pytest.mark.parametrize("name", ["tree", "recursive root", "any", "mutual recursion"])
@pytest.mark.parametrize("budget", [None, 5000])
@pytest.mark.parametrize("max_depth", [4, 40])
def test_nesting_is_bounded(name, budget, max_depth):
    """Opening a bracket wherever it is legal goes no deeper than the limit."""
    compiled = compile(ZOO[name], BYTES, limits=Limits(max_depth=max_depth))
    session = compiled.session(budget)
    text = b""
    deepest = 0
    while not session.complete and len(text) < 1500:
        depth, in_string = nesting(text)
        deepest = max(deepest, depth)
        ids = allowed(session)
        assert ids, text
        brackets = [token for token in ids if token in b"[{" and not in_string]
        token = brackets[0] if brackets else (ord('"') if ord('"') in ids else ids[0])
        session.advance(token)
        text += bytes([token])
    assert max_depth // 2 <= deepest <= max_depth + 1


def test_the_deepest_value_validates():
    compiled = compile(ZOO["any"], BYTES)
    session = compiled.session()
    text = b""
    while session.allows(ord("[")):
        session.advance(ord("["))
        text += b"["
    assert len(text) >= 64
    while not session.accepting:
        session.advance(ord("]"))
        text += b"]"
    compiled.validate(text)


@pytest.mark.parametrize("seed", range(20))
def test_deep_walks_never_end_dead(seed):
    """Small depth limits and any layout: whatever is chosen, something is allowed."""
    rng = random.Random(seed)
    name = ["tree", "recursive root", "any", "mutual recursion", "dict of any"][seed % 5]
    layout = rng.choice(["spaced", "compact", "flexible"])
    limits = Limits(max_depth=rng.randint(1, 6))
    vocabulary = random_vocabulary(rng)
    compiled = compile(ZOO[name], vocabulary, layout=layout, limits=limits)
    for _ in range(5):
        text, _ = generate(
            compiled.session, vocabulary, rng, compiled.min_tokens + rng.randint(0, 150)
        )
        compiled.validate(text)
    oracle = Oracle(compiled.schema, Options(layout, limits=limits))
    assert oracle.is_value(text)


def test_vocabularies_that_lack_bytes_have_no_dead_ends() -> None:
    """Only what no token can write is lost: all other values can still be finished."""
    rng = random.Random(5)
    longer = [b'{"', b'": ', b'", "', b"name", b"street", b"true", b"null", b"12", b"},", b"[["]
    finished = 0
    for _ in range(150):
        missing = set(rng.sample(range(256), rng.randint(1, 40))) - set(rng.sample(b'{}[]",: ', 6))
        tokens = [bytes([byte]) if byte not in missing else None for byte in range(256)]
        vocabulary = Vocabulary.from_bytes([*tokens, *longer], eos_token_ids=300, width=301)
        name = rng.choice(["nested", "tagged", "tree", "literal texts", "bounded list", "dict"])
        try:
            compiled = compile(ZOO[name], vocabulary)
        except VocabularyError:
            continue
        for budget in (compiled.min_tokens, compiled.min_tokens + 9):
            text, _ = generate(compiled.session, vocabulary, rng, budget)
            compiled.validate(text)
            finished += 1
    assert finished > 50
