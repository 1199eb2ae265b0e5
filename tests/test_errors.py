"""Every mistake has its own error, which says where it is and what to do."""

# ruff: noqa: UP007  # users write types in the older spellings too

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    TypeAdapter,
    create_model,
)
from pydantic.dataclasses import dataclass

from structgen.compiler import compile  # noqa: A004
from structgen.errors import (
    BudgetError,
    Fault,
    InvalidTextError,
    LimitError,
    OptionError,
    SchemaError,
    StructgenError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    VocabularyError,
)
from structgen.options import Limits
from structgen.prompts import check_prompt
from structgen.schema.functions import arguments_of
from structgen.schema.roots import OneOf, SomeOf
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.strategies import examples
from tests.walks import compile_nodes, generate
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()


def without(*missing: int | str, tokens: tuple[bytes, ...] = ()) -> Vocabulary:
    """All single bytes but some; ids are bytes."""
    gone = {ord(m) if isinstance(m, str) else m for m in missing}
    singles: list[bytes | None] = [None if b in gone else bytes([b]) for b in range(256)]
    return Vocabulary.from_bytes([*singles, *tokens], 300)


class Plain(enum.Enum):
    a = (1, 2)


class NoMembers(enum.Enum):
    pass


@dataclass
class Data:
    a: int


class Pair(NamedTuple):
    a: int


UNSUPPORTED: list[tuple[Any, str]] = [
    (complex, "'complex' is not supported"),
    (Callable[[int], int], "'callable' is not supported"),
    (NoMembers, "(NoMembers) is not supported"),
    (Plain, "the choice (1, 2) has no JSON form"),
    (Literal[b"x"], "the choice b'x' has no JSON form (use a str or an int)"),
    (Annotated[int, PlainValidator(int)], "a function decides alone what is valid"),
    (Annotated[str, StringConstraints(to_lower=True)], "to_lower=True of type 'str'"),
]


@pytest.mark.parametrize(("source", "problem"), UNSUPPORTED, ids=lambda x: str(x)[:40])
def test_unsupported_types(source, problem):
    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(source, BYTES)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].path == "$"
    assert problem in str(caught.value)


@pytest.mark.parametrize(("source", "problem"), UNSUPPORTED, ids=lambda x: str(x)[:40])
def test_unsupported_types_anywhere(source, problem):
    inner = create_model("Inner", odd=(source, ...))
    model = create_model(
        "Outer", a=(list[inner], ...), b=(dict[str, source], ...), c=(source, Field(alias="C c"))
    )
    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(model, BYTES)
    paths = [fault.path for fault in caught.value.faults]
    everywhere = ["$.a[*].odd", "$.b.*", "$.C c"]
    assert paths in (everywhere, everywhere[:1])  # classes are read, and reported, once
    assert all(problem in str(fault) for fault in caught.value.faults)


@pytest.mark.parametrize("key", [tuple[int, int], frozenset[str]])
def test_unsupported_keys(key):
    model = create_model("M", a=(dict[key, int], ...))
    with pytest.raises(UnsupportedSchemaError, match=r"\$\.a\.<key>: keys of type") as caught:
        compile(model, BYTES)
    assert caught.value.faults[0].advice.startswith("use str")


def test_more_free_keys_than_there_are_cannot_be_demanded():
    key = Annotated[str, StringConstraints(pattern="^[ab]$")]
    source = Annotated[dict[key, int], Field(min_length=3)]
    with pytest.raises(UnsupportedSchemaError, match=r"\$: at least 3 properties are needed"):
        compile(source, BYTES)


@pytest.mark.parametrize("setting", ["str_to_lower", "str_to_upper"])
def test_settings_that_change_text(setting):
    model = create_model("M", __config__=ConfigDict(**{setting: True}), a=(str, ...), b=(int, ...))
    for source in (model, list[model]):
        with pytest.raises(UnsupportedSchemaError, match=f"a: the model setting {setting} cannot"):
            compile(source, BYTES)
    with pytest.raises(UnsupportedSchemaError, match=setting):
        compile(TypeAdapter(str, config=ConfigDict(**{setting: True})), BYTES)
    harmless = create_model("M", __config__=ConfigDict(**{setting: True}), b=(int, ...))
    compile(harmless, BYTES)


def test_all_faults_are_reported_at_once():
    class Inner(BaseModel):
        odd: complex

    class Bad(BaseModel):
        a: complex
        fine: int
        b: Annotated[str, StringConstraints(to_lower=True)]
        c: list[Inner] = []
        d: dict[tuple[int, int], str] | None = None
        e: Annotated[str, StringConstraints(to_upper=True)] | complex

    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(Bad, BYTES)
    error = caught.value
    paths = ["$.a", "$.b", "$.c[*].odd", "$.d.<key>", "$.e", "$.e"]
    assert [fault.path for fault in error.faults] == paths
    assert error.schema == "Bad"
    assert isinstance(error, SchemaError)
    lines = str(error).splitlines()
    assert lines[0] == "Bad cannot be compiled:"
    assert lines[1:] == [f"  {fault}" for fault in error.faults]


def test_alias_faults():
    class Paths(BaseModel):
        a: int = Field(validation_alias=AliasPath("a", 0))
        b: int = Field(validation_alias=AliasChoices(AliasPath("b", "c"), "b"))

    with pytest.raises(UnsupportedSchemaError) as caught:
        compile(Paths, BYTES)
    assert [fault.path for fault in caught.value.faults] == ["$.a", "$.b"]
    assert "the alias path ['a', 0] is not supported (use a plain alias)" in str(caught.value)

    class Twice(BaseModel):
        a: int = Field(alias="k")
        b: int = Field(alias="k")

    with pytest.raises(UnsupportedSchemaError, match=r"\$\.b: the alias.*'k'.*'a'"):
        compile(Twice, BYTES)


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    x: int = Field(alias="y")
    y: str = Field("d", alias="z")


class Choices(BaseModel):
    x: int = Field(1, validation_alias=AliasChoices("a", "b"))
    b: str


@pytest.mark.parametrize("model", [ByName, Choices])
def test_names_that_stand_for_two_fields(model):
    """Validation would read one value into both."""
    with pytest.raises(UnsupportedSchemaError, match="also stands for the field 'x'"):
        compile(model, BYTES)


@pytest.mark.parametrize(
    ("config", "field", "key"),
    [
        ({"validate_by_name": True, "validate_by_alias": True}, Field(1, alias="X"), "x"),
        ({"populate_by_name": True}, Field(1, alias="X"), "x"),
        ({}, Field(1, validation_alias=AliasChoices("X", "x")), "x"),
        ({}, Field(1, validation_alias=AliasChoices("X", AliasPath("x", 0))), "x"),
    ],
)
def test_undeclared_keys_are_no_second_name_of_a_field(config, field, key):
    """Such a key would be read as the field, whose type its value need not have."""
    model = create_model("M", __config__=ConfigDict(extra="allow", **config), x=(int, field))
    session = compile(model, BYTES).session()
    for byte in b'{"' + key.encode():
        session.advance(byte)
    assert not session.allows(ord('"'))
    session.advance(ord("y"))
    assert session.allows(ord('"'))


def pick_tag(value: Any) -> str:
    return "a"


def test_what_a_callable_discriminator_says_is_checked_afterwards():
    source = Annotated[Annotated[int, Tag("a")] | Annotated[str, Tag("b")], Discriminator(pick_tag)]
    model = create_model("M", a=(source, ...))
    assert "$.a" in compile(model, BYTES).validators


@pytest.mark.parametrize("source", [5, len, "Undefined", Literal["\ud800"], {1: 2}])
def test_sources_that_are_no_schema(source):
    with pytest.raises(UnsupportedSchemaError, match=r"\$(\.obj)?: "):
        compile(source, BYTES)


def test_a_misspelt_keyword_is_refused_by_name():
    with pytest.raises(UnsupportedSchemaError, match="did you mean 'required'"):
        compile({"type": "object", "requred": []}, BYTES)


def test_a_pattern_whose_automaton_is_too_large_is_refused():
    with pytest.raises(UnsupportedSchemaError, match="too large"):
        compile({"type": "string", "pattern": "^[01]*1[01]{30}$"}, BYTES)


def test_lone_surrogates_in_choices():
    odd = enum.Enum("odd", {"a": "\udc00", "b": "fine"})
    with pytest.raises(UnsupportedSchemaError, match=r"\$: [\s\S]*(surrogate|extract)"):
        compile(odd, BYTES)


def test_undefined_names():
    class Open(BaseModel):
        a: Nowhere  # noqa: F821

    with pytest.raises(UnsupportedSchemaError, match="Nowhere"):
        compile(Open, BYTES)


IMPOSSIBLE: list[tuple[Any, str]] = [
    (Annotated[int, Field(gt=3, lt=4)], "no integer is at least 4 and at most 3"),
    (Annotated[str, Field(min_length=3, max_length=2)], "min_length 3 is more than max_length 2"),
    (Annotated[list[int], Field(min_length=3, max_length=2)], "min_items 3 is more than max_items"),
    (Annotated[float, Field(gt=1, lt=1)], "no number is > 1.0 and < 1.0"),
    (Annotated[float, Field(ge=2, le=1)], "no number is >= 2.0 and <= 1.0"),
]


def test_numbers_too_small_to_be_written():
    """There are such numbers, so the bounds do not contradict each other."""
    with pytest.raises(UnsupportedSchemaError, match="at most 20 digits after the point"):
        compile(Annotated[float, Field(gt=0, lt=1e-25)], BYTES)


@pytest.mark.parametrize(("source", "problem"), IMPOSSIBLE, ids=lambda x: str(x)[-40:])
def test_contradictory_bounds(source, problem):
    """They are the author's mistake also where the field may be left out."""
    model = create_model(
        "M", a=(source, ...), b=(source, None), c=(Union[source, None], None), d=(list[source], [])
    )
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        compile(model, BYTES)
    assert [fault.path for fault in caught.value.faults] == ["$.a", "$.b", "$.c", "$.d[*]"]
    assert str(caught.value).count(problem) == 4
    with pytest.raises(UnsatisfiableSchemaError, match=r"\$: "):
        compile(source, BYTES)


class Endless(BaseModel):
    again: Endless


class Ping(BaseModel):
    pong: Pong


class Pong(BaseModel):
    pings: list[Ping] = Field(min_length=1)


class Ends(BaseModel):
    nothing: Endless | None
    none: list[Endless] = []


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (Endless, "$.again"),
        (Ping, "$.pong.pings[*]"),
        (create_model("M", a=(int, 1), b=(Endless, ...)), "$.b.again"),
        (Annotated[list[Endless], Field(min_length=1)], "$[*].again"),
        (Union[Endless, Ping], "$.again"),
    ],
)
def test_recursion_without_end(source, path):
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        compile(source, BYTES)
    assert caught.value.faults[0].path == path
    assert "contains itself" in caught.value.faults[0].problem
    assert "optional" in caught.value.faults[0].advice


def test_endless_parts_that_can_be_left_out_are_never_begun():
    compiled = compile(Ends, BYTES)
    rng = random.Random(0)
    found = {generate(compiled.session, BYTES, rng, compiled.min_tokens + n)[0] for n in range(40)}
    assert found == {b'{"nothing": null}', b'{"nothing": null, "none": []}'}


def test_require_all_can_make_a_recursion_endless():
    model = create_model("M", again=("M | None", None), other=("M", None))
    model.model_rebuild(_types_namespace={"M": model})
    compile(model, BYTES)
    with pytest.raises(UnsatisfiableSchemaError, match=r"other"):
        compile(model, BYTES, require_all=True)


# Limits.


def nested_models(levels: int) -> Any:
    model: Any = int
    for level in range(levels):
        model = create_model(f"D{level}", a=(model, ...))
    return model


def nested_lists(levels: int) -> Any:
    kind: Any = int
    for _ in range(levels):
        kind = Annotated[list[kind], Field(min_length=1)]
    return kind


@pytest.mark.parametrize("levels", [1, 10, 60])
def test_nested_models(levels):
    compiled = compile(nested_models(levels), BYTES)
    shortest = '{"a": ' * levels + "0" + "}" * levels
    assert compiled.min_tokens == len(shortest)
    compiled.validate(shortest)


@pytest.mark.parametrize("levels", [200, 400])
@pytest.mark.parametrize("make", [nested_models, nested_lists])
def test_nesting_that_is_too_deep(make, levels):
    with pytest.raises(LimitError, match="nested"):
        compile(make(levels), BYTES)


@pytest.mark.parametrize(
    ("source", "limits", "message"),
    [
        (ZOO["nested"], Limits(max_states=20), "more than Limits.max_states=20"),
        (Literal["abcdefgh"], Limits(max_label_bytes=7), "8 bytes, more than Limits.max_label"),
        (Annotated[str, Field(min_length=2**31)], Limits(), None),
        (Annotated[list[int], Field(min_length=2**29)], Limits(), None),
        (Annotated[list[int], Field(min_length=2**40)], Limits(), None),
    ],
)  # fmt: skip
def test_limits(source, limits, message):
    with pytest.raises(LimitError, match=message):
        compile(source, BYTES, limits=limits)


@pytest.mark.parametrize("bound", [2**29, 2**30, 2**31, 2**40])
def test_huge_upper_bounds_are_no_bounds(bound):
    compile(Annotated[str, Field(max_length=bound)], BYTES).session(5)
    compile(Annotated[list[int], Field(max_length=bound)], BYTES).session(5)


def test_too_many_alternatives():
    """Reading stays bounded however ambiguous a schema is."""

    kind: Any = int
    for _ in range(7):
        kind = Union[list[kind], list[kind | None], list[kind | bool]]
    compiled = compile(kind, BYTES, limits=Limits(max_threads=1))
    session = compiled.session()

    def open_all() -> None:
        for _ in range(7):
            session.advance(ord("["))
            session.mask()

    with pytest.raises(LimitError, match=r"too ambiguous: more than Limits\.max_threads=1 "):
        open_all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compile(int, BYTES).validate(5), InvalidTextError, "str or bytes, got int"),
        (lambda: arguments_of(5), OptionError, "arguments_of takes .*, got 5"),
        (lambda: Vocabulary.from_bytes(["a"], 0), VocabularyError, "token 0 is 'a'"),
        (lambda: Vocabulary.from_bytes([], 0), VocabularyError, "no tokens"),
        (lambda: check_prompt([]), InvalidTextError, "empty list"),
        (lambda: compile('{"type": "string"}', BYTES), UnsupportedSchemaError, r"json\.loads"),
        (lambda: compile({"enum": [object()]}, BYTES), UnsupportedSchemaError, "an object is not"),
        (lambda: compile({1: 2}, BYTES), UnsupportedSchemaError, "but an int"),
    ],
)
def test_what_is_passed_by_mistake(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Options.


@pytest.mark.parametrize("layout", ["pretty", "", None, 3, "SPACED"])
def test_unknown_layouts(layout):
    with pytest.raises(OptionError, match="use one of") as caught:
        compile(int, BYTES, layout=layout)
    assert repr(layout) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", None])
@pytest.mark.parametrize("limit", ["max_states", "max_depth", "cache_bytes", "max_threads"])
def test_bad_limits(limit, value):
    with pytest.raises(OptionError, match=rf"Limits\.{limit}={value!r} must be a whole number"):
        compile(int, BYTES, limits=Limits(**{limit: value}))


@pytest.mark.parametrize("vocabulary", [None, "gpt2", object(), []])
def test_vocabularies_of_another_kind(vocabulary):
    with pytest.raises(OptionError, match=r"must be a structgen\.Vocabulary, got"):
        compile(int, vocabulary)


def test_budgets_name_the_schema():
    with pytest.raises(BudgetError, match="shortest value of Ends, which takes 17"):
        compile(Ends, BYTES).session(16)


# Vocabularies that lack bytes.


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (ZOO["nested"], "{"), (ZOO["nested"], '"'), (ZOO["nested"], "}"), (ZOO["nested"], "z"),
        (ZOO["list"], "["), (ZOO["list"], "]"), (ZOO["exact list"], ","), (str, '"'), (bool, "e"),
        (Literal["é"], 0xA9), (Annotated[int, Field(ge=5, le=5)], "5"), (None, "u"),
    ],
)  # fmt: skip
def test_bytes_that_every_value_needs(source, missing):
    with pytest.raises(VocabularyError) as caught:
        compile(source, without(missing))
    byte = ord(missing) if isinstance(missing, str) else missing
    assert byte in caught.value.missing_bytes
    assert f"0x{byte:02X}" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (str, "a"), (str, "\\"), (str, 0xC3), (str, 0x80), (int, "-"), (int, "7"), (float, "."),
        (float, "e"), (ZOO["list"], ","), (ZOO["bounded int"], "1"),
        (Union[int, None], "n"), (ZOO["any"], "["), (ZOO["any"], "{"),
        (ZOO["union"], "]"), (ZOO["dict"], ","), (ZOO["defaults"], "c"), (ZOO["any"], '"'),
        (Union[Annotated[list[int], Field(min_length=2)], int], ","),
    ],
)  # fmt: skip
def test_bytes_that_some_values_can_do_without(source, missing):
    vocabulary = without(missing, tokens=(b"ab", b'": ', b"1]", b"\xc3\xa9"))
    compiled = compile(source, vocabulary)
    rng = random.Random(0)
    for extra in range(40):
        text, _ = generate(compiled.session, vocabulary, rng, compiled.min_tokens + extra)
        compiled.validate(text)


@pytest.mark.parametrize(
    "source", [Literal["xé", "ab", "ü"], OneOf(["xé", "ab", "ü"]), SomeOf(["ab", "ü", "xé"])]
)
def test_labels_that_cannot_be_written_are_named_together(source):
    for _ in range(2):
        with pytest.raises(VocabularyError, match=r"cannot write 2 of 3 labels") as caught:
            compile(source, without(0xC3))
        assert "'xé'" in str(caught.value)
        assert "'ü'" in str(caught.value)
        assert caught.value.missing_bytes == (0xC3,)
    compile(source, without(0xC3, tokens=(b"\xc3\xa9", b"\xc3\xbc")))
    # Who forbids tokens wants to do without what they write.
    compile(source, BYTES, banned_token_ids=[0xC3])


def test_a_label_in_quotes_that_cannot_be_written_is_shown_as_it_is():
    with pytest.raises(VocabularyError, match=r"""among them '"a"é"';"""):
        compile(OneOf(['"a"é"', "ok"]), without(0xC3))


def test_of_many_labels_that_cannot_be_written_a_few_are_named():
    labels = [f"é{i}" for i in range(1000)] + [f"e{i}" for i in range(1000)]
    with pytest.raises(VocabularyError, match=r"cannot write 1000 of 2000 labels") as caught:
        compile(Literal[tuple(labels)], without(0xC3))  # pyright: ignore[reportInvalidTypeForm]
    assert len(str(caught.value)) < 400


@examples(60)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_missing_bytes_are_an_error_or_no_obstacle(schema, seed):
    rng = random.Random(seed)
    missing = rng.sample(range(256), rng.choice([1, 3, 100]))
    missing += rng.sample(list(b'{}[],:" -.0123ntfeu\\'), rng.choice([0, 1, 2]))
    vocabulary = without(*missing, tokens=(b'{"', b'"}', b", ", b'"a"', b"null", b"1"))
    try:
        compiled = compile_nodes(schema, vocabulary)
    except VocabularyError as error:
        named = error.missing_bytes
    else:
        named = ()
        for extra in (0, 1, 2, 5, 20):
            generate(compiled.session, vocabulary, rng, compiled.min_tokens + extra)
    assert set(named) <= set(missing)


def test_the_tree_of_errors():
    assert issubclass(SchemaError, StructgenError)
    assert str(Fault("$.a", "bad", "do this")) == "$.a: bad (do this)"
    assert str(Fault("$.a", "bad")) == "$.a: bad"
