"""What is written as plain text: choices, patterns, free text, sequences."""

from __future__ import annotations

import enum
import random
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, RootModel, TypeAdapter, ValidationError

import structgen as sg
from structgen.errors import (
    BudgetError,
    OptionError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    ValidationFailedError,
)
from structgen.generator import Generator
from structgen.prompts import schema_text
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary, small_vocabulary
from tests.walks import allowed, generate

BYTES = byte_vocabulary()
WORDS = small_vocabulary(
    ["</think>", "a\n", "\n\n", "x\n\nb", ">{", '": ', "true", "<think>", " é", "</", "<th"]
)


class Answer(BaseModel):
    sure: bool


class Note(BaseModel):
    text: str = Field(max_length=4)
    more: list[int] = Field(default=[], max_length=2)


class Colour(enum.Enum):
    red = "red"
    redder = "redder"
    two = 2
    none = None


class Level(enum.IntEnum):
    low = 1
    high = 10


def fits(schema: Any, text: str) -> bool | None:
    """True: a whole value. None: the beginning of one. False: neither."""
    session = sg.compile(schema, BYTES).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return True if session.accepting else None


TABLE: list[tuple[Any, dict[str, Any], list[str], list[str]]] = [
    # schema, accepted texts with their values, rejected, prefixes
    (Literal["a", "ab", "b c"], {"a": "a", "ab": "ab", "b c": "b c"}, ['"a"', "abc", " a", "c"],
     ["", "b", "b "]),
    (Literal["a"], {"a": "a"}, ["aa", "b"], [""]),
    (Literal["", "x"], {"": "", "x": "x"}, ["y", "xx"], []),
    (Literal[1, 12, True, None, "é"], {"1": 1, "12": 12, "true": True, "null": None, "é": "é"},
     ["2", "True", "121", "None"], ["t", "tru", "n", ""]),
    (Literal[Level.low, "x"], {"1": Level.low, "x": "x"}, ["10", "low"], [""]),
    (Annotated[Literal["a", "b"], Field(description="of two")], {"a": "a"}, ['"a"'], [""]),
    (Colour, {"red": Colour.red, "redder": Colour.redder, "2": Colour.two, "null": Colour.none},
     ['"red"', "reddest", "two"], ["re", "redd", "nul"]),
    (Level, {"1": Level.low, "10": Level.high}, ["0", "100", "low"], [""]),
    (sg.OneOf(["x", "y", "x"]), {"x": "x", "y": "y"}, ["z", "xy"], [""]),
    (sg.OneOf(range(9, 12)), {"9": 9, "10": 10, "11": 11}, ["8", "12"], ["1"]),
    (sg.OneOf([0.5, -1]), {"0.5": 0.5, "-1": -1}, ["0", "1"][1:], ["0.", "-"]),
    (sg.OneOf({"yes": [1], "no": []}), {"yes": [1], "no": []}, ["y" * 2], ["y", "n"]),
    (sg.Regex(r"\d{3}"), {"123": "123", "٣٣٣": "٣٣٣"}, ["1234", "a", '"'], ["", "12"]),
    (sg.Regex(r"[0-9]+(\.[0-9]+)?"), {"1": "1", "1.5": "1.5"}, [".5", "1.5.", "1 "], ["1."]),
    (sg.Regex("a|abc"), {"a": "a", "abc": "abc"}, ["b", "abcd"], ["", "ab"]),
    (sg.Regex("^a.c$"), {"a\\c": "a\\c", 'a"c': 'a"c'}, ["abcd", "a\nc"], ["a"]),
    (sg.Regex("(?i)ja|nein"), {"JA": "JA", "neIN": "neIN"}, ["jaja"], ["NEI"]),
    (sg.Regex(r"\d", dialect="ecma"), {"1": "1"}, ["٣"], [""]),
    (sg.Text(), {"": "", 'a"\\\n\0': 'a"\\\n\0', "é😀": "é😀"}, [], []),
    (sg.Text(max_length=2), {"": "", "é😀": "é😀"}, ["abc", "😀😀😀"], []),
    (sg.Text(min_length=2, max_length=3), {"ab": "ab", "abc": "abc"}, ["abcd"], ["", "é"]),
    (sg.Text(min_length=2), {"ab": "ab", "abc": "abc"}, [], ["", "é"]),
    (sg.Text(stop="."), {".": "", "a.": "a"}, ["a.b", ".."], ["", "a"]),
    (sg.Text(stop="\n\n"), {"a\n\n": "a", "\n\n": "", "a\nb\n\n": "a\nb"}, ["a\n\nb", "\n\n\n"],
     ["a\n", "a\nb"]),
    (sg.Text(stop=["END", "."]), {"END": "", "a.": "a", "ENEND": "EN"}, ["a.E", "ENDEND"],
     ["EN", ""]),
    (sg.Text(stop=["abc", "b"]), {"b": "", "ab": "a"}, ["abc"], ["", "a", "c"]),
    (sg.Text(stop=["xy", "yx"]), {"xy": "", "xxy": "x", "yx": "", "yyx": "y"}, ["xyx"], ["xx"]),
    (sg.Text(stop="aa", max_length=2), {"aa": "", "baa": "b", "abaa": "ab", "bbaa": "bb"},
     ["bbb", "abb", "aaa"], ["a", "bb", "ab", "ba", "bba"]),
    (sg.Sequence("<", sg.Text(stop=">"), Answer),
     {'<a>{"sure": true}': ("a", Answer(sure=True))}, ["a", '<a> {', '<a>{"sure": 1'],
     ["", "<", "<>", '<a>{"su']),
    (sg.Sequence(reason=sg.Text(stop="\n"), team=Literal["a", "ab"]),
     {"x\na": ("x", "a"), "\nab": ("", "ab")}, ['x\n"', "x\nb"], ["x", "x\n"]),
    (sg.Sequence(sg.OneOf(["a", "ab"]), sg.OneOf(["bc", "c"])),
     {"abc": ("ab", "c"), "ac": ("a", "c"), "abbc": ("ab", "bc")}, ["b", "acc"], ["a", "ab"]),
    (sg.Sequence(int, " ", sg.Sequence(bool, sg.Regex("x*"))),
     {"1 true": (1, (True, "")), "12 falsexx": (12, (False, "xx"))}, ["01", "1 x"], ["1", "1 "]),
    (sg.Sequence(list[int], dict[str, bool]), {"[1]{}": ([1], {})}, ["[1] {}", "{}"], ["[1]"]),
    (sg.Sequence({"enum": ["a", 1]}, Literal["b"] | None),
     {'"a"null': ("a", None), '1"b"': (1, "b")}, ["a", "1b"], ["", '"a"']),
    (sg.Thinking(Answer), {'<think>\nhm</think>\n\n{"sure": false}': ("hm", Answer(sure=False))},
     ["hm", "<think>\n</think>{"], ["<think>\n", "<think>\n</thin", "<think>\n</think>\n\n"]),
    (sg.Thinking(Literal["a", "b"], start="", stop="so: ", gap=""), {"hm so: a": ("hm ", "a")},
     ["so: c"], ["so:", "so: "]),
    # These stay JSON.
    (TypeAdapter(Literal["a"]), {'"a"': "a"}, ["a"], ['"']),
    (RootModel[Literal["a"]], {'"a"': RootModel[Literal["a"]]("a")}, ["a"], ['"']),
    (Literal["a"] | None, {'"a"': "a", "null": None}, ["a"], ['"']),
    ({"enum": ["a", "b"]}, {'"a"': "a"}, ["a"], ['"']),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "accepted", "rejected", "prefixes"), TABLE, ids=lambda x: "")
def test_texts_that_fit(schema, accepted, rejected, prefixes):
    compiled = sg.compile(schema, BYTES)
    for text, value in accepted.items():
        assert fits(schema, text) is True, text
        found = compiled.validate(text)
        assert (found, type(found)) == (value, type(value)) or isinstance(found, tuple), text
        assert found == value
    for text in rejected:
        assert fits(schema, text) is False, text
    for text in prefixes:
        assert fits(schema, text) is None, text


@pytest.mark.parametrize(("schema", "accepted", "rejected", "prefixes"), TABLE, ids=lambda x: "")
@pytest.mark.parametrize("vocabulary", [BYTES, WORDS], ids=["bytes", "words"])
def test_whatever_is_generated_validates(schema, accepted, rejected, prefixes, vocabulary):
    rng = random.Random(7)
    compiled = sg.compile(schema, vocabulary)
    for _ in range(8):
        budget = compiled.min_tokens + rng.randint(0, 25)
        text, _ = generate(compiled.session, vocabulary, rng, budget)
        compiled.validate(text)
        assert text.decode() or compiled.min_tokens == 0


REFUSED: list[tuple[Any, str]] = [
    (Literal["1", 1], "the choices '1' and 1 are both written '1'"),
    (sg.OneOf([True, "true"]), "both written 'true'"),
    (sg.OneOf(["a", object]), "has no JSON form"),
    (sg.OneOf([float("nan")]), "has no JSON form"),
    (sg.OneOf([]), "the set of choices is empty"),
    (sg.OneOf(["\ud800"]), "lone surrogate"),
    (sg.Sequence("\ud800", int), "lone surrogate"),
    (sg.Regex("("), "the pattern cannot be enforced"),
    (sg.Regex(r"(a)\1"), "the pattern cannot be enforced"),
    (sg.Regex("[01]*1[01]{30}"), "the pattern cannot be enforced"),
    (sg.Sequence(a=int, b=sg.Regex("(")), "$.b: the pattern"),
    (sg.Sequence(int, sg.Sequence(x=complex)), "$[1].x: "),
    (sg.Sequence(sg.Text(), sg.Text()), "$[0]: nothing tells this text from the one at $[1]"),
    (sg.Sequence(sg.Text(), "", sg.Regex("a*"), sg.Text()), "$[0]: nothing tells"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "problem"), REFUSED, ids=lambda x: "")
def test_refused_schemas(schema, problem):
    with pytest.raises(UnsupportedSchemaError) as caught:
        sg.check(schema)
    assert problem in str(caught.value)


def test_all_faults_of_all_parts_come_at_once():
    schema = sg.Sequence(a=complex, b=sg.OneOf([1, "1"]), c=sg.Regex("("))
    with pytest.raises(UnsupportedSchemaError) as caught:
        sg.check(schema)
    assert [fault.path for fault in caught.value.faults] == ["$.a", "$.b", "$.c"]


def test_impossible_parts():
    class Endless(BaseModel):
        more: "Endless"  # noqa: UP037

    with pytest.raises(UnsatisfiableSchemaError, match=r"\$\.it\.more: "):
        sg.check(sg.Sequence(it=Endless))
    with pytest.raises(UnsatisfiableSchemaError, match=r"\$: no text agrees"):
        sg.check(sg.Text(min_length=3, max_length=2))
    with pytest.raises(UnsatisfiableSchemaError, match=r"\$: "):
        sg.check(sg.Regex("[^\\s\\S]"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: sg.Regex(3),
        lambda: sg.Regex("a", dialect="perl"),
        lambda: sg.OneOf("abc"),
        lambda: sg.OneOf(3),
        lambda: sg.Text(max_tokens=0),
        lambda: sg.Text(min_length=-1),
        lambda: sg.Text(max_length=1.5),
        lambda: sg.Text(max_tokens=True),
        lambda: sg.Text(stop=""),
        lambda: sg.Text(stop=[]),
        lambda: sg.Text(stop=["a", 1]),
        lambda: sg.Text(stop="\ud800"),
        lambda: sg.Text(stop=3),
        lambda: sg.Sequence("a"),
        lambda: sg.Sequence(),
        lambda: sg.Sequence(int, a=int),
        lambda: sg.Sequence(_a=int),
    ],
)
def test_arguments_that_make_no_sense(make):
    with pytest.raises(OptionError):
        make()


ODD = [Literal["a"], Colour, sg.Regex("a"), sg.Text(stop="x"), sg.Sequence("a", int)]


@pytest.mark.parametrize("schema", ODD, ids=str)
def test_a_text_that_does_not_fit_is_an_error(schema):
    with pytest.raises(ValidationFailedError):
        sg.compile(schema, BYTES).validate("zzz")


def test_validators_of_a_choice_and_of_a_part_run():
    def no(value: Any) -> Any:
        raise ValueError("never")

    choice = sg.compile(Annotated[Literal["a"], AfterValidator(no)], BYTES)
    assert choice.validators == ("$",)
    with pytest.raises(ValidationFailedError, match="never") as caught:
        choice.validate("a")
    assert isinstance(caught.value.cause, ValidationError)
    parts = sg.compile(sg.Sequence(a=int, b=Annotated[int, AfterValidator(no)]), BYTES)
    assert parts.validators == ("$.b",)
    with pytest.raises(ValidationFailedError, match="never"):
        parts.validate("12")


SPLITS: list[tuple[sg.Sequence[Any], str, tuple[Any, ...]]] = [
    (sg.Sequence(sg.Text(), int), "I count 123", ("I count ", 123)),
    (sg.Sequence(sg.Text(), int), "-5", ("", -5)),
    (sg.Sequence(sg.Text(), int), "007", ("00", 7)),
    (sg.Sequence(int, sg.Text()), "12 apples", (12, " apples")),
    (sg.Sequence(int, sg.Text()), "1.5", (1, ".5")),
    (sg.Sequence(float, sg.Text()), "1.5e3e", (1500.0, "e")),
    (sg.Sequence(sg.Text(), Answer), 'a {"sure": true} or {"sure": false}',
     ('a {"sure": true} or ', Answer(sure=False))),
    (sg.Sequence(sg.Text(), list[Any]), "[1, [2]]", ("", [1, [2]])),
    (sg.Sequence(sg.Text(), "END", sg.Text()), "aENDbENDc", ("a", "bENDc")),
    (sg.Sequence(sg.Text(max_length=1), sg.Regex("a*")), "aaa", ("", "aaa")),
    (sg.Sequence(sg.Regex("a*"), sg.Regex("a*")), "aaa", ("aaa", "")),
    (sg.Sequence(sg.Regex("a*"), sg.Regex("a+")), "aaa", ("aa", "a")),
    (sg.Sequence(sg.Sequence(sg.Text(), int), sg.Regex("[0-9]")), "x123", (("x", 12), "3")),
    (sg.Sequence(sg.Text(), Literal["a", "aa"]), "aaa", ("a", "aa")),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "value"), SPLITS, ids=lambda x: "")
def test_how_a_text_is_split(schema, text, value):
    assert fits(schema, text)
    assert sg.compile(schema, BYTES).validate(text) == value


def test_splitting_takes_no_exponential_time():
    parts = [sg.Regex("a*") for _ in range(12)]
    compiled = sg.compile(sg.Sequence(*parts, "b"), BYTES)
    with pytest.raises(ValidationFailedError):
        compiled.validate("a" * 40)


def test_names_make_a_named_tuple():
    value = sg.compile(sg.Sequence("- ", why=sg.Text(stop="\n"), sep="= ", it=int), BYTES).validate(
        "- because\n= 3"
    )
    assert (value.why, value.it) == ("because", 3)
    assert value._fields == ("why", "it")


# Token limits of free text.


def run(schema: Any, vocabulary: sg.Vocabulary, rng: random.Random, budget: int | None = None):
    compiled = sg.compile(schema, vocabulary)
    text, taken = generate(compiled.session, vocabulary, rng, budget)
    return compiled.validate(text), taken


@pytest.mark.parametrize("budget", [None, 200])
def test_a_text_ends_when_its_tokens_are_used_up(budget):
    rng = random.Random(3)

    def letters(session, vocabulary, rng):
        ids = [t for t in allowed(session) if t not in b"<.}" and t < 256]
        return rng.choice(ids or allowed(session))

    compiled = sg.compile(sg.Thinking(Answer, max_tokens=9), BYTES)
    for _ in range(5):
        text, _ = generate(compiled.session, BYTES, rng, budget, letters)
        thought = compiled.validate(text).thought
        assert 9 <= len(thought.encode()) < 9 + 4, "the last character is completed"
        thought.encode().decode()


def test_without_a_stop_the_readings_in_which_the_text_goes_on_are_given_up():
    compiled = sg.compile(sg.Sequence(sg.Text(max_tokens=4), Answer), BYTES)
    session = compiled.session()
    for byte in b'a{"s':
        assert session.allows(ord("z")) or byte != ord("a")
        session.advance(byte)
    # Four tokens are written: what was begun as an object goes on as one, or one begins now.
    assert {chr(t) for t in allowed(session)} == {"u", "{"}
    session.advance(ord("u"))
    assert {chr(t) for t in allowed(session)} == {"r"}


def test_a_text_alone_is_complete_when_its_tokens_are_used_up():
    session = sg.compile(sg.Text(max_tokens=2), BYTES).session()
    session.advance(ord("a"))
    assert not session.complete
    session.advance(ord("b"))
    assert session.complete
    assert allowed(session) == list(BYTES.eos_token_ids)


def test_each_text_has_tokens_of_its_own_even_if_it_is_the_same_object():
    text = sg.Text(stop=";", max_tokens=3)
    session = sg.compile(sg.Sequence(text, text), BYTES).session()
    for byte in b"abc;defg"[:7]:
        session.advance(byte)
    assert [chr(t) for t in allowed(session)] == [";"]


def test_limited_texts_fork_and_roll_back():
    compiled = sg.compile(sg.Sequence(sg.Text(stop=";", max_tokens=3), sg.Regex("x*")), BYTES)
    session = compiled.session(40)
    for byte in b"ab":
        session.advance(byte)
    before = session.mask().tolist()
    twin = session.fork()
    twin.advance(ord("c"))
    assert [chr(t) for t in allowed(twin)] == [";"]
    assert session.mask().tolist() == before
    twin.advance(ord(";"))
    twin.rollback(2)
    assert twin.mask().tolist() == before
    twin.advance(ord("d"))
    assert [chr(t) for t in allowed(twin)] == [";"]
    twin.rollback(3)
    for byte in b"ab":
        twin.advance(byte)
    assert twin.mask().tolist() == before


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_the_rest_always_fits_into_the_budget(limit):
    rng = random.Random(limit)
    schema = sg.Thinking(Answer, max_tokens=limit)
    shortest = sg.compile(schema, WORDS).min_tokens
    for budget in range(shortest, shortest + 12):
        value, taken = run(schema, WORDS, rng, budget)
        assert isinstance(value.answer, Answer)
        assert len(taken) <= budget
    with pytest.raises(BudgetError):
        sg.compile(schema, WORDS).session(shortest - 1)


# Everything that takes a schema takes these too.


def test_generate_and_generators_take_them():
    lm = ScriptedLM(small_vocabulary([]), "hm.</think>\n\nbilling")
    schema = sg.Thinking(Literal["billing", "sales"], start="")
    result = Generator(schema, lm, schema_prompt=False).run("Which team?")
    assert result.value == sg.Thought("hm.", "billing")
    assert result.labels["$.answer"].label == "billing"
    assert sg.generate(Colour, "?", lm=RandomLM(BYTES)) in Colour
    value = sg.generate(sg.OneOf({"a": 1, "b": 2}), "?", lm=RandomLM(BYTES), do_sample=True, seed=3)
    assert value in (1, 2)


def test_forced_constants_are_written_without_the_model():
    vocabulary = small_vocabulary(["<think>\n", "</think>\n\n"])
    session = sg.compile(sg.Thinking(Answer), vocabulary).session()
    assert vocabulary.decode(session.forced()) == b"<think>\n"


def test_equal_content_is_compiled_once():
    one = sg.compile(sg.Sequence("a", sg.Text(stop="x", max_tokens=3), int), BYTES)
    two = sg.compile(sg.Sequence("a", sg.Text(stop="x", max_tokens=3), int), BYTES)
    other = sg.compile(sg.Sequence("a", sg.Text(stop="x", max_tokens=4), int), BYTES)
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert one.program is two.program
    assert (
        sg.compile(Literal["a"], BYTES).fingerprint
        != sg.compile({"enum": ["a"]}, BYTES).fingerprint
    )
    choices = sg.compile(sg.OneOf({"a": 1}), BYTES), sg.compile(sg.OneOf({"a": 2}), BYTES)
    assert [compiled.validate("a") for compiled in choices] == [1, 2]


def test_definitions_of_the_same_name_are_told_apart():
    def tree(kind: Any) -> Any:
        class Tree(BaseModel):
            value: kind
            kids: list["Tree"] = Field(max_length=1)  # noqa: UP037

        return Tree

    ints, bools = tree(int), tree(bool)
    schema = sg.Sequence(ints, bools, ints)
    text = '{"value": 1, "kids": []}{"value": true, "kids": []}{"value": 2, "kids": []}'
    assert fits(schema, text) is True
    assert fits(schema, text.replace("true", "3")) is False
    assert fits(schema, '{"value": 1, "kids": [{"value": true') is False


PROMPTS: list[tuple[Any, str]] = [
    (Literal["b", "a"], "Answer with one of these, and nothing else:\nb or a"),
    (sg.Regex("a+"), "Answer in this form, and with nothing else:\ntext (matching a+)"),
    (sg.Text(max_tokens=3), ""),
    (sg.Sequence("A: ", sg.Text(stop="\n"), int),
     'Answer in this form, and with nothing else:\n'
     '"A: "\nthen text up to "\\n"\nthen whole number'),
    (int, "Answer with one JSON value of this form, and nothing else:\nwhole number"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text"), PROMPTS, ids=lambda x: "")
def test_the_prompt_says_what_is_asked_for(schema, text):
    assert schema_text(sg.compile(schema, BYTES).schema, True) == text


def test_explain_has_a_row_for_each_part():
    found = sg.explain(
        sg.Sequence("A: ", why=sg.Text(stop="\n", max_tokens=9), team=Colour, it=Answer)
    )
    rows = {field.path: field.enforced for field in found.fields}
    assert rows == {
        "$": 'sequence of "A: ", $.why, $.team, $.it',
        "$.why": 'text (at most 9 tokens) up to "\\n"',
        "$.team": "red or redder or 2 or null",
        "$.it": "object of 1 field (no other keys)",
        "$.it.sure": "true or false",
    }


def test_lint_finds_what_is_in_the_parts():
    class Bad(BaseModel):
        text: str

    found = {(finding.code, finding.path) for finding in sg.lint(sg.Sequence(sg.Text(), Bad))}
    assert ("SG108", "$[1].text") in found

    class Silent(BaseModel):
        text: str = Field(json_schema_extra={"structgen_ignore": ["SG108"]})

    assert "SG108" not in {finding.code for finding in sg.lint(sg.Sequence("A: ", it=Silent))}
    assert sg.lint(sg.Regex("a+")) == sg.lint(sg.Text()) == []
    assert [f.code for f in sg.lint(Literal["a", "A"])] == ["SG202"]


def test_a_real_model_thinks_and_then_answers(smollm2):
    schema = sg.Thinking(Literal["positive", "negative"], max_tokens=8)
    result = Generator(schema, smollm2, max_new_tokens=40).run("I love this film!")
    assert result.value.answer in ("positive", "negative")
    assert 0 < len(smollm2.vocabulary.encode(result.value.thought)) <= 12
    assert result.text.startswith("<think>\n")
    assert result.usage.forced_tokens > 0
