"""Values that are still being written: what is shown of them, whatever the text is cut at."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import json
import logging
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    PrivateAttr,
    RootModel,
    SecretStr,
    Tag,
    TypeAdapter,
    ValidationError,
    computed_field,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

import structgen as sg
from structgen.partial import PartialValues
from tests.shapes.types import sample
from tests.strategies import examples


def shown(source: Any, text: str) -> Any:
    """What is shown of a text that is read all at once."""
    return PartialValues(source).of_text().at(text)


def stages(source: Any, text: str) -> list[Any]:
    """What is shown of every beginning of a text, without repeats."""
    partial = PartialValues(source).of_text()
    found: list[Any] = []
    for end in range(len(text) + 1):
        value = partial.at(text[:end])
        if not found or (type(found[-1]), found[-1]) != (type(value), value):
            found.append(value)
    return found


# Plain data, against a slow twin that completes the text and parses it.


def completed(text: str) -> Any:
    """The data of a beginning of a JSON text; the slow way, None where there is none."""
    for cut in range(len(text), 0, -1):
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "S", text[:cut])
        in_number = '"' not in bare and re.search(r"[0-9]\Z", bare)
        if not in_number or not re.match(r"[-+.0-9eE]|\Z", text[cut:]):
            try:
                return json.loads(text[:cut] + closing(bare))
            except ValueError:
                continue
    return None


def closing(bare: str) -> str:
    """What closes everything that is open in a text whose finished strings are left out."""
    opened: list[str] = []
    for char in bare.partition('"')[0]:
        if char in "{[":
            opened.append("}" if char == "{" else "]")
        elif char in "}]":
            opened.pop()
    return '"' * ('"' in bare) + "".join(reversed(opened))


def without_open_escape(text: str) -> bool:
    return not re.search(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?$", text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('ab"\\\n\x00\u20ac\U0001f600{}[]:, 1', max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text('a"\\\U0001f600{', max_size=2), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@examples(200)
@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.randoms())
def test_plain_data_is_what_the_completed_text_says(value, ascii_only, indent, rng):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    partial = PartialValues({"type": "object"}).of_text()
    end = 0
    while end < len(text):
        end = min(end + rng.randint(1, 4), len(text))
        if without_open_escape(text[:end]):
            assert partial.at(text[:end]) == completed(text[:end]), text[:end]


# Types, against the value that Pydantic reads in the end.


def agrees(part: Any, whole: Any, undecided: bool) -> bool:
    """Whether a value that may be open shows a beginning of what it becomes.

    Args:
        undecided: there are unions, where plain data is shown before the value closes.
    """
    if (type(part) is type(whole) and part == whole) or (undecided and is_plain(part)):
        return True
    match part:
        case str():
            return isinstance(whole, str) and whole.startswith(part)
        case BaseModel() if type(part) is type(whole):
            extra = {} if isinstance(part, RootModel) else part.__pydantic_extra__ or {}
            return begins({**part.__dict__, **extra}, vars_of(whole), undecided)
        case dict():
            return begins(part, vars_of(whole), undecided)
        case list() if isinstance(whole, list | tuple | collections.deque):
            return begins(dict(enumerate(part)), dict(enumerate(whole)), undecided)
        case list() if isinstance(whole, set | frozenset):
            return all(item in whole for item in part[:-1])
        case _:
            return False


def begins(parts: dict[Any, Any], wholes: dict[Any, Any], undecided: bool) -> bool:
    """Whether all parts but the last, which may be open, are what they become."""
    return all(
        key in wholes
        and agrees(value, wholes[key], undecided)
        and (i == len(parts) - 1 or value == wholes[key] or (undecided and is_plain(value)))
        for i, (key, value) in enumerate(parts.items())
    )


def vars_of(whole: Any) -> dict[Any, Any]:
    """The parts of an object by name."""
    if isinstance(whole, collections.abc.Mapping):
        return dict(whole)
    extra = getattr(whole, "__pydantic_extra__", None) or {}
    return {**vars(whole), **extra} if hasattr(whole, "__dict__") else {}


def is_plain(value: Any) -> bool:
    """Whether it is JSON data."""
    try:
        return json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False


class Complaints(logging.Handler):
    """What was shown without validation."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def complaints() -> Iterator[list[str]]:
    logger = logging.getLogger("structgen")
    handler, level = Complaints(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.messages
    logger.removeHandler(handler)
    logger.setLevel(level)


def check_shown_part_by_part(seed: int, depth: int) -> None:
    made = sample(seed, depth)
    undecided = bool(re.search("'(tagged-union|union|json)'", repr(made.adapter.core_schema)))
    for text in made.texts:
        try:
            whole = made.adapter.validate_json(text)
        except ValidationError:
            continue  # a union's serializer took the value of one option for that of another
        values = PartialValues(made.adapter)
        partial = values.of_text()
        with complaints() as found:
            for end in range(len(text)):
                part = partial.at(text[:end])
                assert part is None or agrees(part, whole, undecided), (text[:end], part, whole)
            last = partial.at(text)
        assert not found
        assert type(last) is type(whole)
        assert last == whole
        middle = random.Random(seed).randrange(len(text))
        assert repr(partial.at(text[:middle])) == repr(values.of_text().at(text[:middle]))


@examples(150)
@given(st.integers(0, 2**64), st.integers(1, 3))
def test_random_types_are_shown_part_by_part(seed, depth):
    check_shown_part_by_part(seed, depth)


@pytest.mark.soak
@examples(5_000)
@given(st.integers(0, 2**64), st.integers(1, 3))
def test_many_random_types_are_shown_part_by_part(seed, depth):
    check_shown_part_by_part(seed, depth)


# What is shown when, case by case.


class Team(enum.Enum):
    sales = "sales"
    support = "support"


class Home(BaseModel):
    city: str
    since: dt.date = dt.date(2000, 1, 1)


class Person(BaseModel):
    name: str
    age: int = 0
    team: Team | None = None
    born: dt.date | None = None
    home: Home | None = None
    tags: set[str] = set()
    scores: dict[int, float] = {}


def fields_of(source: Any, text: str) -> dict[str, Any]:
    """The attributes of what is shown, which is no more than what `model_fields_set` tells."""
    value = shown(source, text)
    assert set(value.__dict__) == value.model_fields_set
    return dict(value.__dict__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", {}),
        ('{"na', {}),
        ('{"name"', {}),
        ('{"name": ', {}),
        ('{"name": "', {"name": ""}),
        ('{"name": "Al', {"name": "Al"}),
        ('{"name": "Al\\', {"name": "Al"}),
        ('{"name": "Al\\n', {"name": "Al\n"}),
        ('{"name": "Al\\u00e', {"name": "Al"}),
        ('{"name": "Al\\ud83d', {"name": "Al"}),
        ('{"name": "Al\\ud83d\\ude0', {"name": "Al"}),
        ('{"name": "Al\\ud83d\\ude00', {"name": "Al😀"}),
        ('{"age": 12', {}),
        ('{"age": 12,', {"age": 12}),
        ('{"team": "sales', {}),
        ('{"team": "sales"', {"team": Team.sales}),
        ('{"team": nul', {}),
        ('{"team": null', {"team": None}),
        ('{"born": "2020-01-0', {}),
        ('{"born": "2020-01-02"', {"born": dt.date(2020, 1, 2)}),
        ('{"tags": ["a", "b', {"tags": ["a", "b"]}),
        ('{"tags": ["a", "b"]', {"tags": {"a", "b"}}),
        ('{"scores": {"1": 2.5, "2": 3', {"scores": {1: 2.5}}),
        ('{"home": {"city": "Os', {"home": {"city": "Os"}}),
        ('{"home": {"city": "Oslo"}', {"home": {"city": "Oslo", "since": dt.date(2000, 1, 1)}}),
    ],
)
def test_a_field_shows_once_it_is_certain(text, expected):
    found = fields_of(Person, text)
    if "home" in found:
        assert isinstance(found["home"], Home)
        found["home"] = found["home"].__dict__
    assert found == expected
    assert [type(value) for value in found.values()] == [type(v) for v in expected.values()]


def test_a_finished_value_is_the_validated_one():
    text = '{"name": "A", "home": {"city": "B"}}'
    assert shown(Person, text) == Person.model_validate_json(text)
    assert shown(Person, text).age == 0


def test_a_partial_value_can_be_written_and_shown():
    value = shown(Person, '{"name": "A", "home": {"city": "B')
    assert value.model_dump(warnings=False) == {"name": "A", "home": {"city": "B"}}
    assert repr(value) == "Person(name='A', home=Home(city='B'))"


def test_earlier_values_stay_as_they_were():
    text = '{"tags": ["a", "b"], "scores": {"1": 2.5, "2": 3.5}}'
    values = stages(Person, text)
    assert [repr(value) for value in values] == [repr(value) for value in stages(Person, text)]
    assert repr(values[1]) == "Person()"


class Named(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True, strict=True)
    first: str = Field(alias="first name")
    last: str = Field(validation_alias=AliasChoices("last name", "surname"))


def test_aliases_lead_to_fields_and_other_keys_to_extras():
    assert fields_of(Named, '{"first name": "A", "last name": "B') == {"first": "A", "last": "B"}
    assert fields_of(Named, '{"first": "A", "surname": "B') == {"first": "A", "last": "B"}
    value = shown(Named, '{"first": "A", "more": ["x"], "most": {"y": 1}, "n": "z')
    assert value.model_extra == {"more": ["x"], "most": {"y": 1}, "n": "z"}
    assert value.n == "z"


def test_keys_that_are_ignored_show_nothing():
    assert fields_of(Home, '{"other": "A", "city": "B') == {"city": "B"}


class Checked(BaseModel):
    n: int
    m: int = 0
    word: str = ""

    @field_validator("n")
    @classmethod
    def even(cls, n):
        if n % 2:
            raise ValueError("odd")
        return n * 10

    @field_validator("m")
    @classmethod
    def greater(cls, m, info):
        return m + info.data["n"]

    @field_validator("word")
    @classmethod
    def named(cls, word, info):
        return f"{info.field_name}={word}"


def test_validators_of_a_field_run_when_it_closes():
    assert fields_of(Checked, '{"n": 2, "word": "x') == {"n": 20, "word": "x"}
    assert fields_of(Checked, '{"n": 2, "word": "x"') == {"n": 20, "word": "word=x"}


def test_what_a_validator_rejects_is_shown_as_it_is_written():
    assert fields_of(Checked, '{"n": 3, "word": "') == {"n": 3, "word": ""}
    rejected = shown(Checked, '{"n": 3}')
    assert isinstance(rejected, Checked)
    assert rejected.__dict__ == {"n": 3}


def test_whatever_a_validator_of_keys_raises_is_left_to_the_finished_value():
    def fail(key: str) -> str:
        raise LookupError(key)

    source = dict[Annotated[str, AfterValidator(fail)], int]
    with complaints() as found:
        assert shown(source, '{"a": 1, ') == {"a": 1}
    assert found == ["shown without validation: the key 'a': a"]
    with pytest.raises(LookupError):
        TypeAdapter(source).validate_json('{"a": 1}')


def test_a_validator_that_needs_other_fields_has_to_wait():
    assert fields_of(Checked, '{"n": 2, "m": 1, ') == {"n": 20, "m": 1}
    assert shown(Checked, '{"n": 2, "m": 1}').m == 21


class Whole(BaseModel):
    home: Home
    n: int = 1
    _seen: int = 0

    @model_validator(mode="after")
    def double(self):
        self.n *= 2
        return self

    @computed_field
    def twice(self) -> int:
        return self.n * 2


def test_validators_of_a_model_run_when_it_closes():
    class Outer(BaseModel):
        inner: Whole
        word: str = ""

    assert fields_of(Outer, '{"inner": {"n": 2, ')["inner"].n == 2
    assert fields_of(Outer, '{"inner": {"n": 2, "home": {"city": ""}}')["inner"].n == 4


class Counted(BaseModel):
    home: Home
    n: int = 1
    _seen: list[int] = PrivateAttr([1])
    _made: list[int] = PrivateAttr(default_factory=list)
    _later: int

    def model_post_init(self, context: Any, /) -> None:
        self._later = self.n + 1


def test_private_attributes_have_plain_defaults_until_the_value_is_validated():
    open_one = shown(Counted, '{"home": {"city": "x')
    assert open_one.home.city == "x"
    assert open_one._seen == [1]
    assert open_one._seen is not shown(Counted, "{")._seen
    for name in ("_made", "_later", "n"):
        with pytest.raises(AttributeError, match=name):
            getattr(open_one, name)
    open_one._later = 5
    assert (open_one.model_copy()._later, open_one == open_one.model_copy()) == (5, True)
    assert repr(open_one) == "Counted(home=Home(city='x'))"

    done = shown(list[Counted], '[{"home": {"city": "x"}, "n": 4}, {"')[0]
    assert (done._seen, done._made, done._later) == ([1], [], 5)


def test_private_attributes_of_a_root():
    class Numbers(RootModel[list[int]]):
        _unit: str = "m"
        _sum: int

        def model_post_init(self, context: Any, /) -> None:
            self._sum = sum(self.root)

    part = shown(Numbers, "[1, 2, ")
    assert (part.root, part._unit) == ([1, 2], "m")
    with pytest.raises(AttributeError, match="_sum"):
        _ = part._sum
    assert shown(Numbers, "[1, 2, 3]")._sum == 6


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    tricks: list[dt.date]
    kind: Literal["dog"]
    name: str = ""


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def test_a_tag_tells_the_model():
    assert shown(Pet, '{"kind": "cat') == {"kind": "cat"}
    assert fields_of(Pet, '{"kind": "cat"') == {"kind": "cat"}
    assert isinstance(shown(Pet, '{"kind": "cat", "l'), Cat)
    open_tag = '{"tricks": ["2020-01-02"], "kind": "dog'
    assert shown(Pet, open_tag) == {"tricks": ["2020-01-02"], "kind": "dog"}
    known = shown(Pet, open_tag + '", "name": "R')
    assert isinstance(known, Dog)
    assert known.__dict__ == {"tricks": [dt.date(2020, 1, 2)], "kind": "dog", "name": "R"}


def test_a_tag_that_a_function_reads_tells_nothing_before_the_end():
    kind = Annotated[
        Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")],
        Discriminator(lambda value: value["kind"]),
    ]
    assert shown(kind, '{"kind": "cat", "lives": 9') == {"kind": "cat"}
    assert shown(kind, '{"kind": "cat", "lives": 9}') == Cat(kind="cat", lives=9)


def test_a_union_is_plain_data_while_several_options_remain():
    assert shown(list[Cat | Home], '[{"city": "A", "since": "2') == [{"city": "A", "since": "2"}]
    assert shown(list[Cat | Home], '[{"city": "A"}, ') == [Home(city="A")]
    only = shown(Cat | list[int] | str | None, '{"kind": "cat", ')
    assert isinstance(only, Cat)
    assert shown(Cat | list[dt.date], '["2020-01-02", "') == [dt.date(2020, 1, 2)]


class Point(NamedTuple):
    when: dt.date
    what: str


class Movie(TypedDict):
    title: str
    seen: dt.date


@dataclasses.dataclass
class Book:
    title: str
    seen: dt.date | None = None


class Tree(BaseModel):
    label: str
    children: list[Tree] = []


class Days(RootModel[list[dt.date]]):
    pass


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        (Point, '["2020-01-02", "a', [dt.date(2020, 1, 2), "a"]),
        (Point, '["2020-01-02", "a"]', Point(dt.date(2020, 1, 2), "a")),
        (Movie, '{"seen": "2020-01-02", "title": "A', {"seen": dt.date(2020, 1, 2), "title": "A"}),
        (Book, '{"seen": "2020-01-02", "title": "A', {"seen": dt.date(2020, 1, 2), "title": "A"}),
        (Book, '{"title": "A"}', Book("A")),
        (tuple[int, dt.date, str], '[1, "2020-01-02", "2', [1, dt.date(2020, 1, 2), "2"]),
        (dict[dt.date, list[int]], '{"2020-01-02": [1, 2', {dt.date(2020, 1, 2): [1]}),
        (collections.deque[int], "[1, 2, ", [1, 2]),
        (collections.deque[int], "[1, 2]", collections.deque([1, 2])),
        (Json[list[int]], '"[1, ', None),
        (Json[list[int]], '"[1, 2]"', [1, 2]),
        (SecretStr, '"a', None),
        (SecretStr, '"a"', SecretStr("a")),
        (Annotated[str, AfterValidator(str.upper)], '"ab', "ab"),
        (Annotated[str, AfterValidator(str.upper)], '"ab"', "AB"),
        (Any, '{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        (str | None, '"a', "a"),
        (TypeAdapter(list[int]), "[1, 2", [1]),
        (bool, "tru", None),
        (bool, "true", True),
        (float, "1.5", None),
        ({"enum": ["a", "ab"]}, '"a', "a"),
        (sg.OneOf({"yes": True}), "yes", True),
        (sg.OneOf(["a", "ab"]), "a", None),
        (sg.Text(stop=["ab", "cd"]), "xa", "x"),
        (sg.Text(stop=["ab", "cd"]), "xac", "xa"),
        (sg.Text(stop=["ab", "cd"]), "xab", "x"),
        (sg.Text(), "", ""),
        (sg.Sequence("Of ", int, " apples"), "Of 12 app", (None,)),
        (sg.Sequence(list[int], "; ", sg.OneOf(["x"]), Home), '[1, 2];', ([1, 2], None, None)),
        (sg.Sequence("a", sg.Sequence("b", sg.OneOf(["d"])), sg.Text()), "abde", (("d",), "e")),
    ],
)  # fmt: skip
def test_other_roots(source, text, expected):
    value = shown(source, text)
    assert (type(value), value) == (type(expected), expected)


def test_recursion_and_roots_are_models_too():
    tree = shown(Tree, '{"label": "a", "children": [{"label": "b"}, {"label": "c", "children": [')
    assert repr(tree) == (
        "Tree(label='a', children=[Tree(label='b', children=[]), Tree(label='c', children=[])])"
    )
    days = shown(Days, '["2020-01-02", "20')
    assert isinstance(days, Days)
    assert days.root == [dt.date(2020, 1, 2)]


def test_the_parts_of_a_sequence_have_their_names():
    schema = sg.Sequence("Title: ", title=sg.Text(stop="\n"), home=Home)
    value = shown(schema, "Title: The Tin")
    assert (value.title, value.home) == ("The Tin", None)
    value = shown(schema, 'Title: The Tin Drum\n{"city": "Gda')
    assert value.title == "The Tin Drum"
    assert value.home.__dict__ == {"city": "Gda"}


@given(st.sampled_from([
    (sg.Thinking(Home), '<think>\n<a></</think>\n\n{"city": "A"}'),
    (sg.Sequence(sg.OneOf(["ab", "cd", "c"]), "x", sg.Text(stop=["aab", "b"])), "abxaaaab"),
]), st.randoms())  # fmt: skip
def test_it_does_not_matter_how_a_text_is_cut(case, rng):
    source, text = case
    partial = PartialValues(source).of_text()
    end = 0
    while end < len(text):
        end = min(end + rng.randint(1, 9), len(text))
        assert repr(partial.at(text[:end])) == repr(shown(source, text[:end]))


def test_each_character_is_looked_at_once():
    def seconds(n_characters: int) -> float:
        text = '{"tags": ["' + "ab" * (n_characters // 2)
        partial = PartialValues(Person).of_text()
        started = time.process_time()
        for end in range(0, len(text), 40):
            partial.at(text[:end])
        return time.process_time() - started

    seconds(400)
    assert min(seconds(80_000) for _ in range(3)) < 40 * min(seconds(8_000) for _ in range(3))
