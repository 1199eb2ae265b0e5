"""Whatever is generated validates, for schemas of every kind."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.oracle import Oracle
from tests.strategies import SOAK, examples, random_vocabulary
from tests.walks import compile_nodes, generate
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()
SEEDS = st.integers(0, 2**32)


def assert_sound(
    compiled: CompiledSchema, vocabulary: Vocabulary, rng: random.Random, count: int
) -> None:
    for _ in range(count):
        budget = compiled.min_tokens + rng.randint(0, 60)
        text, _ = generate(compiled.session, vocabulary, rng, budget)
        compiled.validate(text)
        json.loads(text)


@pytest.mark.parametrize("name", ZOO)
def test_every_random_value_validates(name):
    rng = random.Random(name)
    for layout in ("spaced", "compact", "flexible"):
        vocabulary = random_vocabulary(rng)
        compiled = compile(ZOO[name], vocabulary, layout=layout)
        assert_sound(compiled, vocabulary, rng, 25 * SOAK)
    compiled = compile(ZOO[name], BYTES, require_all=True)
    assert_sound(compiled, BYTES, rng, 30 * SOAK)


@pytest.mark.parametrize("name", ZOO)
def test_every_random_value_of_a_real_vocabulary_validates(name, real_vocabulary):
    rng = random.Random(name)
    compiled = compile(ZOO[name], real_vocabulary)
    for _ in range(4 * SOAK):
        budget = compiled.min_tokens + rng.randint(0, 30)
        text, _ = generate(compiled.session, real_vocabulary, rng, budget)
        compiled.validate(text)


@examples(40)
@given(strategies.models(), strategies.layouts(), SEEDS)
def test_random_models(model, options, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile(model, vocabulary, layout=options.layout, require_all=options.require_all)
    assert_sound(compiled, vocabulary, rng, 10)


@examples(60)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_random_nodes_are_json(schema, options, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile_nodes(schema, vocabulary, options)
    oracle = Oracle(schema, options)
    for _ in range(6):
        budget = compiled.min_tokens + rng.randint(0, 50)
        text, _ = generate(compiled.session, vocabulary, rng, budget)
        json.loads(text)
        assert oracle.is_value(text), text


@pytest.mark.parametrize("name", ["defaults", "one default", "all optional", "alternating"])
def test_require_all_leaves_nothing_out(name):
    compiled = compile(ZOO[name], BYTES, require_all=True)
    fields = list(ZOO[name].model_fields)
    rng = random.Random(name)
    for _ in range(5):
        text, _ = generate(compiled.session, BYTES, rng, compiled.min_tokens + rng.randint(0, 20))
        assert list(json.loads(text)) == fields


def test_properties_come_in_declared_order():
    rng = random.Random(0)
    compiled = compile(ZOO["weird keys"], BYTES)
    declared = [field.alias for field in ZOO["weird keys"].model_fields.values()]
    for _ in range(20):
        text, _ = generate(compiled.session, BYTES, rng, compiled.min_tokens + rng.randint(0, 99))
        keys = list(json.loads(text))
        assert keys == [name for name in declared if name in keys]
