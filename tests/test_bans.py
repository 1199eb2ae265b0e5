"""`banned_strings`, and vocabularies of which only a part may be used."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field, Json, TypeAdapter, create_model

import structgen as sg
from structgen.errors import OptionError, UnsatisfiableSchemaError, VocabularyError
from structgen.generator import Generator
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary, small_vocabulary
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed, generate
from tests.zoo import ZOO

BYTES = byte_vocabulary()
WORDS = small_vocabulary(
    ["bad", "ba", "d", '"b', "ad", 'a"', "x", "true", '{"', '": ', "a b", "dba"]
)
BANNED = ["bad", "a ", "\n", '"', "é", "\\"]


def fits(schema: Any, text: str, **options: Any) -> bool | None:
    """True: a whole value. None: the beginning of one. False: neither."""
    session = sg.compile(schema, BYTES, **options).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return True if session.accepting else None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    bad: int = 0
    kind: Literal["bad", "good", "a b"] = "good"


TABLE: list[tuple[Any, list[str], list[str], list[str], list[str]]] = [
    # schema, banned strings, accepted, rejected, prefixes
    (str, ["bad"], ['""', '"ba"', '"bda"'], ['"bad', '"xbad'], ['"ba']),
    (str, ["\n", '"'], ['"n"'], ['"\\n', '"\\"', '"\\u000a'], ['"\\\\']),
    (str, ["\\"], ['"/"', '"\\n"'], ['"\\\\'], ['"\\']),
    (str, ["é", "𝄞x"], ['"𝄞y"'], ['"é', '"𝄞x'], ['"𝄞']),
    (Annotated[str, Field(pattern="^[ab]+$", max_length=3)], ["ab"], ['"aaa"', '"ba"'],
     ['"ab', '"aaaa'], ['"b']),
    (Annotated[str, Field(min_length=3, max_length=3)], ["a", "b"], ['"ccc"'], ['"a', '"cc"'],
     ['"cc']),
    (Literal["bad", "good", "badge"], ["bad"], ["good"], ["b"], ["g"]),
    (TypeAdapter(Literal["bad", "good", 1]), ["bad", "1"], ['"good"', "1"], ['"b'], ['"']),
    (list[Literal["a\nb", "ab"]], ["\n"], ['["ab"]'], ['["a\\'], ['["a']),
    (dict[str, int], ["x"], ['{"a": 1}'], ['{"x', '{"ax'], ["{"]),
    (dict[Literal["x", "y"], int], ["x"], ['{"y": 1}'], ['{"x'], ["{"]),
    (Open, ["bad"], ['{"bad": 1}', '{"kind": "good"}', '{"c": "d", "e": null}'],
     ['{"kind": "bad', '{"kind": "b', '{"badly', '{"c": "bad', '{"c": ["bad', '{"c": {"bad'],
     ['{"kind": "', '{"ba', '{"c": {"ba']),
    (Any, ["b"], ['{"a": ["c", 1e5, {}, []]}', "null"], ['"b', '["b', '{"b', '[{"a": "b'], ['"a']),
    (Json[list[str]], ["x"], ['"[\\"a\\"]"'], ['"[\\"x'], ['"[\\"']),
    (float, ["1"], ["1"], [], ["-"]),
    (sg.Text(), ["ab", "b\n"], ["", "a", "ba"], ["ab", "b\n"], []),
    (sg.Text(stop="bad", max_length=3), ["a"], ["bbad", "bad"], ["a", "ba\n", "bbbbb"],
     ["ba", "b", "bbbb"]),
    (sg.Regex("[ab]{3}"), ["ab", "aaa"], ["baa", "bba"], ["ab", "a"], ["b", "ba"]),
    (sg.OneOf({"bad": 1, "good": 2}), ["a"], ["good"], ["b"], [""]),
    (sg.Sequence("bad: ", it=str), ["bad"], ['bad: "ba"'], ['bad: "bad'], ["bad: "]),
    ({"type": "object", "properties": {"a": {"const": "x"}, "b": {"type": "null"}}}, ["x"],
     ['{"b": null}', "{}"], ['{"a"'], ["{"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "banned", "accepted", "rejected", "prefixes"), TABLE, ids=lambda x: ""
)
def test_texts_without_banned_strings(schema, banned, accepted, rejected, prefixes):
    compiled = sg.compile(schema, BYTES, banned_strings=banned)
    for text in accepted:
        assert fits(schema, text, banned_strings=banned) is True, text
        compiled.validate(text)
    for text in rejected:
        assert fits(schema, text, banned_strings=banned) is False, text
    for text in prefixes:
        assert fits(schema, text, banned_strings=banned) is None, text
    rng = random.Random(5)
    for _ in range(5):
        text, _ = generate(compiled.session, BYTES, rng, compiled.min_tokens + rng.randint(0, 20))
        compiled.validate(text)


IMPOSSIBLE: list[tuple[Any, list[str], str]] = [
    (Literal["bad", "badly"], ["bad"], r"\$: every choice contains a banned string"),
    (sg.Sequence(a=int, b=Literal["bad"]), ["bad"], r"\$\.b: every choice"),
    (Annotated[str, Field(pattern="^b+$")], ["b"], r"\$: no string agrees"),
    (sg.Regex("b+"), ["b"], r"\$: no text agrees"),
    (Annotated[list[Literal["x", "y"]], Field(min_length=1)], ["x", "y"],
     r"\$\[\*\]: every choice|\$: "),
    (Annotated[set[Literal["x", "y"]], Field(min_length=2)], ["x"], r"\$: 1 choices are left"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "banned", "problem"), IMPOSSIBLE, ids=lambda x: "")
def test_a_schema_of_which_nothing_is_left_is_refused_by_path(schema, banned, problem):
    with pytest.raises(UnsatisfiableSchemaError, match=problem):
        sg.compile(schema, BYTES, banned_strings=banned)


@pytest.mark.parametrize("banned", ["bad", 5, [""], [1], ["\ud800"], [str(n) for n in range(1001)]])
def test_banned_strings_that_make_no_sense(banned):
    with pytest.raises(OptionError, match="banned_strings"):
        sg.compile(str, BYTES, banned_strings=banned)


def test_no_other_split_brings_a_banned_string_into_a_part():
    choice = Literal["a", "ab", "1"]
    lm = ScriptedLM(WORDS, "abc")
    found = sg.generate(sg.Sequence(choice, sg.Text()), "?", lm=lm, banned_strings=["ab"])
    assert found == ("a", "bc")
    texts = sg.Sequence(sg.Regex("[^b]*"), sg.Sequence(sg.Text(stop="x")))
    assert sg.compile(texts, BYTES).validate("aacx") == ("aacx"[:3], ("",))
    assert sg.compile(texts, BYTES, banned_strings=["aa"]).validate("aacx") == ("a", ("ac",))


def test_no_banned_strings_are_none_and_any_iterable_will_do():
    plain = sg.compile(str, BYTES)
    assert sg.compile(str, BYTES, banned_strings=None).fingerprint == plain.fingerprint
    banned = sg.compile(str, BYTES, banned_strings=iter(["a"]))
    assert banned.options.banned_strings == ("a",)
    lm = RandomLM(WORDS)
    text = sg.Text(max_length=9)
    for seed in range(5):
        assert "a" not in sg.generate(text, "?", lm=lm, banned_strings=iter(["a"]), seed=seed)


def test_bans_belong_to_the_compiled_schema():
    free, banned = sg.compile(str, BYTES), sg.compile(str, BYTES, banned_strings=["b", "a", "ab"])
    assert free.fingerprint != banned.fingerprint
    assert banned.fingerprint == sg.compile(str, BYTES, banned_strings=("a", "b")).fingerprint
    assert banned.options.banned_strings == ("a", "b")


def strings_in(value: Any, declared: frozenset[str]) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item, declared)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from () if key in declared else (key,)
            yield from strings_in(item, declared)


NAMES = [
    "str", "any", "dict of any", "extra", "literal texts", "tree", "same prefix", "configured",
    "dict of models", "long str",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_random_value_contains_a_banned_string(name):
    rng = random.Random(name)
    compiled = sg.compile(ZOO[name], WORDS, banned_strings=BANNED)
    declared = frozenset(json.dumps(sg.explain(ZOO[name]).to_dict()))
    for _ in range(15):
        text, _ = generate(compiled.session, WORDS, rng, compiled.min_tokens + rng.randint(0, 40))
        compiled.validate(text)
        for string in strings_in(json.loads(text), declared):
            assert not any(banned in string for banned in BANNED), text


# Fewer tokens.


def ids_of(*texts: str, vocabulary: Vocabulary = WORDS) -> list[int]:
    spelled = {vocabulary.bytes_of(i): i for i in reversed(range(vocabulary.width))}
    return [spelled[text.encode()] for text in texts]


def test_a_restricted_vocabulary_is_a_vocabulary_of_its_own():
    kept = ids_of("bad", "x")
    one = WORDS.restricted(kept)
    assert one.width == WORDS.width
    assert one.eos_token_ids == WORDS.eos_token_ids
    assert [i for i in range(one.width) if one.bytes_of(i)] == sorted(kept)
    assert one.fingerprint != WORDS.fingerprint
    assert one == WORDS.restricted(None, {*range(WORDS.width)} - {*kept, *WORDS.eos_token_ids})
    assert WORDS.restricted() == WORDS
    assert one.encode is not None
    with pytest.raises(VocabularyError):
        one.encode("xy")


def test_only_allowed_tokens_are_written():
    letters = ids_of(*"abc", '"', "bad")
    compiled = sg.compile(str, WORDS, allowed_token_ids=letters)
    session = compiled.session()
    assert allowed(session) == ids_of('"')
    session.advance(ids_of('"')[0])
    assert allowed(session) == sorted(letters)
    rng = random.Random(1)
    for _ in range(20):
        _, taken = generate(compiled.session, WORDS, rng, rng.randint(2, 9))
        assert set(taken) <= set(letters)


def test_banned_tokens_are_not_written_and_not_forced():
    banned = ids_of("true", '{"')
    schema = create_model("M", a=Literal[True])
    compiled = sg.compile(schema, WORDS, banned_token_ids=np.array(banned))
    session = compiled.session()
    assert not set(session.forced()) & set(banned)
    text, taken = generate(compiled.session, WORDS, random.Random(1), None)
    assert text == b'{"a": true}'
    assert not set(taken) & set(banned)


def test_a_list_that_leaves_nothing_to_write_is_refused():
    with pytest.raises(VocabularyError, match="with the tokens that are allowed") as caught:
        sg.compile(Literal["abc"], WORDS, allowed_token_ids=ids_of("a", "b"))
    assert caught.value.missing_bytes == (ord("c"),)
    with pytest.raises(VocabularyError):
        sg.compile(int, WORDS, allowed_token_ids=[])
    with pytest.raises(OptionError, match="every end token"):
        sg.compile(int, WORDS, banned_token_ids=WORDS.eos_token_ids)


@pytest.mark.parametrize("options", [{"allowed_token_ids": [10**6]}, {"banned_token_ids": [-1]},
                                     {"allowed_token_ids": ["a"]}, {"allowed_token_ids": 5},
                                     {"allowed_token_ids": [[1]]},
                                     {"banned_token_ids": 5}])  # fmt: skip
def test_ids_that_are_none(options):
    with pytest.raises(OptionError, match=f"{next(iter(options))}"):
        sg.compile(str, WORDS, **options)


def test_ids_may_be_given_as_none_or_one_by_one():
    plain = sg.compile(str, WORDS)
    assert sg.compile(str, WORDS, banned_token_ids=None) is not None
    banned = sg.compile(str, WORDS, banned_token_ids=iter(ids_of("c")))
    assert plain.vocabulary == WORDS
    assert banned.vocabulary == WORDS.restricted(None, ids_of("c"))


@pytest.mark.parametrize("options", [{"allowed_token_ids": 5}, {"banned_token_ids": ["a"]}])
def test_ids_are_checked_before_a_model_is_loaded(options, monkeypatch):
    monkeypatch.setattr("structgen.api.default_lm", lambda: pytest.fail("a model is loaded"))
    with pytest.raises(OptionError, match=next(iter(options))):
        sg.generate(str, "?", **options)


@pytest.mark.parametrize("seed", range(12))
def test_what_a_random_part_of_a_vocabulary_writes_always_ends(seed):
    rng = random.Random(seed)
    banned = rng.sample(range(WORDS.width - 1), 60)
    text = sg.Sequence(sg.Text(stop="x", max_tokens=4), str)
    labels = Literal["bad", "dab", "abba"]
    for schema in (text, labels, ZOO["nested"], sg.Regex("[a-d]{2,5}"), Open):
        try:
            compiled = sg.compile(schema, WORDS, banned_token_ids=banned, banned_strings=["dd"])
        except VocabularyError:
            continue
        for _ in range(6):
            budget = compiled.min_tokens + rng.randint(0, 15)
            text, taken = generate(compiled.session, WORDS, rng, rng.choice([budget, 10 + budget]))
            compiled.validate(text)
            assert not set(taken) & set(banned)


def test_generate_and_generators_take_them():
    options: dict[str, Any] = {"banned_strings": ["a", "b"], "banned_token_ids": ids_of("c")}
    lm = RandomLM(WORDS)
    schema = Annotated[str, Field(min_length=3, max_length=9)]
    for value in (
        sg.generate(schema, "?", lm=lm, **options),
        Generator(schema, lm, **options)("?"),
    ):
        assert not set(value) & set("abc")
    with pytest.raises(UnsatisfiableSchemaError):
        sg.generate(Literal["a"], "no model is loaded", banned_strings=["a"])
