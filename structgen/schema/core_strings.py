"""Types that JSON writes as strings: text, bytes, dates, durations, UUIDs, URLs.

Each has one canonical spelling: ISO 8601 with seconds, lower-case hexadecimal digits, padded
base64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from structgen.schema import nodes
from structgen.schema.core_numbers import BOUNDS
from structgen.schema.core_reader import Core, Reader, ReadType, inner
from structgen.schema.digits import between
from structgen.schema.formats import DATE, OFFSET, base64_groups, clock, whole
from structgen.schema.keywords import CONFIG_REFUSED
from structgen.schema.nodes import Embedded, Never, Node, Pattern, String
from structgen.schema.python_patterns import rust_source
from structgen.schema.urls import url_node

STRIPPED = whole(r"(?:\S(?:[\s\S]*\S)?)?")
"""Text that stripping does not change: the engine's whitespace is what Pydantic strips."""
ASCII = whole(r"[\x00-\x7F]*")

_N = "[0-9]{1,5}"
_S = rf"{_N}(?:\.[0-9]{{1,6}})?S"
_CLOCK_SPAN = f"T(?:{_N}H(?:{_N}M)?(?:{_S})?|{_N}M(?:{_S})?|{_S})"
_DATE_SPAN = (
    f"(?:{_N}Y(?:{_N}M)?(?:[0-9]{{1,8}}D)?|{_N}M(?:[0-9]{{1,8}}D)?|[0-9]{{1,8}}D|[0-9]{{1,4}}W)"
)
DURATION = f"-?P(?:{_DATE_SPAN}(?:{_CLOCK_SPAN})?|{_CLOCK_SPAN})"
"""Far below the 999,999,999 days at which Pydantic stops."""


def _string(reader: Reader, core: Core, path: str) -> Node:
    known = ("min_length", "max_length", "pattern", "strip_whitespace", "ascii_only")
    reader.check_keys(core, path, *known, "regex_engine")
    for setting, why in CONFIG_REFUSED.items():
        if reader.setting(setting):
            reader.refuse(path, f"the model setting {setting} cannot be enforced: {why}")
    low = core.get("min_length", reader.setting("str_min_length")) or 0
    high = core.get("max_length", reader.setting("str_max_length"))
    node = reader.possible(nodes.string(low, high), path)
    if isinstance(node, String):
        return replace(node, patterns=tuple(_patterns(reader, core, path)))
    return node


def _patterns(reader: Reader, core: Core, path: str) -> Iterator[Pattern]:
    pattern = core.get("pattern")
    if pattern is not None:
        yield from _pattern(reader, core, pattern, path)
    strip = core.get("strip_whitespace")
    if reader.setting("str_strip_whitespace") if strip is None else strip:
        yield STRIPPED
    if core.get("ascii_only"):
        yield ASCII


def _pattern(reader: Reader, core: Core, pattern: Any, path: str) -> Iterator[Pattern]:
    engine = core.get("regex_engine") or reader.setting("regex_engine")
    if isinstance(pattern, str) and engine != "python-re":
        yield Pattern(pattern)
        return
    source = rust_source(pattern)
    if source is None:
        reader.refuse(
            path,
            f"the pattern {pattern!r} is read by Python's re and may mean something else there",
            "pass it as a str without flags, for the default regex engine",
        )
        return
    yield Pattern(source)


def _bytes(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "min_length", "max_length")
    low, high = core.get("min_length") or 0, core.get("max_length")
    if high is not None and low > high:
        return reader.possible(Never(f"min_length {low} is more than max_length {high}"), path)
    match reader.setting("val_json_bytes"):
        case "base64":
            return base64_node("+/", low, high)
        case "hex":
            doubled = None if high is None else 2 * high
            return String(2 * low, doubled, (whole("(?:[0-9a-f]{2})*"),), name="hex")
        case _ if low or high is not None:
            # A length counts bytes, so only characters of one byte are written.
            return String(low, high, (ASCII,), name="bytes")
        case _:
            return String(name="bytes")


def base64_node(alphabet: str, low: int = 0, high: int | None = None) -> Node:
    """Base64 of so many bytes: one option for each length of the last group."""
    options: list[Node] = []
    for tail in range(3):
        groups = max(0, -((tail - low) // 3))
        most = None if high is None else (high - tail) // 3
        if most is None or groups <= most:
            extra = 4 if tail else 0
            longest = None if most is None else 4 * most + extra
            pattern = whole(base64_groups(alphabet, tail))
            options.append(String(4 * groups + extra, longest, (pattern,), name="base64"))
    if not low and high is None:
        source = "|".join(base64_groups(alphabet, tail) for tail in range(3))
        return String(patterns=(whole(source),), name="base64")
    return nodes.union(options)


def base64_text_node(alphabet: str) -> Node:
    """Base64 of ASCII text, so that what is decoded is text too."""
    # The highest bit of every byte is zero: it lies in the first, second or third digit of four.
    first, second, third = "[A-Za-f]", "[A-HQ-Xg-nw-z0-3]", "[ABEFIJMNQRUVYZcdghklopstwx014589]"
    # What stands for no byte is zero as well.
    endings = f"{first}[AQgw]==|{first}{second}[AEIMQUYcgkosw048]="
    groups = f"(?:{first}{second}{third}[A-Za-z0-9{alphabet}])*"
    return String(patterns=(whole(f"{groups}(?:{endings})?"),), name="base64")


def _date(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, *BOUNDS, "now_op", "now_utc_offset")
    _after_now(reader, core, path)
    low, high = date.min, date.max
    for key in BOUNDS:
        bound = core.get(key)
        if bound is None:
            continue
        day = timedelta(days=1)
        if (key == "gt" and bound == date.max) or (key == "lt" and bound == date.min):
            return reader.possible(Never(f"no date is {key} {bound}"), path)
        if key in ("ge", "gt"):
            low = max(low, bound if key == "ge" else bound + day)
        else:
            high = min(high, bound if key == "le" else bound - day)
    if low > high:
        return reader.possible(Never(f"no date lies between {low} and {high}"), path)
    patterns = (whole(DATE),)
    if (low, high) != (date.min, date.max):
        patterns = (*patterns, whole(between(low.isoformat(), high.isoformat())))
    return String(patterns=patterns, name=_days_between(low, high))


def _days_between(low: date, high: date) -> str:
    """What people call dates between two."""
    since = [f"from {low}"] * (low != date.min)
    until = [f"until {high}"] * (high != date.max)
    return " ".join(["date", *since, *until])


def _time(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "tz_constraint", "microseconds_precision")
    return _zoned(reader, core, path, clock(6), "time")


def _datetime(reader: Reader, core: Core, path: str) -> Node:
    known = ("now_op", "now_utc_offset", "tz_constraint", "microseconds_precision")
    reader.check_keys(core, path, *known)
    _after_now(reader, core, path)
    return _zoned(reader, core, path, f"{DATE}T{clock(6)}", "date-time")


def _zoned(reader: Reader, core: Core, path: str, source: str, name: str) -> Node:
    """With or without an offset, as the type asks; bounds were refused with the other keys."""
    zone = core.get("tz_constraint")
    if zone is not None and zone not in ("aware", "naive"):
        return reader.refuse(path, f"the offset tz_constraint={zone!r} cannot be enforced")
    offset = {"aware": OFFSET, "naive": "", None: f"{OFFSET}?"}[zone]
    which = {"aware": " with an offset", "naive": " without an offset", None: ""}[zone]
    return String(patterns=(whole(source + offset),), name=name + which)


def _after_now(reader: Reader, core: Core, path: str) -> None:
    """What lies in the past or the future is only known when it is validated."""
    if core.get("now_op") is not None:
        reader.after_check(path, f"lies in the {core['now_op']}")


def _timedelta(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "microseconds_precision")
    return String(patterns=(whole(DURATION),), name="duration")


def _uuid(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "version")
    version = core.get("version")
    third, fourth = ("[0-9a-f]", "[0-9a-f]") if version is None else (f"{version:x}", "[89ab]")
    source = (
        f"[0-9a-f]{{8}}-[0-9a-f]{{4}}-{third}[0-9a-f]{{3}}-{fourth}[0-9a-f]{{3}}-[0-9a-f]{{12}}"
    )
    name = "uuid" if version is None else f"uuid of version {version}"
    return String(patterns=(whole(source),), name=name)


def _url(reader: Reader, core: Core, path: str) -> Node:
    known = ("max_length", "allowed_schemes", "host_required")
    reader.check_keys(core, path, *known, "default_host", "default_port", "default_path")
    node = url_node(
        core.get("allowed_schemes"), core.get("max_length"), core["type"] == "multi-host-url"
    )
    return reader.possible(node, path)


def _json(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path)
    node = reader.node(inner(core, "schema"), path)
    return node if isinstance(node, Never) else Embedded(node)


STRINGS: Mapping[str, ReadType] = {
    "str": _string,
    "bytes": _bytes,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "timedelta": _timedelta,
    "uuid": _uuid,
    "url": _url,
    "multi-host-url": _url,
    "json": _json,
}
