"""Pydantic types against Pydantic: what their nodes allow, refuse, and leave out on purpose."""

# ruff: noqa: UP007, UP035, UP042, UP045  # users write types in the older spellings too

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import functools
import ipaddress
import json
import pathlib
import random
import re
import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import (
    Annotated,
    Any,
    Callable,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Optional,
    Required,
    TypeVar,
    Union,
)

import pydantic
import pytest
from pydantic import (
    AliasPath,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    ByteSize,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    JsonValue,
    NaiveDatetime,
    PlainValidator,
    Secret,
    SecretBytes,
    SecretStr,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic import networks as net
from pydantic.json_schema import SkipJsonSchema
from pydantic.types import UUID1, UUID4, UUID7, OnErrorOmit
from typing_extensions import TypedDict

from structgen.errors import SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.schema.jsonschema.admits import admits
from structgen.schema.load import load_schema
from tests.names import plain
from tests.schema.samples import sample

T = TypeVar("T")


class Pair(NamedTuple):
    a: int
    b: str = "x"


@dataclasses.dataclass
class Plain:
    a: int
    skipped: str = dataclasses.field(default="x", init=False)
    c: dataclasses.InitVar[int] = 3


@pydantic.dataclasses.dataclass(config=ConfigDict(extra="allow"), kw_only=True)
class Open:
    a: int = Field(alias="q")
    b: list[int] = Field(default_factory=list)


class Movie(TypedDict, total=False):
    name: Required[str]
    year: int


class Strict(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    a: int
    b: NotRequired[Literal["x"]]


class Number(enum.IntEnum):
    one = 1
    two = 2


class Kind(str, enum.Enum):
    a = "x"
    b = "y"


class Mixed(enum.Enum):
    a = "x"
    b = 2
    c = None


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    a: int


class Box(BaseModel, Generic[T]):
    item: T


class Coded(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    b: Annotated[bytes, Field(min_length=2, max_length=4)]


class Hexed(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    b: Annotated[bytes, Field(min_length=1, max_length=3)]


class PythonRe(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    a: Annotated[str, Field(pattern=r"^[a-c]+\Z")]


class Keyed(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[str, Field(pattern="^x_")], int]
    a: int


class Trimmed(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_min_length=1)
    a: str


class Values(BaseModel):
    model_config = ConfigDict(use_enum_values=True)
    kind: Kind = Kind.a


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    age: int = 1


def kind_of(value: Any) -> str:
    return value.get("kind", "cat") if isinstance(value, dict) else value.kind


ByFunction = Annotated[
    Union[Annotated[Cat, Tag("cat")], Annotated[Dog, Tag("dog")]], Discriminator(kind_of)
]


def call_me(a: int, b: str = "x", *, c: float = 1.0) -> None:
    """A function whose arguments are an object."""


D, A, F = Decimal, Annotated, Field
DATE = dt.date

# type, texts that both allow, texts that both refuse, texts that only Pydantic allows
TABLE: list[tuple[Any, list[Any], list[Any], list[Any]]] = [
    (A[str, F(pattern="a$")], ["a", "ba"], ["a\n", "", "ab"], []),
    (A[str, F(pattern="^[0-9]+$", max_length=2)], ["1", "12"], ["123", "a"], []),
    (A[str, F(pattern=re.compile("^b[^a]c*"))], ["bb", "bbcd"], ["ba", "cbb"], []),
    (PythonRe, [{"a": "abc"}], [{"a": "abc\n"}, {"a": "xa"}], []),
    (A[str, StringConstraints(strip_whitespace=True, min_length=2)],
     ["ab", "a b", "\u200ba", "\x1fa"], ["a", ""], [" ab", "ab\u0085", "\u3000ab"]),
    (A[str, StringConstraints(strip_whitespace=True, pattern="^a?$")], ["", "a"], ["b"], [" a"]),
    (Trimmed, [{"a": "a"}], [{"a": ""}, {"a": " "}], [{"a": " a"}]),
    (A[int, F(multiple_of=3)], [0, 3, -3, 10**18 - 1], [1, 10], []),
    (A[int, F(multiple_of=3, ge=4, lt=9)], [6], [3, 9, 7], []),
    (A[float, F(multiple_of=0.1)], [0.3, 0.7, -1.1, 5, 123456.7], [0.35], []),
    (A[float, F(multiple_of=0.25, gt=0.25, le=1)], [0.5, 0.75, 1], [0.25, 1.25, 0.3], []),
    (A[float, F(multiple_of=3)], [3, -6, 0], [4, 3.5], []),
    (A[float, F(multiple_of=0.7, ge=-1e6)], [0.7, -1.4, 999999.7], [0.8], []),
    (D, [1, 1.5, -0.25, 100000.0], ["x", True, None], ["1.5"]),
    (A[D, F(ge=D("0.1"), lt=1)], [0.1, 0.5], [0.09, 1, 1.0], []),
    (A[D, F(gt=D("0.1"))], [0.11], [0.1], []),
    (A[D, F(max_digits=3, decimal_places=2)], [1.5, 0, 0.12, -9.99], [12.3, 1.234, 100], []),
    (A[D, F(max_digits=2)], [99, 0.01, 1.5, 0.12], [100, 0.123, 12.3, 0.012], []),
    (A[D, F(decimal_places=2)], [0.01, 123456789.12, 7], [0.001, 1.234], []),
    (A[D, F(max_digits=2, decimal_places=2)], [0.12, -0.5], [0, 1, 0.123], []),
    (A[D, F(max_digits=2, decimal_places=3)], [0.12, 0.1], [0.123, 1, 0.001], []),
    (A[D, F(max_digits=20, decimal_places=0)], [12345678901234567890], [0.5, 10**20], []),
    (A[D, F(multiple_of=D("0.25"), max_digits=4)], [0.25, 12.5, 1000], [0.3, 10000], []),
    (A[D, F(multiple_of=5, ge=6)], [10, 15], [5, 7], []),
    (bytes, ["", "é", "\U0001f600"], [1], []),
    (A[bytes, F(min_length=1, max_length=2)], ["a", "ab"], ["", "éa", "abc"], ["é"]),
    (Coded, [{"b": x} for x in ("AAA=", "AAAA", "AAAAAA==", "+/8=")],
     [{"b": x} for x in ("AA==", "AAAAAAA=", "AAB=", "A")], [{"b": "AAA"}, {"b": "-_8="}]),
    (Hexed, [{"b": "00"}, {"b": "af00ff"}], [{"b": "0"}, {"b": "00000000"}], [{"b": "AF"}]),
    (Base64Bytes, ["AAA=", ""], ["AAA"], ["AAB=", "!!!!"]),
    (dt.datetime, ["2020-02-29T23:59:59", "2020-01-01T00:00:00.123456-23:59",
                         "0001-01-01T00:00:00Z"],
     ["2021-02-29T00:00:00", "2020-01-01T24:00:00", "2020-01-01T23:59:60Z", "0000-01-01T00:00:00",
      "2020-01-01T00:00:00+24:00"],
     ["2020-01-01", "2020-01-01T00:00", "2020-01-01 00:00:00", 1, "2020-01-01T00:00:00.1234567"]),
    (AwareDatetime, ["2020-01-01T00:00:00Z"], ["2020-01-01T00:00:00"], []),
    (NaiveDatetime, ["2020-01-01T00:00:00"], ["2020-01-01T00:00:00Z"], []),
    (A[dt.datetime, pydantic.Strict()], ["2020-01-01T00:00:00"], [1], []),
    (DATE, ["2000-02-29", "9999-12-31"], ["1900-02-29", "0000-01-01", "2020-13-01", "2020-1-1"],
     ["2020-01-01T00:00:00", 0]),
    (A[DATE, F(ge=DATE(2019, 12, 30), lt=DATE(2021, 3, 1))],
     ["2019-12-30", "2019-12-31", "2020-02-29", "2021-02-28", "2020-07-15"],
     ["2019-12-29", "2021-03-01", "2021-02-29", "1999-12-31", "2021-12-01"], []),
    (A[DATE, F(gt=DATE(2020, 1, 1), le=DATE(2020, 1, 2))], ["2020-01-02"], ["2020-01-01"], []),
    (dt.time, ["00:00:00", "23:59:59.999999Z", "01:02:03+05:30"],
     ["24:00:00", "23:59:60", "00:00:00+24:00"], ["00:00"]),
    (dt.timedelta, ["P1D", "-P1DT2H3M4.5S", "PT0S", "P2W", "P1Y2M3D", "PT1H"],
     ["P", "PT", "P1000000000D", ""], ["P1.5D", "1 day, 00:00:00", 5, "PT1S1M", "+P1D"]),
    (uuid.UUID, ["12345678-1234-5678-1234-56781234567f"], ["12345678-1234-5678-1234", "g"],
     ["12345678-1234-5678-1234-56781234567F", "12345678123456781234567812345678"]),
    (UUID4, ["12345678-1234-4678-8234-567812345678"],
     ["12345678-1234-5678-8234-567812345678", "12345678-1234-4678-1234-567812345678"], []),
    (UUID1, ["12345678-1234-1678-b234-567812345678"], ["12345678-1234-4678-8234-567812345678"], []),
    (UUID7, ["12345678-1234-7678-b234-567812345678"], ["12345678-1234-4678-8234-567812345678"], []),
    (net.AnyUrl, ["http://a", "foo://u:p@a-b.c1:80/x/%20?y#z", "file:///a/b", "files://a",
                  "http://1.2.3.4:65535/"],
     ["http://", "a", "http://a:65536", "http://256.1.1.1", "http://a.1", "file://a:1/"],
     ["mailto:x@y", "HTTP://a", "http://[::1]/", "http://a_b", "file://a/b", "http://a/é"]),
    (net.HttpUrl, ["https://example.com/a?b=c"], ["ftp://a", "http://xn--a", "http://a b"], []),
    (A[net.AnyUrl, net.UrlConstraints(max_length=8)], ["http://a"], ["http://a/"], []),
    (net.FileUrl, ["file:///", "file:///a/b.txt"], ["http://a", ""], ["file://a/b"]),
    (net.PostgresDsn, ["postgres://a", "postgresql+asyncpg://u:p@a:1,b.c:2/d?e"],
     ["postgres://", "postgres://a,", "http://a"], []),
    (net.RedisDsn, ["redis://a:1/0"], ["http://a", "redis://a:1,b:2"], ["redis://"]),
    (net.MongoDsn, ["mongodb://a,b/c", "mongodb+srv://a"], ["mongodb://,a"], []),
    (ipaddress.IPv4Address, ["1.2.3.4", "255.0.0.255"], ["01.2.3.4", "1.2.3", "256.1.1.1"], []),
    (A[ipaddress.IPv4Address, pydantic.Strict()], ["1.2.3.4"], [1, "1"], []),
    (ipaddress.IPv6Address, ["::", "::1", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::",
                             "1::8", "1:2:3:4:5:6:1.2.3.4", "::2:3:4:5:6:7:8"],
     ["1::2:3:4:5:6:7:8", ":1", "1:", "::1::", "12345::", "fe80::1%"], ["fe80::1%eth0"]),
    (ipaddress.IPv4Network, ["1.2.3.4", "1.2.3.0/24", "0.0.0.0/0", "1.2.3.4/32", "10.128.0.0/9"],
     ["1.2.3.4/24", "1.2.3.4/33", "10.64.0.0/9"], ["1.2.3.0/024", "1.2.3.0/255.255.255.0"]),
    (ipaddress.IPv6Network, ["::1", "::/0", "1:2::/32", "1:2::/64", "1::2/128"],
     ["::1/64", "1:2::/30", "1:2::/129"], ["1:8000::/17", "1:2::/31"]),
    (ipaddress.IPv4Interface, ["1.2.3.4/24", "1.2.3.4"], ["1.2.3.4/33"], []),
    (ipaddress.IPv6Interface, ["::1/64", "::1"], ["::1/129"], []),
    (net.IPvAnyAddress, ["1.2.3.4", "::1"], ["x"], []),
    (net.IPvAnyNetwork, ["1.2.3.0/24", "::/64"], ["1.2.3.4/24"], []),
    (net.IPvAnyInterface, ["1.2.3.4/24", "::1/64"], ["::1/129"], []),
    (pathlib.Path, ["", "a/b", "é\n"], [1], []),
    (pathlib.PurePosixPath, ["a"], [None], []),
    (SecretStr, ["", "a"], [1], []),
    (A[SecretStr, F(min_length=2, max_length=3)], ["ab", "abc"], ["a", "abcd"], []),
    (SecretBytes, ["é"], [1], []),
    (Secret[int], [1], ["a"], []),
    (Json, ["[1]", '{"a":null}'], ["", "x", "[1"], []),
    (Json[list[int]], ["[1]", "[]"], ['["a"]', "1"], []),
    (Box[Json[Pair]], [{"item": '[1,"a"]'}], [{"item": [1]}], []),
    (re.Pattern, ["a+", "^(?:a|b)*[a-z]$", r"\d", "a{2}"], ["(", "*", "[a", "a)"], ["(?<=a)b"]),
    (ByteSize, [0, 10, "1KB", "1.5 GiB", "10B"], [-1, "1zz", "x"], ["1", " 1KB"]),
    (Kind, ["x"], ["a", 1], []),
    (Number, [1, 2], [3], ["1"]),
    (Mixed, ["x", 2, None], ["a", 3], []),
    (Values, [{"kind": "y"}, {}], [{"kind": "a"}], []),
    (Literal[Kind.a, Number.two, None, True], ["x", 2, None, True], ["y", 3, False], [1]),
    (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2], [1, 2], {}], []),
    (tuple[int, ...], [[], [1, 2]], [["a"]], []),
    (A[tuple[int, ...], F(min_length=1, max_length=2)], [[1], [1, 2]], [[], [1, 2, 3]], []),
    (tuple[()], [[]], [[1]], []),
    (tuple, [[], [1, "a", None]], [1], []),
    (set[int], [[], [1, 2]], [["a"]], [[1, 1]]),
    (A[set[Literal["a", "b", "c"]], F(min_length=2)], [["a", "b"]], [["a"], ["b", "b"]], []),
    (A[set[str], F(max_length=1)], [["a"], []], [["a", "b"]], [["a", "a"]]),
    (frozenset[Literal["a", "b"]], [[], ["b", "a"]], [["c"]], [["a", "a"]]),
    (set, [[1, "a", None, 1.5]], [[[1]], [{}]], []),
    (set[tuple[int, ...]], [[[1], [2]]], [[1]], []),
    (set[Frozen], [[{"a": 1}]], [[1]], []),
    (A[set[Optional[uuid.UUID]], F(min_length=1)], [[None]], [[]], []),
    (collections.deque[int], [[1]], [["a"]], []),
    (A[collections.deque[int], F(max_length=1)], [[1]], [[1, 2]], []),
    (Sequence[int], [[1]], ["a", [None]], []),
    (A[Sequence[int], F(min_length=1, max_length=2)], [[1], [1, 2]], [[], [1, 2, 3]], []),
    (A[dict[str, int], F(min_length=1, max_length=2)], [{"a": 1}], [{}, dict.fromkeys("abc", 1)],
     []),
    (dict[int, int], [{"0": 1, "-12": 2}], [{"a": 1}, {"1.5": 1}, {"": 1}], [{"01": 1}, {"+1": 1}]),
    (dict[A[int, F(ge=-5, le=120)], int], [{"-5": 1, "120": 1, "0": 1, "99": 1}],
     [{"-6": 1}, {"121": 1}, {"a": 1}], [{"-0": 1}]),
    (A[dict[Kind, int], F(min_length=2)], [{"x": 1, "y": 2}], [{"x": 1}], []),
    (A[dict[Literal["a", "b", "c"], int], F(min_length=2, max_length=2)], [{"a": 1, "c": 2}],
     [{"a": 1}, {"a": 1, "b": 1, "c": 1}], []),
    (dict[float, int], [{"1.5": 1}], [{"a": 1}], [{"nan": 1}]),
    (dict[bool, int], [{"true": 1}], [{"2": 1}], [{"1": 1}]),
    (dict[uuid.UUID, int], [{"12345678-1234-5678-1234-567812345678": 1}], [{"a": 1}], []),
    (dict[DATE, int], [{"2020-01-01": 1}], [{"2020-02-30": 1}], []),
    (dict[Literal["a", 1], int], [{"a": 1}, {}], [{"1": 1}, {"b": 1}], []),
    (dict[Kind, int], [{"x": 1, "y": 2}], [{"a": 1}], []),
    (dict[Number, int], [{"1": 1}], [{"3": 1}], []),
    (dict[A[str, F(pattern="^k", max_length=3)], int], [{"k": 1}], [{"a": 1}, {"kkkk": 1}], []),
    (dict[int | str, int], [{"a": 1, "1": 1}], [{"a": "b"}], []),
    (A[dict[Literal["a", "b"], int], F(min_length=2)], [{"a": 1, "b": 1}], [{"a": 1}], []),
    (Mapping[str, int], [{"a": 1}], [{"a": "b"}], []),
    (collections.defaultdict[str, list[int]], [{"a": [1]}], [{"a": 1}], []),
    (collections.OrderedDict[str, int], [{"a": 1}], [[]], []),
    (collections.Counter[str], [{"a": 1}], [{"a": 1.5}], []),
    (Pair, [[1], [1, "a"]], [[], ["a"], [1, "a", 2]], [{"a": 1}]),
    (collections.namedtuple("P", "x y"), [[1, 2]], [[1]], []),
    (Plain, [{"a": 1}, {"a": 1, "c": 2}], [{"a": "x"}, [1]], [{"a": 1, "skipped": "b"}]),
    (Open, [{"q": 1, "z": 2}, {"q": 1, "b": [2]}], [{"a": 1}, {"q": 1, "b": 1}], []),
    (Movie, [{"name": "a"}, {"name": "a", "year": 1}], [{"year": 1}], [{"name": "a", "z": 1}]),
    (Strict, [{"a": 1, "z": 2}, {"a": 1, "b": "x"}], [{"a": 1, "b": "y"}], []),
    (Keyed, [{"a": 1, "x_1": 2}], [{"a": 1, "y": 2}, {"a": 1, "x_": "s"}], []),
    (Box[int], [{"item": 1}], [{"item": "a"}], []),
    (Box[set[Kind]], [{"item": ["x", "y"]}], [{"item": ["z"]}], []),
    (A[Union[int, str], F(union_mode="left_to_right")], [1, "a"], [None, []], []),
    (A[Union[Cat, Dog], F(discriminator="kind")], [{"kind": "cat"}, {"kind": "dog", "age": 2}],
     [{}, {"kind": "x"}], []),
    (ByFunction, [{"kind": "cat"}, {"kind": "dog", "age": 2}], [{"kind": "x"}], []),
    (JsonValue, [1, [None, {"a": "b"}]], [], []),
    (Hashable, [1, "a", None], [[], {}], []),
    (list[OnErrorOmit[int]], [[1]], [1], [["a"]]),
    (A[int, WithJsonSchema({"type": "string"})], [1], ["a"], []),
    (Union[int, SkipJsonSchema[None]], [1, None], ["a"], []),
    (call_me, [{"a": 1}, {"a": 1, "c": 2.5}], [{"b": "a"}, {"a": 1, "z": 1}], [[1]]),
]  # fmt: skip


@functools.cache
def adapter(row: int) -> TypeAdapter[Any]:
    return TypeAdapter(TABLE[row][0])


def validates(row: int, text: str) -> bool:
    try:
        adapter(row).validate_json(text)
    except ValidationError:
        return False
    return True


ROWS = [pytest.param(i, id=f"{i}-{plain(row[0])[:40]}") for i, row in enumerate(TABLE)]


@pytest.mark.parametrize("row", ROWS)
def test_nodes_agree_with_pydantic(row: int):
    source, good, bad, lax = TABLE[row]
    schema = load_schema(TypeAdapter(source)).schema
    for values, allowed, valid in ((good, True, True), (bad, False, False), (lax, False, True)):
        for value in values:
            text = json.dumps(value)
            assert validates(row, text) == valid, text
            assert admits(schema.definitions, schema.root, value) == allowed, text


@pytest.mark.parametrize("row", ROWS)
def test_whatever_a_node_allows_validates(row: int):
    schema = load_schema(TypeAdapter(TABLE[row][0])).schema
    rng = random.Random(row)
    for _ in range(40):
        text = sample(schema.root, schema.definitions, rng)
        assert validates(row, text), text


REFUSED: list[tuple[Any, str]] = [
    (complex, "$"),
    (Fraction, "$"),
    (Callable[[int], int], "$"),
    (type[int], "$"),
    (set[list[int]], "$[*]"),
    (set[Cat], "$[*]"),
    (A[set[Literal[1, True]], F(min_length=2)], "$"),
    (A[dict[int, int], F(min_length=2)], "$"),
    (A[dict[dt.datetime, int], F(min_length=2)], "$"),
    (dict[tuple[int, int], int], "$.<key>"),
    (A[dt.datetime, F(ge=dt.datetime(2020, 1, 1))], "$"),  # noqa: DTZ001
    (A[dt.timedelta, F(ge=dt.timedelta(1))], "$"),
    (A[D, F(ge=D(2) ** 60)], "$"),
    (A[D, F(decimal_places=5, ge=10**12)], "$"),
    (A[float, F(multiple_of=0.1, le=1e8)], "$"),
    (A[float, F(multiple_of=1 / 3)], "$"),
    (A[str, StringConstraints(to_lower=True)], "$"),
    (A[str, F(pattern=re.compile("a$"))], "$"),
    (A[str, F(pattern=re.compile("a", re.IGNORECASE))], "$"),
    (A[int, PlainValidator(int)], "$"),
    (Box[A[int, F(validation_alias=AliasPath("a", "b"))]], "$.item"),
]


@pytest.mark.parametrize(("source", "path"), REFUSED, ids=lambda x: str(x)[:40])
def test_refused_with_the_path(source: Any, path: str):
    if "AliasPath" in str(source):
        source = pydantic.create_model("M", item=(int, F(validation_alias=AliasPath("a", "b"))))
    with pytest.raises(UnsupportedSchemaError) as info:
        load_schema(source)
    assert [fault.path for fault in info.value.faults][:1] == [path]


@pytest.mark.parametrize(
    "source",
    [
        A[int, F(multiple_of=5, ge=6, le=9)],
        A[DATE, F(gt=DATE(2020, 1, 1), lt=DATE(2020, 1, 2))],
        A[dict[Literal["a"], int], F(min_length=2)],
        A[bytes, F(min_length=3, max_length=2)],
        A[tuple[int, ...], F(min_length=3, max_length=2)],
        A[net.AnyUrl, net.UrlConstraints(max_length=3)],
    ],
    ids=str,
)
def test_contradictions_are_found(source: Any):
    with pytest.raises(UnsatisfiableSchemaError):
        load_schema(source)


def test_an_invalid_pattern_is_a_schema_error():
    with pytest.raises(SchemaError, match="unclosed group"):
        load_schema(A[str, F(pattern="(")])


@dataclasses.dataclass
class Checked:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("negative")


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        (pydantic.PastDate, ("$",)),
        (list[pydantic.FutureDatetime], ("$[*]",)),
        (ByFunction, ("$",)),
        (pydantic.FilePath, ("$",)),
        (Checked, ("$",)),
        (TypeAdapter(call_me), ("$",)),
        (call_me, ()),
        (pydantic.Base64Str, ()),
        (net.HttpUrl, ()),
        (pathlib.Path, ()),
        (SecretStr, ()),
        (ipaddress.IPv4Address, ()),
        (ByteSize, ()),
        (Base64Bytes, ()),
        (A[SecretStr, F(min_length=2)], ()),
        (A[Sequence[int], F(max_length=2)], ()),
        (A[net.HttpUrl, F(max_length=30)], ("$",)),
    ],
    ids=plain,
)
def test_checks_that_run_afterwards_are_listed(source: Any, paths: tuple[str, ...]):
    assert load_schema(source).validators == paths


def test_iterables_are_arrays():
    schema = load_schema(Iterable[int]).schema
    assert admits(schema.definitions, schema.root, [1, 2])
    assert not admits(schema.definitions, schema.root, ["a"])


def test_settings_of_a_model_reach_dataclasses_and_typed_dicts():
    class Outer(BaseModel):
        model_config = ConfigDict(str_max_length=2)
        a: Movie
        b: Pair
        c: Json[str]

    schema = load_schema(Outer).schema
    good = {"a": {"name": "ab"}, "b": [1, "ab"], "c": '"ab"'}
    TypeAdapter(Outer).validate_json(json.dumps(good))
    assert admits(schema.definitions, schema.root, good)
    for key, value in (("a", {"name": "abc"}), ("b", [1, "abc"]), ("c", '"abc"')):
        bad = {**good, key: value}
        assert not admits(schema.definitions, schema.root, bad)
        with pytest.raises(ValidationError):
            TypeAdapter(Outer).validate_json(json.dumps(bad))
