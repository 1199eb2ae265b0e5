"""Every value, written canonically, is accepted token by token."""

from __future__ import annotations

import enum
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polyfactory.factories.pydantic_factory import ModelFactory
from pydantic import BaseModel

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.strategies import SOAK, ValueMaker, examples, random_vocabulary, write
from tests.walks import compile_nodes, feed, random_tokens
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()
SEEDS = st.integers(0, 2**32)


def assert_accepted(
    compiled: CompiledSchema[Any], text: str, vocabulary: Vocabulary, rng: random.Random
) -> None:
    """Accepted under random tokens, and under the tokenizer's own where there is one.

    Every byte is a token of these vocabularies, so a budget of as many tokens must suffice.
    """
    ways = [random_tokens(text.encode(), vocabulary, rng)]
    if vocabulary.encode is not None:
        ways.append(vocabulary.encode(text))
    for tokens in ways:
        session = compiled.session()
        feed(session, tokens, vocabulary)
        assert session.accepting, text
        session = compiled.session(len(text.encode()))
        feed(session, tokens, vocabulary)
        assert session.accepting, text


@pytest.mark.parametrize("name", ZOO)
def test_random_values(name, real_vocabulary):
    rng = random.Random(name)
    for layout in ("spaced", "compact", "flexible"):
        for vocabulary, count in ((random_vocabulary(rng), 8), (real_vocabulary, 4)):
            compiled = compile(ZOO[name], vocabulary, layout=layout)
            for _ in range(count * SOAK):
                data = ValueMaker(compiled.schema, rng).data()
                text = write(data, layout, ascii_only=rng.random() < 0.4)
                compiled.validate(text)
                assert_accepted(compiled, text, vocabulary, rng)


@examples(40)
@given(strategies.models(), SEEDS)
def test_random_models(model, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile(model, vocabulary)
    for _ in range(4):
        text = write(ValueMaker(compiled.schema, rng).data(), ascii_only=rng.random() < 0.4)
        compiled.validate(text)
        assert_accepted(compiled, text, vocabulary, rng)


@examples(40)
@given(strategies.schemas(), strategies.layouts(), SEEDS)
def test_random_nodes(schema, options, seed):
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    compiled = compile_nodes(schema, vocabulary, options)
    for _ in range(4):
        data = ValueMaker(schema, rng, require_all=options.require_all).data()
        text = write(data, options.layout, ascii_only=rng.random() < 0.4)
        session = compiled.session()
        feed(session, random_tokens(text.encode(), vocabulary, rng), vocabulary)
        assert session.accepting, text


INSTANCES = [
    "nested", "tagged field", "tagged twice", "by name", "defaults", "one default",
    "forbid", "ignore", "generic", "generic model", "validators", "strict",
    "empty model", "all optional", "alternating", "prefixes", "extra",
]  # fmt: skip
"""Models without aliases and settings, which polyfactory does not read."""


@pytest.mark.parametrize("name", INSTANCES)
def test_instances_made_from_the_type_alone(name, real_vocabulary):
    """Values that polyfactory builds know nothing of our nodes."""
    model: type[BaseModel] = ZOO[name]
    factory = ModelFactory.create_factory(model, __check_model__=False)
    factory.seed_random(1)
    rng = random.Random(name)
    compiled = compile(model, real_vocabulary)
    for _ in range(6 * SOAK):
        instance = factory.build()
        data = instance.model_dump(mode="json", by_alias=False)
        text = json.dumps(data, ensure_ascii=False)
        assert compiled.validate(text) == instance
        assert_accepted(compiled, text, real_vocabulary, rng)


@examples(100)
@given(st.text(max_size=12), st.booleans(), SEEDS)
def test_every_string(text, ascii_only, seed):
    try:
        written = json.dumps(text, ensure_ascii=ascii_only)
        written.encode()
        text.encode()
    except UnicodeEncodeError:
        return  # a lone surrogate
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    assert_accepted(compile(str, vocabulary), written, vocabulary, rng)


@examples(100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=4)
        | st.floats(-1e300, 1e300),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    SEEDS,
)  # fmt: skip
def test_every_json_value_is_any(value, seed):
    try:
        written = json.dumps(value, ensure_ascii=False)
        written.encode()
    except UnicodeEncodeError:
        return
    rng = random.Random(seed)
    vocabulary = random_vocabulary(rng)
    assert_accepted(compile(Any, vocabulary), written, vocabulary, rng)


@pytest.mark.parametrize("name", ["literal texts", "literal mixed", "enum", "int enum", "str enum"])
def test_every_choice(name, real_vocabulary):
    adapter = ZOO[name]
    source = adapter._type
    choices = [m.value for m in source] if isinstance(source, enum.EnumType) else source.__args__
    rng = random.Random(0)
    compiled = compile(adapter, real_vocabulary)
    for choice in choices:
        text = json.dumps(choice, ensure_ascii=False)
        assert_accepted(compiled, text, real_vocabulary, rng)
        value = compiled.validate(text)
        assert getattr(value, "value", value) == choice
