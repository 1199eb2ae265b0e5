"""Label scores against a plain softmax over what the model said."""

from __future__ import annotations

import enum
import json
import math
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from structgen.generator import Generator
from structgen.schema.load import load_schema
from structgen.schema.reading import Piece
from structgen.scores import Written, label_scores, scalars
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary, small_vocabulary
from structgen.tokens.vocabulary import Vocabulary


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    sure: bool


class Outer(BaseModel):
    team: Literal["billing", "technical"]
    color: Color
    maybe: Literal["a", "b"] | None
    inner: Inner
    many: list[Literal["x", "y"]] = Field(max_length=3)
    named: dict[str, bool]
    text: str = Field(max_length=9)
    number: int


OUTER = (
    '{"team": "billing", "color": "blue", "maybe": null, "inner": {"sure": true}, '
    '"many": ["x", "y"], "named": {"é": false}, "text": "true", "number": 1}'
)


class FixedLM(RandomLM):
    """Says the same whatever was written."""

    def __init__(self, vocabulary: Vocabulary, seed: int = 0) -> None:
        super().__init__(vocabulary, seed)
        generator = torch.Generator().manual_seed(seed)
        self.fixed = torch.randn(vocabulary.width, generator=generator) / 2

    def logits(self, token_ids):
        return self.fixed.clone()


def softmax_over(logits: torch.Tensor, legal: list[int], token_id: int) -> float:
    """The token's probability among the legal ones, spelled out."""
    weights = {t: math.exp(float(logits[t])) for t in legal}
    return weights[token_id] / sum(weights.values())


@pytest.mark.parametrize("seed", range(8))
def test_a_label_of_one_token_has_its_probability_among_the_labels(seed):
    labels = [b"red", b"green", b"blue"]
    vocabulary = Vocabulary.from_bytes([*labels, b"{", b"zebra"], eos_token_ids=5)
    vocabulary_lm = FixedLM(vocabulary, seed)
    vocabulary_lm.encode_prompt = lambda prompt: [3]
    result = Generator(Literal["red", "green", "blue"], vocabulary_lm, schema_prompt=False).run("")
    score = result.labels["$"]
    (token_id,) = result.token_ids
    assert score.label.encode() == labels[token_id]
    expected = softmax_over(vocabulary_lm.fixed, [0, 1, 2], token_id)
    assert score.probability == pytest.approx(expected, rel=1e-5)
    everything = vocabulary_lm.fixed.softmax(-1)
    assert score.valid_mass == pytest.approx(float(everything[:3].sum()), rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_in_an_object_the_legal_tokens_are_those_of_the_mask(seed):
    class Answer(BaseModel):
        color: Literal["red", "green", "blue"]

    vocabulary = small_vocabulary(['"red"', '"green"', '"blue"', '"r', "ed"])
    lm = FixedLM(vocabulary, seed)
    lm.fixed[256:259] += 20  # whole labels, please
    generator = Generator(Answer, lm)
    result = generator.run("Hello")
    session = generator.compiled.session()
    for token_id in result.token_ids:
        legal = [t for t in range(vocabulary.width) if session.allows(t)]
        if 256 <= token_id < 259:
            expected = softmax_over(lm.fixed, legal, token_id)
            mass = float(lm.fixed.softmax(-1)[legal].sum())
        session.advance(token_id)
    score = result.labels["$.color"]
    assert score.probability == pytest.approx(expected, rel=1e-5)
    assert score.valid_mass == pytest.approx(mass, rel=1e-5)


def all_scores(schema: Any, lm: RandomLM, path: str, n_runs: int = 300) -> dict[str, float]:
    """The probability of every label that sampling ever chose."""
    found: dict[str, float] = {}
    for seed in range(n_runs):
        generator = Generator(schema, lm, do_sample=True, seed=seed, schema_prompt=False)
        score = generator.run("Hello").labels[path]
        assert found.setdefault(score.label, score.probability) == pytest.approx(score.probability)
    return found


class Quoted(BaseModel):
    label: Literal["a", "ab", "abc", "b", ""]


class Numbers(BaseModel):
    label: Literal[1, 12, 2]


class Mixed(BaseModel):
    label: Literal["yes", "no", 7] | bool | None


@pytest.mark.parametrize("schema", [Quoted, Numbers, Mixed])
def test_the_probabilities_of_all_labels_add_up_to_one(schema):
    # With single bytes every label can be written in one way only.
    found = all_scores(schema, FixedLM(byte_vocabulary(), 5), "$.label")
    assert sum(found.values()) == pytest.approx(1.0, rel=1e-4)
    assert len(found) > 2


def test_labels_at_the_root_add_up_to_one_too():
    found = all_scores(Literal["a", "ab", "b"], FixedLM(byte_vocabulary(), 1), "$", 60)
    assert sum(found.values()) == pytest.approx(1.0, rel=1e-4)


def test_the_closing_quote_counts_where_the_label_is_a_prefix_of_another():
    lm, schema = FixedLM(byte_vocabulary(), 3), TypeAdapter(Literal["a", "ab"])
    lm.fixed[ord('"')] = lm.fixed[ord("b")] + 1.0
    result = Generator(schema, lm, schema_prompt=False).run("Hello")
    assert result.value == "a"
    assert result.labels["$"].probability == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-5)
    lm.fixed[ord('"')] -= 2.0
    result = Generator(schema, lm, schema_prompt=False).run("Hello")
    assert result.value == "ab"
    assert result.labels["$"].probability == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-5)


def test_every_literal_enum_and_bool_has_a_score_and_nothing_else_has():
    result = Generator(Outer, ScriptedLM(byte_vocabulary(), OUTER), schema_prompt=False).run("Hi")
    assert result.text == OUTER
    labels = {path: score.label for path, score in result.labels.items()}
    assert labels == {
        "$.team": '"billing"',
        "$.color": '"blue"',
        "$.maybe": "null",
        "$.inner.sure": "true",
        "$.many[0]": '"x"',
        "$.many[1]": '"y"',
        "$.named.é": "false",
    }
    assert all(0 < s.probability <= 1 for s in result.labels.values())
    assert all(0 < s.valid_mass <= 1.00001 for s in result.labels.values())


def test_recursive_types_have_paths_all_the_way_down():
    class Tree(BaseModel):
        leaf: bool
        kids: list[Tree] = Field(max_length=2)

    text = '{"leaf": false, "kids": [{"leaf": true, "kids": []}]}'
    result = Generator(Tree, ScriptedLM(byte_vocabulary(), text), schema_prompt=False).run("Hi")
    assert set(result.labels) == {"$.leaf", "$.kids[0].leaf"}


def test_an_optional_field_that_is_left_out_has_no_score():
    class Maybe(BaseModel):
        sure: bool = False

    result = Generator(Maybe, ScriptedLM(byte_vocabulary(), "{}"), schema_prompt=False).run("Hi")
    assert result.labels == {}


def test_a_label_that_was_certain_has_probability_one():
    class Sole(BaseModel):
        kind: Literal["only"]

    result = Generator(Sole, RandomLM(byte_vocabulary())).run("Hello")
    assert result.labels["$.kind"].probability == 1.0
    assert result.labels["$.kind"].valid_mass == 1.0


def test_a_token_that_reaches_into_a_label_counts_for_it():
    schema = load_schema(list[Literal["a", "b"]]).schema
    tokens = [Written(3, math.log(0.5), 0.4), Written(2, 0.0, 1.0)]  # `["a` and `"]`
    score = label_scores([Piece("$", schema, 0, 5)], '["a"]', tokens)["$[0]"]
    assert (score.label, score.probability, score.valid_mass) == ('"a"', pytest.approx(0.5), 0.4)


def test_one_token_over_two_labels_counts_for_both():
    schema = load_schema(list[bool]).schema
    tokens = [Written(1, 0.0, 1.0), Written(11, math.log(0.25), 0.5), Written(1, 0.0, 1.0)]
    scores = label_scores([Piece("$", schema, 0, 13)], "[true, false]", tokens)
    assert [s.probability for s in scores.values()] == [pytest.approx(0.25)] * 2


def test_where_each_scalar_stands():
    assert list(scalars('{"a": [1]}')) == [("$.a[0]", ("a", 0), 7, 8)]
    assert list(scalars("[]")) == []
    assert list(scalars(' "é" ')) == [("$", (), 1, 5)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_scalars_finds_what_json_loads_finds(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    data = text.encode()
    found = {keys: json.loads(data[start:end]) for _, keys, start, end in scalars(text)}
    assert found == dict(leaves(value))


def leaves(value: Any, keys: tuple[str | int, ...] = ()):
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from leaves(inner, (*keys, key))
    else:
        yield keys, value
