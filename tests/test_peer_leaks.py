"""What other engines were seen to get wrong: each a schema, texts to accept, texts to reject.

Seen in llguidance 1.9, xgrammar 0.2.8, outlines-core 0.2.14 and lm-format-enforcer 0.11.3: they
let invalid texts through, reject valid ones, or drop a keyword with at most a line on stderr.
"""

from __future__ import annotations

import json
import random
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np
import pytest
from pydantic import BaseModel, Field, TypeAdapter

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.errors import SchemaError, UnsatisfiableSchemaError
from structgen.testing import byte_vocabulary, small_vocabulary
from tests.walks import generate

BYTES = byte_vocabulary()


class Leak(NamedTuple):
    """A schema, with texts that it allows and texts that it does not."""

    name: str
    schema: Any
    accepted: tuple[str, ...]
    rejected: tuple[str, ...] = ()


def accepts(compiled: CompiledSchema[Any], text: str) -> bool:
    session = compiled.session()
    for byte in text.encode("utf-8", "surrogatepass"):
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


def text(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def items(*, of: Any = None, **keywords: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "integer"} if of is None else of, **keywords}


def closed(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "additionalProperties": False, **keywords,
    }  # fmt: skip


INT, STR = {"type": "integer"}, {"type": "string"}

STRINGS = [
    Leak(
        "lengths count characters and leave escapes alone",
        text(minLength=1, maxLength=3),
        (r'"\"\\\n"', '"é😀€"', r'"\ud83d\ude00ab"'),
        ('""', '"abcd"', r'"\n\n\n\n"', '"😀😀😀😀"'),
    ),
    Leak("a pattern is searched for", text(pattern="b"), ('"abc"', '"b"'), ('"ac"', '""')),
    Leak("half an anchor", text(pattern="^a"), ('"abc"', '"a"'), ('"ba"', '""')),
    Leak(
        "an anchor binds to its own option",
        text(pattern="^a|b$"),
        ('"ax"', '"xb"', '"a"', '"b"'),
        ('"xa"', '"bx"', "a", 'b"', '"a'),
    ),
    Leak(
        "a pattern of quotes and backslashes",
        text(pattern=r'^["\\]+$'),
        (r'"\""', r'"\\"', r'"\"\\"'),
        ('"""', '"\\"', '""'),
    ),
    Leak("digits are ASCII", text(pattern=r"^\d+$"), ('"09"',), ('"٣"', '"१"')),
    Leak(
        "look-ahead", text(pattern="^(?=.*[0-9])[a-z0-9]{2,3}$"), ('"a1"', '"1a2"'), ('"ab"',)
    ),
    Leak("letters of all scripts", text(pattern=r"^\p{L}+$"), ('"éΩж"',), ('"a1"', '"-"')),
    Leak(
        "pattern and length",
        text(pattern="^(ab)+$", maxLength=5, minLength=3),
        ('"abab"',),
        ('"ab"', '"ababab"', '"abcd"'),
    ),
    Leak(
        "format and length",
        text(format="ipv4", maxLength=8),
        ('"1.2.3.4"', '"10.2.3.4"'),
        ('"100.200.3.4"', '"1.2.3"'),
    ),
    Leak(
        "a calendar",
        text(format="date"),
        ('"2024-02-29"', '"2023-12-31"'),
        ('"2023-02-29"', '"2023-04-31"', '"٢٠٢٣-01-01"'),
    ),
    Leak("fractions of a second", text(format="time"), ('"10:00:00.5Z"',), ('"10:00:00\\\\.5Z"',)),
    Leak("an offset is needed", text(format="date-time"), (), ('"2024-01-01T10:00:00"',)),
    Leak("a host may be short", text(format="uri"), ('"http://a.b/..?q"',), ('"a b"', '"//a"')),
    Leak("upper case hosts", text(format="hostname"), ('"EXAMPLE.com"',), ('"-a"',)),
    Leak("any case of hex", text(format="uuid"), ('"ABCDEF00-0000-4000-8000-00000000abcd"',)),
    Leak("no lone surrogates", STR, (r'"\ud83d\ude00"',), (r'"\ud800"', r'"\udc00"', '"\ud800"')),
    Leak("any escape", STR, (r'"\u00e9"', r'"\/"', '"é"', r'"\u0041"'), ('"\n"', r'"\x"')),
    Leak(
        "choices are written as JSON",
        {"enum": ['say "hi"', "a\\b", "é", "😀", "\n"]},
        (r'"say \"hi\""', r'"a\\b"', '"é"', '"😀"', r'"\n"'),
        ('"say "hi""', '"a\\b"'),
    ),
    Leak("choices of all types", {"enum": [1, "1", None, True, {"a": [1]}, [0.5]]},
         ("1", '"1"', "null", "true", '{"a": [1]}', "[0.5]"), ("false", "2", '{"a": 1}', "[]")),
    Leak(
        "a type filters the choices",
        {"enum": ["a", "abc", 1, None], "type": "string", "maxLength": 2},
        ('"a"',),
        ('"abc"', "1", "null"),
    ),
    Leak("a constant object", {"const": {"a": 1}}, ('{"a": 1}',), ("{}", '{"a": 2}')),
]  # fmt: skip

NUMBERS = [
    Leak("integer bounds", {**INT, "minimum": 3, "maximum": 11}, ("3", "11"), ("2", "12", "-3")),
    Leak(
        "bounds that exclude",
        {**INT, "exclusiveMinimum": 3, "exclusiveMaximum": 6},
        ("4", "5"),
        ("3", "6"),
    ),
    Leak(
        "number bounds",
        {"type": "number", "minimum": -0.5, "maximum": 1.5},
        ("-0.5", "0.25", "1.5"),
        ("-0.51", "1.6", "1e3", "2"),
    ),
    Leak("multiples", {**INT, "multipleOf": 7}, ("0", "7", "-14", "49"), ("1", "6", "50")),
    Leak(
        "multiples of a fraction",
        {"type": "number", "multipleOf": 0.25, "minimum": 0},
        ("0.25", "1.5", "3"),
        ("0.3", "1.1"),
    ),
    Leak("a fraction at the top", {"type": "number"}, ("1.5", "-0.25", "1e5", "0"), ("01", "1.")),
    Leak("a set of bounds", {**INT, "allOf": [{"minimum": 3}, {"maximum": 4}]}, ("3", "4"), ("5",)),
]

OBJECTS = [
    Leak(
        "no comma at the end",
        closed({"a": INT, "b": INT}),
        ("{}", '{"a": 1}', '{"b": 2}', '{"a": 1, "b": 2}'),
        ('{"a": 1,}', '{"a": 1, }', "{,}", '{"b": 2, "a": 1,}'),
    ),
    Leak(
        "a required name that is not declared",
        {"type": "object", "required": ["z"]},
        ('{"z": 1}', '{"z": {}}'),
        ("{}", '{"a": 1}'),
    ),
    Leak(
        "undeclared keys are allowed unless they are not",
        {"type": "object", "properties": {"a": INT}, "required": ["a"]},
        ('{"a": 1, "b": "x"}', '{"a": 1}'),
        ('{"b": 1}', '{"a": "x"}', '{"a": 1, "a": "x"}'),
    ),
    Leak(
        "undeclared keys have a schema of their own",
        {"type": "object", "properties": {"a": STR}, "additionalProperties": INT},
        ('{"a": "x", "b": 1}', '{"b": 1, "c": 2}'),
        ('{"a": 1}', '{"b": "x"}'),
    ),
    Leak(
        "patterns of names are searched for",
        {"type": "object", "patternProperties": {"^x_": INT}, "additionalProperties": False},
        ('{"x_1": 1}', '{"x_": 0, "x_ab": 2}', "{}"),
        ('{"y": 1}', '{"x_1": "a"}'),
    ),
    Leak(
        "names from a list",
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INT},
        ('{"a": 1}', '{"a": 1, "b": 2}', "{}"),
        ('{"c": 1}',),
    ),
    Leak(
        "names that need others",
        closed({"a": INT, "b": INT}, dependentRequired={"a": ["b"]}),
        ("{}", '{"b": 1}', '{"a": 1, "b": 1}'),
        ('{"a": 1}',),
    ),
    Leak(
        "names that bring a schema",
        closed({"a": INT, "b": INT}, dependentSchemas={"a": {"properties": {"b": {"minimum": 9}}}}),
        ('{"b": 1}', '{"a": 1, "b": 9}', '{"a": 1}'),
        ('{"a": 1, "b": 1}',),
    ),
    Leak(
        "how many keys",
        {"type": "object", "additionalProperties": INT, "minProperties": 1, "maxProperties": 2},
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ("{}", '{"a": 1, "b": 2, "c": 3}'),
    ),
    Leak(
        "how many of the declared",
        closed({"a": INT, "b": INT, "c": INT}, minProperties=2),
        ('{"a": 1, "c": 1}', '{"a": 1, "b": 1, "c": 1}'),
        ("{}", '{"b": 1}'),
    ),
    Leak(
        "names are JSON too",
        closed({'q"': INT, "b\\": INT}, required=['q"', "b\\"]),
        (r'{"q\"": 1, "b\\": 2}',),
        ('{"q"": 1, "b\\": 2}',),
    ),
]

ARRAYS = [
    Leak("no item", items(maxItems=0), ("[]",), ("[1]",)),
    Leak("many items", items(), (json.dumps(list(range(40))),), ("[1,]", "[,1]")),
    Leak("how many items", items(minItems=2, maxItems=3), ("[1, 2]", "[1, 2, 3]"), ("[1]", "[]")),
    Leak(
        "places and a rest",
        {"type": "array", "prefixItems": [STR, {"type": "boolean"}], "items": INT},
        ('["a", true, 1, 2]', '["a"]', "[]"),
        ("[1]", '["a", 1]', '["a", true, "b"]'),
    ),
    Leak(
        "items without repeats",
        items(of={"enum": ["a", "b", "c"]}, uniqueItems=True, minItems=2),
        ('["a", "c"]', '["c", "b", "a"]'),
        ('["a", "a"]', '["a"]', '["a", "b", "a"]'),
    ),
    Leak(
        "an item that has to be there",
        items(contains={"minimum": 5}),
        ("[1, 5]", "[7]", "[6, 1, 9]"),
        ("[]", "[1, 2]"),
    ),
    Leak(
        "how often it has to be there",
        items(contains={"const": 1}, minContains=2, maxContains=3),
        ("[1, 0, 1]", "[1, 1, 1]"),
        ("[1, 2, 3]", "[1, 1, 1, 1]", "[]"),
    ),
]

TREE = {"type": "object", "properties": {"kid": {"$ref": "#"}}, "additionalProperties": False}

COMBINED = [
    Leak(
        "anyOf with siblings",
        {"anyOf": [{"minLength": 3}, {"pattern": "^x"}], "type": "string", "maxLength": 4},
        ('"abc"', '"x"', '"xabc"'),
        ('"a"', '"abcde"', "1"),
    ),
    Leak(
        "oneOf that overlaps",
        {"oneOf": [{**INT, "minimum": 3}, {**INT, "maximum": 5}]},
        ("2", "6"),
        ("3", "4", "5"),
    ),
    Leak(
        "several parts at once",
        {"allOf": [closed({"a": INT, "b": STR}), {"required": ["a"]}, {"minProperties": 2}]},
        ('{"a": 1, "b": "x"}',),
        ('{"a": 1}', "1", "{}", "null"),
    ),
    Leak("no such value", {**INT, "not": {"const": 3}}, ("2", "30", "-3"), ("3",)),
    Leak("no such type", {"not": {"type": ["object", "array"]}}, ("1", '"a"', "null"), ("{}", "[")),
    Leak(
        "then and else",
        {
            **closed({"kind": {"enum": ["n", "t"]}, "value": {"type": ["integer", "string"]}}),
            "required": ["kind", "value"],
            "if": {"properties": {"kind": {"const": "n"}}},
            "then": {"properties": {"value": INT}},
            "else": {"properties": {"value": STR}},
        },
        ('{"kind": "n", "value": 1}', '{"kind": "t", "value": "1"}'),
        ('{"kind": "n", "value": "1"}', '{"kind": "t", "value": 1}'),
    ),
    Leak(
        "a reference with siblings",
        {"$ref": "#/$defs/n", "maximum": 5, "$defs": {"n": {**INT, "minimum": 0}}},
        ("0", "5"),
        ("6", "-1"),
    ),
    Leak(
        "recursion has no third level",
        TREE,
        ('{"kid": {"kid": {"kid": {"kid": {"kid": {}}}}}}', "{}"),
        ('{"kid": 1}', '{"kid": {"x": 1}}'),
    ),
    Leak("anything", {}, ("1", '"a"', "null", "true", "[1, {}]", '{"a": []}'), ("", "x", "[1")),
    Leak(
        "a tag tells them apart",
        {
            "oneOf": [
                closed({"t": {"const": "a"}, "x": INT}, required=["t", "x"]),
                closed({"t": {"const": "b"}, "x": STR}, required=["t", "x"]),
            ]
        },
        ('{"t": "a", "x": 1}', '{"t": "b", "x": "1"}'),
        ('{"t": "a", "x": "1"}', '{"t": "b", "x": 1}', '{"t": "c", "x": 1}'),
    ),
]

LEAKS = [*STRINGS, *NUMBERS, *OBJECTS, *ARRAYS, *COMBINED]


@pytest.mark.parametrize("leak", LEAKS, ids=[leak.name for leak in LEAKS])
def test_json_schemas(leak):
    compiled = compile(leak.schema, BYTES)
    assert [text for text in leak.accepted if not accepts(compiled, text)] == []
    assert [text for text in leak.rejected if accepts(compiled, text)] == []


REFUSED: list[tuple[str, Any, str]] = [
    ("word boundaries in words", text(pattern=r"^(\w+)\1$"), "$.pattern"),
    ("an unknown keyword for a known one", {"type": "string", "maxLenght": 3}, "$.maxLenght"),
    ("a legacy field", {"type": "integer", "divisibleBy": 2}, "$.divisibleBy"),
    ("a reference to elsewhere", {"$ref": "https://example.com/x.json"}, "$.$ref"),
    ("a type that nobody knows", {"type": "strin"}, "$.type"),
]


@pytest.mark.parametrize(("name", "schema", "path"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_cannot_be_enforced_is_refused_with_its_path(name, schema, path):
    with pytest.raises(SchemaError) as caught:
        compile(schema, BYTES)
    assert [fault.path for fault in caught.value.faults] == [path]


@pytest.mark.parametrize(
    "schema",
    [
        {**INT, "minimum": 5, "maximum": 4},
        text(minLength=3, maxLength=2),
        {"enum": ["a", "b"], "type": "integer"},
        {"allOf": [INT, STR]},
        text(pattern="^a$", minLength=2),
        closed({"a": INT}, required=["b"]),
    ],
    ids=range(6),
)
def test_what_no_value_can_match_is_refused(schema):
    with pytest.raises(UnsatisfiableSchemaError):
        compile(schema, BYTES)


class Kind(Enum):
    FIRST = 'the "first"'
    LAST = "🧾"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: Annotated[set[Literal["sit", "roll"]], Field(min_length=1)]


class Everything(BaseModel):
    kind: Kind
    code: Annotated[str, Field(pattern=r"\d", max_length=3)]
    share: Annotated[float, Field(gt=0, le=1)]
    pair: tuple[int, bool]
    counts: dict[Literal["x", "y"], int]
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]  # noqa: UP007
    note: str | None = None


GOOD = (
    '{"kind": "🧾", "code": "a٣", "share": 0.5, "pair": [1, true], "counts": {"x": 1}, '
    '"pet": {"kind": "dog", "tricks": ["sit"]}}'
)
CHANGES = [
    ("🧾", "x"), ("a٣", "ab"), ("a٣", "1234"), ("0.5", "0"), ("0.5", "1.5"), ("[1, true]", "[1]"),
    ("[1, true]", "[1, true, 2]"), ('"x": 1', '"z": 1'), ('["sit"]', "[]"),
    ('["sit"]', '["sit", "sit"]'), ('["sit"]', '["sleep"]'), ('"dog"', '"cat"'),
    ("}}", "}, }"), ("}}", '}, "extra": 1}'),
]  # fmt: skip


def test_a_model_of_everything():
    compiled = compile(Everything, BYTES)
    assert accepts(compiled, GOOD)
    compiled.validate(GOOD)
    for old, new in CHANGES:
        changed = GOOD.replace(old, new)
        assert changed != GOOD
        assert not accepts(compiled, changed), changed


def test_a_single_object_is_not_followed_by_endless_whitespace():
    compiled = compile({"type": "object"}, BYTES, layout="flexible")
    session = compiled.session()
    session.advance(ord("{"))
    spaces = 0
    while session.allows(ord("\n")):
        session.advance(ord("\n"))
        spaces += 1
        assert spaces < 100
    assert session.allows(ord("}"))


def test_budgets_are_kept():
    """A limit that cuts a value off is the most reported fault of all engines."""
    rng = random.Random(1)
    compiled = compile(Everything, BYTES)
    for _ in range(5):
        budget = compiled.min_tokens + rng.randint(0, 20)
        written, _ = generate(compiled.session, BYTES, rng, budget)
        compiled.validate(written)


def test_tokens_that_cross_the_end_of_a_string_are_allowed():
    """A tokenizer writes `.",` as one token; without it ordinary sentences cannot be written."""
    vocabulary = small_vocabulary(['.", "', '": "', 'a.", "b": "'])
    compiled = compile(closed({"a": STR, "b": STR}, required=["a", "b"]), vocabulary)
    session = compiled.session()
    for token in [*b'{"a', 257, *b"x", 256, *b"b", 257]:
        assert session.allows(token)
        session.advance(token)


def test_columns_beyond_the_tokenizer_are_masked():
    from structgen.tokens.vocabulary import Vocabulary

    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary.from_bytes(tokens, eos_token_ids=256, width=300)
    mask = compile(STR, vocabulary).session().mask()
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    assert not bits[257:].any()


def test_thousands_of_choices_stay_alive():
    """More than 2,000 choices, all of which can be written to their end."""
    names = [f"choice number {i}" for i in range(3_000)]
    compiled = compile({"enum": names}, BYTES)
    assert all(accepts(compiled, json.dumps(name)) for name in random.Random(1).sample(names, 50))
    assert not accepts(compiled, '"choice number 3000"')


def test_bytes_and_dictionaries_are_no_special_case():
    assert accepts(compile(bytes, BYTES), '"abc"')
    compiled = compile(TypeAdapter(dict[str, int]), BYTES)
    assert accepts(compiled, '{"a": 1, "b": 2}')
    assert not accepts(compiled, '{"a": "x"}')
