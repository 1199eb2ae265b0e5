"""Shapes of every type that JSON writes as one string, number or constant."""

# ruff: noqa: UP042  # users write enums in the older spelling too

from __future__ import annotations

import base64
import datetime as dt
import enum
import importlib.util
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Annotated, Any, Literal

import pydantic as p
from pydantic import Field, PlainSerializer
from pydantic_core import PydanticSerializationUnexpectedValue

from tests.shapes import values as v
from tests.shapes.shape import Shape, Values, choice, fitting, one_of, plain

A, F = Annotated, Field
Family = Callable[[Random], Shape]
"""Types that differ in a parameter."""


class Kind(str, enum.Enum):
    a = "x"
    b = 'y "z"\n'


class Level(enum.IntEnum):
    low = 1
    high = 12


class Mixed(enum.Enum):
    text = "x"
    number = 2
    half = 0.5
    nothing = None
    yes = True


class Team(enum.StrEnum):
    sales = "sales"
    sales_eu = "sales é"


# Texts.

PATTERNS: list[tuple[str, Values]] = [
    (r"^[a-z]{2,5}$", lambda rng: v.repeated(rng, "abz", 2, 5)),
    (r"a.c", lambda rng: v.text(rng, 0, 2) + "a" + rng.choice('é\\"') + "c" + v.text(rng, 0, 2)),
    (r"^\d+$", lambda rng: v.repeated(rng, "09٣", 1, 4)),
    (r"^(?:foo|ba+r)*$", lambda rng: v.repeated(rng, ["foo", "bar", "baar"], 0, 2)),
    (r"^\w+@\w+", lambda rng: "é_"[: rng.randint(1, 2)] + "@b1" + rng.choice(["", "!", "\n"])),
    (r"^[^x]*$", lambda rng: v.text(rng)),
    (r"\Aé|b\z", lambda rng: rng.choice(["é", "éa", "b", "ab"])),
    (r"^\p{Lu}\p{Ll}*$", lambda rng: rng.choice("AÉ") + v.repeated(rng, "aé", 0, 3)),
    (r"\bend\b", lambda rng: rng.choice(["", "x "]) + "end" + rng.choice(["", " x", "-"])),
    (r"(?i)^yes$", one_of(["yes", "YES", "ye\u017f"])),
]
"""A pattern, and some of its texts."""


def _bounded_text(rng: Random) -> Shape:
    low = rng.randint(0, 3)
    high = low + rng.randint(0, 3)
    kind = A[str, F(min_length=low, max_length=high)]
    return plain(kind, lambda rng: v.text(rng, low, high), key=True)


def _pattern(rng: Random) -> Shape:
    source, texts = rng.choice(PATTERNS)
    if rng.random() < 0.5:
        return plain(A[str, F(pattern=source)], texts, key=True)
    some = fitting(texts, lambda text: 1 <= len(text) <= 5)
    return plain(A[str, F(pattern=source, min_length=1, max_length=5)], some, key=True)


def _stripped(rng: Random) -> str:
    return v.text(rng).strip().strip("\x1c\x1d\x1e\x1f")


TEXTS: list[Family] = [
    lambda _: plain(str, v.text, key=True),
    lambda _: plain(p.StrictStr, v.text, key=True),
    lambda _: plain(A[str, p.StringConstraints(strip_whitespace=True)], _stripped),
    _bounded_text,
    _pattern,
    _pattern,
]


# Numbers.


def written(number: Any) -> int | float:
    """A decimal as JSON number."""
    if not isinstance(number, Decimal):
        raise PydanticSerializationUnexpectedValue
    return int(number) if number == number.to_integral_value() else float(number)


AS_NUMBER = PlainSerializer(written, when_used="json")


def _integers(rng: Random) -> Shape:
    low, step = rng.randint(-99, 99), rng.choice([1, 1, 3, 7, 10])
    high = low + step + rng.choice([0, 5, 500, 10**20])
    bounds = rng.choice([{"gt": low, "le": high}, {"ge": low + 1, "lt": high + 1}])
    kind = A[int, F(**bounds)] if step == 1 else A[int, F(**bounds, multiple_of=step)]
    first, last = low // step + 1, high // step
    return plain(kind, lambda rng: step * rng.randint(first, last), key=step == 1)


def _floats(rng: Random) -> Shape:
    low = rng.randint(-30, 30)
    high = low + rng.randint(1, 40)
    above = rng.random() < 0.5
    kind = A[float, F(gt=low, lt=high)] if above else A[float, F(ge=low, le=high)]
    return plain(kind, lambda rng: rng.randint(low * 8 + above, high * 8 - above) / 8)


def _multiples(rng: Random) -> Shape:
    step = rng.choice([0.1, 0.25, 0.5, 3.0, 0.01])
    exact = Fraction(Decimal(repr(step)))
    return plain(
        A[float, F(multiple_of=step)],
        lambda rng: float(rng.randint(-5000, 5000) * exact) + 0.0,  # no negative zero
    )


def _decimals(rng: Random) -> Shape:
    first = rng.randint(-30, 30)
    last = first + rng.randint(1, 40)
    kind = A[Decimal, F(ge=Decimal(first) / 8, le=Decimal(last) / 8), AS_NUMBER]
    return plain(kind, lambda rng: Decimal(rng.randint(first, last)) / 8)


def _digits(rng: Random) -> Shape:
    places = rng.randint(0, 4)
    most = places + rng.randint(0, 4) or 1
    numbers: Values = lambda rng: Decimal(  # noqa: E731
        rng.randint(-(10**most) + 1, 10**most - 1)
    ).scaleb(-places)
    if most == places:  # a zero counts as a digit before the point
        numbers = fitting(numbers, bool)
    return plain(A[Decimal, F(max_digits=most, decimal_places=places), AS_NUMBER], numbers)


NUMBERS: list[Family] = [
    lambda _: plain(int, v.whole, key=True),
    lambda _: plain(p.StrictInt, v.whole),
    lambda _: plain(p.NonNegativeInt, lambda rng: abs(v.whole(rng)), key=True),
    lambda _: plain(float, v.double),
    lambda _: plain(p.StrictFloat, v.double),
    lambda _: plain(p.FiniteFloat, v.double),
    _integers,
    _floats,
    _multiples,
    _decimals,
    _digits,
]


# Dates, times, identifiers and addresses.

DAY, LEAP = dt.date(2019, 12, 30), dt.date(2020, 2, 29)
DATES = [
    plain(dt.datetime, v.moment),
    plain(p.AwareDatetime, lambda rng: v.moment(rng).replace(tzinfo=v.zone(rng) or dt.UTC)),
    plain(p.NaiveDatetime, lambda rng: v.moment(rng).replace(tzinfo=None), key=True),
    plain(dt.date, v.date, key=True),
    plain(A[dt.date, F(ge=DAY)], lambda rng: v.date(rng, DAY), key=True),
    plain(A[dt.date, F(gt=DAY, le=LEAP)], lambda rng: v.date(rng, DAY + dt.timedelta(1), LEAP)),
    plain(dt.time, v.time),
    plain(dt.timedelta, v.span),
]
ADDRESSES = [
    plain(uuid.UUID, v.identifier, key=True),
    plain(p.UUID4, lambda rng: v.identifier(rng, 4), key=True),
    plain(p.UUID1, lambda rng: v.identifier(rng, 1)),
    plain(p.UUID3, lambda rng: v.identifier(rng, 3)),
    plain(p.UUID5, lambda rng: v.identifier(rng, 5)),
    plain(p.UUID7, lambda rng: v.identifier(rng, 7)),
    plain(p.AnyUrl, lambda rng: v.url(rng, "foo+x")),
    plain(p.HttpUrl, lambda rng: v.url(rng, rng.choice(["http", "https"])), key=True),
    plain(A[p.AnyUrl, p.UrlConstraints(max_length=30, allowed_schemes=["ab"])],
          lambda rng: v.url(rng, "ab")),
    plain(p.FileUrl, one_of(["file:///", "file:///a/b.txt"])),
    plain(p.PostgresDsn, one_of(["postgres://u:p@a:1,b.c:2/d", "postgresql://a/b?c=d"])),
    plain(ipaddress.IPv4Address, v.ipv4, key=True),
    plain(ipaddress.IPv6Address, v.ipv6),
    plain(ipaddress.IPv4Interface, lambda rng: ipaddress.IPv4Interface(v.ipv4_network(rng))),
    plain(ipaddress.IPv6Interface, lambda rng: ipaddress.IPv6Interface((v.ipv6(rng), 64))),
    plain(ipaddress.IPv4Network, v.ipv4_network),
    plain(ipaddress.IPv6Network, v.ipv6_network),
    plain(p.IPvAnyAddress, lambda rng: rng.choice([v.ipv4, v.ipv6])(rng)),
    plain(p.IPvAnyNetwork, lambda rng: rng.choice([v.ipv4_network, v.ipv6_network])(rng)),
    plain(zoneinfo.ZoneInfo, lambda rng: zoneinfo.ZoneInfo(rng.choice(["UTC", "Asia/Tokyo"]))),
]  # fmt: skip
if importlib.util.find_spec("email_validator"):
    ADDRESSES.append(plain(p.EmailStr, one_of(["a@b.co", "a.b+c@x-y.example.com", "A_1@a1.b2.cd"])))


# Bytes, secrets and others.


def _bytes(rng: Random) -> bytes:
    return v.text(rng).encode()


def _revealed(secret: Any) -> Any:
    if not hasattr(secret, "get_secret_value"):
        raise PydanticSerializationUnexpectedValue
    return secret.get_secret_value()


REVEALED = PlainSerializer(_revealed, when_used="json")
OTHERS = [
    plain(bytes, _bytes),
    plain(A[bytes, F(min_length=1, max_length=3)], one_of([b"a", b"a\n", b'"a\\'])),
    plain(p.Base64Bytes, lambda rng: base64.b64encode(rng.randbytes(rng.randrange(7)))),
    plain(p.Base64UrlBytes, lambda rng: base64.urlsafe_b64encode(rng.randbytes(5))),
    plain(p.Base64Str, lambda rng: base64.b64encode(v.repeated(rng, 'a~?"\n', 0, 5).encode())),
    plain(A[p.SecretStr, REVEALED], v.text),
    replace(plain(A[p.Secret[int], REVEALED], v.whole), numeric=True, spelled_once=False),
    plain(A[p.SecretStr, F(min_length=1, max_length=2), REVEALED], one_of(["a", "é\n"])),
    plain(pathlib.Path, one_of(["a/b", "é", "/"])),
    plain(pathlib.PurePosixPath, one_of(["a/b", "."])),
    replace(
        plain(p.ByteSize, lambda rng: rng.choice([0, rng.randrange(10**15)])),
        numeric=True,
        spelled_once=False,
    ),
    plain(re.Pattern, one_of(["a+", "^(?:a|b)*[a-z]$", r"\d"])),
]
CHOICES = [
    choice(bool, (True, False), key=True),
    choice(p.StrictBool, (True, False)),
    choice(None, (None,)),
    choice(Literal["a", "ab", 'q"\n', ""], ("a", "ab", 'q"\n', ""), key=True),
    choice(Literal["a", 1, 12, None], ("a", 1, 12, None)),
    choice(Literal[Kind.a, Level.high, False], ("x", 12, False)),
    choice(Kind, tuple(Kind), key=True),
    choice(Level, tuple(Level), key=True),
    choice(Team, tuple(Team), key=True),
    choice(Mixed, tuple(Mixed)),
]
ANYTHING = [
    Shape(kind, lambda rng, _: v.data(rng), numeric=True) for kind in (Any, object, p.JsonValue)
]


def scalar(rng: Random) -> Shape:
    """A random type without parts."""
    kind = rng.randrange(10)
    if kind < 3:
        return rng.choice(TEXTS)(rng)
    if kind < 6:
        return replace(rng.choice(NUMBERS)(rng), numeric=True, spelled_once=False)
    return rng.choice([DATES, ADDRESSES, OTHERS, [*CHOICES, *ANYTHING]][kind - 6])


def key(rng: Random) -> Shape:
    """A random type that may be the key of a dict."""
    return _with(rng, "key")


def hashable(rng: Random) -> Shape:
    return _with(rng, "hashable")


def _with(rng: Random, property_: str) -> Shape:
    while True:
        shape = scalar(rng)
        if getattr(shape, property_):
            return shape
