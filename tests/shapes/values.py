"""Random values of Python's own types, awkward ones among them."""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import struct
import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

CHARACTERS = (
    "ab zZ09", '"\\/\b\f\n\r\t\x00\x1f\x7f', "éßñ\u0085\u2028٣", "\u0800\ufffd\uffff",
    "\U00010000\U0010ffff😀", "{}[]:,<>&'",
)  # fmt: skip


def text(rng: Random, low: int = 0, high: int = 6) -> str:
    return "".join(rng.choice(rng.choice(CHARACTERS)) for _ in range(rng.randint(low, high)))


def whole(rng: Random) -> int:
    """An integer of at most 19 digits."""
    digits = rng.choice([1, 1, 2, 5, 16, 19])
    return rng.choice([0, 1, -1, 2**53 + 1, rng.randint(-(10**digits) + 1, 10**digits - 1)])


def double(rng: Random) -> float:
    """A finite double below 1e307 that is written with at most 20 digits after the point."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice([0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1e22, 5e-324, 1e-5, -2.5e-7])
    if kind == 1:
        return float(rng.randint(-(10**6), 10**6))
    while True:
        value = rng.uniform(-1e3, 1e3) if kind == 2 else struct.unpack("d", rng.randbytes(8))[0]
        if math.isfinite(value) and abs(value) < 1e307 and not 1e-5 <= abs(value) < 1e-3:
            return value


def data(rng: Random, depth: int = 2) -> Any:
    """Any JSON value that is written with at most 16 digits before a point."""
    kind = rng.randrange(7 if depth > 0 else 5)
    if kind == 5:
        return [data(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 6:
        return {text(rng): data(rng, depth - 1) for _ in range(rng.randrange(3))}
    small = rng.randint(-(10**16) + 1, 10**16 - 1)
    return [None, rng.random() < 0.5, small, double(rng), text(rng)][kind]


def date(rng: Random, low: dt.date = dt.date.min, high: dt.date = dt.date.max) -> dt.date:
    days = (high - low).days
    return low + dt.timedelta(rng.choice([0, days, rng.randint(0, days), rng.randint(0, days)]))


def zone(rng: Random) -> dt.timezone | None:
    minutes = rng.choice([None, 0, 60, -210, 1439, -1439])
    return None if minutes is None else dt.timezone(dt.timedelta(minutes=minutes))


def time(rng: Random) -> dt.time:
    fraction = rng.choice([0, 0, 1, 120_000, 999_999])
    return dt.time(rng.randrange(24), rng.randrange(60), rng.randrange(60), fraction, zone(rng))


def moment(rng: Random) -> dt.datetime:
    return dt.datetime.combine(date(rng), time(rng))


def span(rng: Random) -> dt.timedelta:
    days = rng.choice([0, 1, -1, rng.randint(-9_999_999, 9_999_999)])
    return dt.timedelta(days, rng.choice([0, 1, 86_399]), rng.choice([0, 1, 500_000]))


def identifier(rng: Random, version: int | None = None) -> uuid.UUID:
    found = uuid.UUID(int=rng.getrandbits(128), version=4)
    if version is None:
        return uuid.UUID(int=rng.getrandbits(128))
    return uuid.UUID(int=found.int & ~(15 << 76) | version << 76)


def ipv4(rng: Random) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(rng.choice([0, 2**32 - 1, rng.getrandbits(32)]))


def ipv6(rng: Random) -> ipaddress.IPv6Address:
    groups = (rng.choice([0, 0, 1, 0xFFFF, rng.getrandbits(16)]) for _ in range(8))
    return ipaddress.IPv6Address(":".join(f"{group:x}" for group in groups))


def ipv4_network(rng: Random) -> str:
    """As text, because the object is a collection of its addresses."""
    return str(ipaddress.IPv4Network((ipv4(rng), rng.randint(0, 32)), strict=False))


def ipv6_network(rng: Random) -> str:
    """In the forms that are written: whole groups, or a single address."""
    if rng.random() < 0.3:
        return str(ipaddress.IPv6Network(ipv6(rng)))
    groups = [f"{rng.randint(1, 0xFFFF):x}" for _ in range(rng.randint(1, 7))]
    return str(ipaddress.IPv6Network(":".join(groups) + f"::/{16 * len(groups)}"))


def url(rng: Random, scheme: str) -> str:
    host = rng.choice(["a", "a.b-c.de", "1.2.3.4", "localhost", "u:p@a", "a:81"])
    return f"{scheme}://{host}" + rng.choice(["/", "/a/b?c=d&e", "/%20#x", "/?q"])


def repeated(rng: Random, parts: Sequence[str], low: int, high: int) -> str:
    return "".join(rng.choice(parts) for _ in range(rng.randint(low, high)))
