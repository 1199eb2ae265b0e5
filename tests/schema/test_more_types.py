"""More Pydantic types against Pydantic: strict variants, settings, and what only decorates.

Each row: a type, texts that both allow, texts that both refuse, texts that only Pydantic allows,
and beginnings of texts that can go on.
"""

# ruff: noqa: UP007  # users write types in the older spellings too

from __future__ import annotations

import functools
import importlib.util
import ipaddress
import json
import random
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Required, Union

import pydantic as p
import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.json_schema import SkipJsonSchema, WithJsonSchema
from typing_extensions import TypedDict

from structgen.compiler import compile  # noqa: A004
from structgen.errors import SchemaError, UnsupportedSchemaError
from structgen.testing import byte_vocabulary
from tests.shapes.scalars import Kind, Level, Mixed
from tests.walks import generate

A, F = Annotated, Field
BYTES = byte_vocabulary()


def one(kind: Any, **settings: Any) -> type[BaseModel]:
    """A model of one field `a` with settings."""
    return create_model("M", __config__=ConfigDict(**settings), a=(kind, ...))


def members(*texts: str) -> list[str]:
    return [f'{{"a":{text}}}' for text in texts]


class Half(TypedDict, total=False):
    first: Required[int]
    second: str


class Whole(TypedDict):
    first: int
    second: NotRequired[str]


class Custom(str):
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(Annotated[str, Field(max_length=2)])

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        return {"type": "integer"}


class Aliases(BaseModel):
    a: int = F(validation_alias=p.AliasChoices("x", "y"))
    b: int = F(1, alias="z")


class ByName(Aliases):
    model_config = ConfigDict(populate_by_name=True)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: A[int, F(ge=0, le=9)] = 9


class Dog(BaseModel):
    kind: Literal["dog", "wolf"]


def kind_of(value: Any) -> str:
    return "cat" if "lives" in value else "dog"


Called = A[Union[A[Cat, Tag("cat")], A[Dog, Tag("dog")]], Discriminator(kind_of)]
Nested = A[Union[A[Union[Cat, Dog], F(discriminator="kind")], None], F()]

INSTANT = '"2020-02-29T23:59:59Z"'
ID = '"12345678-1234-4678-8234-567812345678"'

Row = tuple[Any, list[str], list[str], list[str], list[str]]
TABLE: dict[str, Row] = {
    "strict str": (p.StrictStr, ['"a"'], ["1"], [], ['"']),
    "strict int": (p.StrictInt, ["1"], ['"1"', "1.5", "true"], [], ["-"]),
    "strict float": (p.StrictFloat, ["1", "1.5"], ['"1"', "true"], [], ["1."]),
    "strict bool": (p.StrictBool, ["true"], ["1", '"true"'], [], ["t"]),
    "strict bytes": (p.StrictBytes, ['"a"'], ["1"], [], []),
    "strict date": (A[date, Strict()], ['"2020-02-29"'], ['"2021-02-29"', "1"], [], ['"2020-0']),
    "strict time": (A[time, Strict()], ['"23:59:59"'], ['"24:00:00"'], ['"23:59"'], ['"2']),
    "strict datetime": (A[datetime, Strict()], [INSTANT], ["1"], ['"2020-02-29T23:59Z"'], ['"202']),
    "strict timedelta": (A[timedelta, Strict()], ['"P1D"'], ['"x"', '"P"'], [], ['"-P']),
    "strict uuid": (A[uuid.UUID, Strict()], [ID], ['"x"', "1"], [], ['"12345678-1']),
    "strict decimal": (A[Decimal, Strict()], ["1.5"], ["true"], ['"1.5"'], ["-"]),
    "strict enum": (A[Kind, Strict()], ['"x"'], ['"a"'], [], ['"']),
    "strict list": (A[list[int], Strict()], ["[1]"], ["{}"], [], ["["]),
    "strict tuple": (A[tuple[int, str], Strict()], ['[1,"a"]'], ["[1]"], [], ["[1,"]),
    "strict set": (A[set[int], Strict()], ["[1]"], ["{}"], [], ["["]),
    "strict dict": (A[dict[str, int], Strict()], ['{"a":1}'], ["[]"], [], ['{"']),
    "strict model": (one(set[Level], strict=True), members("[1,12]"), members('["1"]'), [], []),
    "strict keys": (one(dict[int, bool], strict=True), members('{"1":true}'),
                    members('{"x":true}', '{"1":1}'), [], []),
    "strict ip": (A[ipaddress.IPv4Address, Strict()], ['"1.2.3.4"'], ['"1"'], [], ['"1.']),
    "strict url": (A[p.HttpUrl, Strict()], ['"http://a.de/"'], ['"a"'], [], ['"https:']),
    "bounds of a strict int": (A[p.StrictInt, F(ge=3, lt=5)], ["3", "4"], ["2", "5"], [], []),
    "int multiples": (A[int, F(multiple_of=7, gt=0)], ["7", "70"], ["0", "8", "-7"], [], ["6"]),
    "float multiples": (A[float, F(multiple_of=3)], ["3", "3.0", "-6.0"], ["4", "3.5"], [], ["1"]),
    "float without infinity": (A[float, F(allow_inf_nan=False)], ["1.5"], ["NaN"], [], []),
    "model without infinity": (one(float, allow_inf_nan=False), members("1.5"),
                               members("Infinity"), [], []),
    "float with infinity": (one(float), members("1.5"), [], members("Infinity", "NaN"), []),
    "secret": (A[p.SecretStr, F(min_length=2)], ['"ab"'], ['"a"', "1"], [], ['"a']),
    "secret bytes": (p.SecretBytes, ['"é"'], ["1"], [], []),
    "secret of a type": (p.Secret[A[int, F(le=3)]], ["3"], ["4"], [], []),
    "size": (p.ByteSize, ["0", '"1KB"', '"1.5 GiB"'], ['"x"', "-1"], ['"1"'], ['"1.']),
    "path": (Path, ['"a/b"', '""'], ["1"], [], ['"a']),
    "expression": (re.Pattern, ['"a+"'], ['"("', '"["'], ['"(?<=a)b"'], ['"(']),
    "ipv4 interface": (ipaddress.IPv4Interface, ['"1.2.3.4/24"', '"1.2.3.4"'], ['"1.2.3.4/33"'],
                       [], ['"1.2.3.4/']),
    "ipv6 interface": (ipaddress.IPv6Interface, ['"::1/64"'], ['"::1/129"'], [], ['"::1/12']),
    "ipv4 network": (ipaddress.IPv4Network, ['"10.0.0.0/8"'], ['"10.1.0.0/8"'], [], ['"10.']),
    "ipv6 network": (ipaddress.IPv6Network, ['"1:2::/32"', '"1:2:3:4:5:6:7:0/112"'],
                     ['"1:2::/31"', '"1:2:3:4:5:6:7:8/112"'][1:], [], ['"1:2::/']),
    "any interface": (p.IPvAnyInterface, ['"1.2.3.4/24"', '"::1/64"'], ['"x"'], [], []),
    "any network": (p.IPvAnyNetwork, ['"1.2.3.0/24"', '"::/0"'], ['"1.2.3.4/24"'], [], []),
    "base64": (p.Base64Bytes, ['"AAA="'], ['"AAA"'], ['"AAB="'], ['"AA']),
    "base64 for addresses": (p.Base64UrlBytes, ['"-_8="'], ['"-"'], [], ['"_']),
    "base64 of text": (p.Base64Str, ['"YWI="', '""', '"fn8h"'], ['"gICA"', '"YWI"'],
                       ['"w6k="'], ['"YW']),
    "base64 of text for addresses": (p.Base64UrlStr, ['"YWI="'], ['"gICA"'], [], ['"YW']),
    "short base64 of text": (one(p.Base64Str, str_max_length=4), members('"YWI="'),
                             members('"YWJhYWI="'), [], []),
    "hexadecimal bytes": (one(bytes, val_json_bytes="hex"), members('"00ff"'), members('"0"'),
                          members('"FF"'), []),
    "json": (p.Json[A[list[int], F(max_length=2)]], ['"[1,2]"'], ['"[1,2,3]"', '"x"', "[1]"],
             ['"[1, 2]"'], ['"[1']),
    "json of text": (p.Json[str], [r'"\"a\\\"\""'], ['"a"'], [], [r'"\"']),
    "total or not": (Half, ['{"first":1}', '{"first":1,"second":"a"}'], ["{}"], [], ['{"']),
    "not required": (Whole, ['{"first":1}', '{"first":1,"second":"a"}'], ['{"second":"a"}'], [],
                     ['{"first":1,']),
    "first alias": (Aliases, ['{"x":1}', '{"x":1,"z":2}'], ['{"a":1}', '{"z":2}'], ['{"y":1}'],
                    ['{"x']),
    "by name": (ByName, ['{"x":1,"z":2}'], ['{"z":2}'], ['{"a":1,"b":2}', '{"y":1}'], []),
    "values of an enum": (one(Kind, use_enum_values=True), members('"x"'), members('"a"'), [], []),
    "keys of an enum": (dict[Level, int], ['{"12":1}'], ['{"2":1}'], [], ['{"1']),
    "keys of values of an enum": (one(dict[Level, int], use_enum_values=True),
                                  members('{"12":1}', "{}"), members('{"2":1}'), [], []),
    "keys of two kinds": (dict[Level | Literal["a"], int], ['{"12":1}', '{"a":1}'], ['{"b":1}'],
                          [], []),
    "mixed enum": (Mixed, ['"x"', "2", "0.5", "null", "true"], ['"y"', "3"], [], ["n"]),
    "literal of members": (Literal[Kind.a, Level.high], ['"x"', "12"], ['"y"', "1"], [], []),
    "no schema": (SkipJsonSchema[int], ["1"], ['"a"'], [], []),
    "another schema": (A[int, WithJsonSchema({"type": "string"})], ["1"], ['"a"'], [], []),
    "a schema of its own": (Custom, ['"ab"'], ['"abc"', "1"], [], ['"a']),
    "more schema": (A[str, F(max_length=2, json_schema_extra={"maxLength": 1})], ['"ab"'],
                    ['"abc"'], [], []),
    "lengths of a model": (one(str, str_min_length=2, str_max_length=3), members('"ab"', '"abc"'),
                           members('"a"', '"abcd"'), [], []),
    "lengths in containers": (one(Mapping[str, Sequence[str]], str_max_length=1),
                              members('{"a":["b"]}'), members('{"ab":["b"]}', '{"a":["bc"]}'),
                              [], []),
    "lengths of a path": (one(Path, str_max_length=2), members('"ab"'), members('"abc"'), [], []),
    "lengths of a secret": (one(p.SecretStr, str_min_length=2), members('"ab"'), members('"a"'),
                            [], []),
    "lengths of a size": (one(p.ByteSize, str_max_length=3), members('"1KB"', "12345"),
                          members('"10KB"'), [], []),
    "lengths spare addresses": (one(ipaddress.IPv4Address, str_max_length=2),
                                members('"1.2.3.4"'), [], [], []),
    "stripped": (one(str, str_strip_whitespace=True), members('"a b"'), [], members('" a"'), []),
    "function for a tag": (Called, ['{"kind":"cat","lives":1}', '{"kind":"wolf"}'],
                           ['{"kind":"x"}'], [], ['{"kind":"']),
    "tags in unions": (Nested, ['{"kind":"cat"}', "null"], ["{}"], [], []),
    "left to right": (A[Union[A[int, F(le=3)], str], F(union_mode="left_to_right")],
                      ["3", '"a"'], ["4"], [], []),
    "extra of a type": (create_model("M", __config__=ConfigDict(extra="allow"),
                                     a=(int, ...)), ['{"a":1,"b":[]}'], ['{"b":1}'], [], []),
    "frozen": (one(int, frozen=True), members("1"), members("null"), [], []),
    "aware": (p.AwareDatetime, [INSTANT], ['"2020-02-29T23:59:59"'], [], []),
    "naive": (p.NaiveDatetime, ['"2020-02-29T23:59:59"'], [INSTANT], [], []),
    "uuid of version 8": (p.UUID8, [ID.replace("-4", "-8")], [ID], [], []),
    "uuid of version 6": (p.UUID6, [ID.replace("-4", "-6")], [ID], [], []),
}  # fmt: skip
if importlib.util.find_spec("email_validator"):
    LOCAL = "a" * 64
    TABLE |= {
        "email": (p.EmailStr, ['"a@b.co"', '"a.b+c@x-y.z1.de"', f'"{LOCAL}@b.co"'],
                  ['"a"', '"a@b"', '"a@b.1"', '"a@b.test"', '"a@b.LOCAL"', '".a@b.co"',
                   '"a@xn--b.co"', '"a@b.c-"'],
                  ['"a@b.é"', '" a@b.co"', f'"a{LOCAL}@b.co"'], ['"a@b', '"a@b.test']),
        "email with a name": (p.NameEmail, ['"a@b.co"'], ['"a@b"'], ['"A <a@b.co>"'], []),
        "short email": (one(p.EmailStr, str_max_length=6), members('"a@b.co"'),
                        members('"aa@b.co"'), [], []),
    }  # fmt: skip


@functools.cache
def compiled(name: str) -> Any:
    # As an adapter, because a bare enum is written as plain text.
    return compile(TypeAdapter(TABLE[name][0]), BYTES, layout="compact")


def writes(name: str, text: str, *, whole: bool = True) -> bool:
    session = compiled(name).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting or not whole


def validates(name: str, text: str) -> bool:
    try:
        TypeAdapter(TABLE[name][0]).validate_json(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", TABLE)
def test_texts_that_are_written_and_read(name: str):
    _, good, bad, lax, beginnings = TABLE[name]
    for texts, written, valid in ((good, True, True), (bad, False, False), (lax, False, True)):
        for text in texts:
            assert validates(name, text) == valid, text
            assert writes(name, text) == written, text
    for beginning in [*beginnings, *(text[:n] for text in good for n in range(len(text)))]:
        assert writes(name, beginning, whole=False), beginning


@pytest.mark.parametrize("name", TABLE)
def test_whatever_is_written_is_read(name: str):
    rng = random.Random(name)
    for _ in range(10):
        budget = compiled(name).min_tokens + rng.randint(0, 30)
        text, _ = generate(compiled(name).session, BYTES, rng, budget)
        assert validates(name, text.decode()), text
        json.loads(text)


@pytest.mark.parametrize(
    "source",
    [
        one(p.Base64Bytes, val_json_bytes="hex"),
        one(p.Base64Bytes, val_json_bytes="base64"),
        create_model("M", a=(int, F(validation_alias=p.AliasPath("a", 0)))),
        create_model("M", a=(int, F(validation_alias=p.AliasChoices(p.AliasPath("a", 0), "b")))),
        create_model("M", a=(int, F(alias="x")), b=(int, F(alias="x"))),
        one(str, str_to_lower=True),
        one(p.EmailStr, str_to_upper=True)
        if importlib.util.find_spec("email_validator")
        else one(str, str_to_upper=True),
    ],
    ids=str,
)
def test_refused(source: Any):
    with pytest.raises(UnsupportedSchemaError):
        compile(source, BYTES)


def test_a_length_that_no_address_has():
    if not importlib.util.find_spec("email_validator"):
        pytest.skip("the package email_validator is not installed")
    with pytest.raises(SchemaError):
        compile(one(p.EmailStr, str_max_length=3), BYTES)
