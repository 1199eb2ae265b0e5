"""Formats against the JSON Schema test suite's tables and an independent validator."""

from __future__ import annotations

import datetime as dt
import ipaddress
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen import regex
from structgen.schema.digits import between, integers
from structgen.schema.formats import FORMATS, format_node
from structgen.schema.strings import content_dfa
from tests.schema.samples import walk
from tests.strategies import examples

GOOD = {
    "date": ["2000-02-29", "2024-12-31", "0001-01-01"],
    "date-time": ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123456789-23:59"],
    "time": ["23:59:59Z", "00:00:00.5+01:00"],
    "duration": ["P1D", "PT1H30M", "P2W", "P1Y2M3DT4H5M6S", "P1M"],
    "email": [
        "a@b",
        "a.b+c@example.com",
        "a" * 64 + "@" + "b" * 63 + ".c",
        '"a b"@c.d',
        "a@[127.0.0.1]",
        "a@[IPv6:::1]",
        "a.xn--b@c",
    ],
    "idn-email": ["a@b", "실례@실례.테스트", "δοκιμή@example.com", '"δ δ"@a', "é" * 16 + "@a"],
    "idn-hostname": [
        "a",
        "실례.테스트",
        "президент.рф",
        "españa.example",
        "l·l",
        "\u03b1͵β",
        "אבג",
        "א\u05f3ב",
        "・ァ",
        "क\u094d\u200dष",
        "ب٠ب",
        "a1.אב",
    ],
    "iri": ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://[V1.fe]", "urn:é", "a:?\U000f0000"],
    "iri-reference": ["/âππ", "#ƒrägmênt", "//é/b"],
    "hostname": ["a", "a-b.c1", "A" * 63, "a--b", "1.2.3.4"],
    "ipv4": ["0.0.0.0", "255.249.199.99"],
    "ipv6": ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "::1.2.3.4", "1:2::1.2.3.4"],
    "uuid": ["12345678-1234-5678-1234-56781234567F"],
    "uri": [
        "http://[v1f.a:b]/",
        "http://a/b?c#d",
        "mailto:x@y",
        "urn:a:b",
        "x:",
        "http://[::1]:80/",
        "a:/b//c",
    ],
    "uri-reference": ["", "#a", "//a/b", "../a", "a/b:c", "?q"],
    "uri-template": ["", "a'b", "a😀", "{a}", "/x{?a,b*,c:3}", "{+path}/here"],
    "json-pointer": ["", "/", "/a~0b~1c/é"],
    "relative-json-pointer": ["0", "1/a", "10#"],
    "full-date": ["2024-02-29"],
    "regex": [
        "",
        "a{2}",
        "a{0,12}",
        r"\d{3}-\d{4,}",
        "(a|(?:b|c)*d)+",
        "^a+$",
        "a|b",
        "[a-z0-9]*?",
        r"\d\.",
        "(?:a|b)?c",
        "(|a)",
    ],
    "byte": ["", "AA==", "AAA=", "AAAA", "+/+/AQ=="],
}
BAD = {
    "date": ["1900-02-29", "2023-04-31", "2020-00-01", "0000-01-01", "20200101", "2020-01-01\n"],
    "date-time": ["2020-01-01", "2020-01-01T00:00:00", "2020-01-01T24:00:00Z"],
    "time": ["00:00:00", "24:00:00Z", "00:00Z"],
    "duration": ["P", "PT", "P1", "P1Y1W", "PT1D", "P1Y2D", "P1S"],
    "email": ["a", "@b", "a@", ".a@b", "a..b@c", "a@b_c", "a" * 65 + "@b", "a@xn--b",
              '"a', '"a@b', '"a"b@c', '"' + "a" * 63 + '"@b', "a@[1.2.3]", "é@b", "a@b.xn--c"],
    "idn-email": ["é", "@é", "é" * 17 + "@a", "a@é-", "a@-é", "a@xn--é"],
    "idn-hostname": ["", "é-", "-é", "xn--b", "a·l", "\u03b1͵", "\u03b1͵s", "a\u05f3ב", "・",
                     "क\u200dष", "0a.א", "aא", "0א", "e\u0301", "ébcdefghijklmnopq", "É", "a。é"],
    "iri": ["é", "\\é", "http://a b", "http://a/\ue000", "http://[v1]"],
    "iri-reference": ["#ƒräg\\mênt", "a b"],
    "hostname": ["", "-a", "a-", "a..b", "a.", "a_b", "A" * 64, "xn--a", "ab--c", "é"],
    "ipv4": ["1.2.3", "256.0.0.0", "01.0.0.0", "1.2.3.4.5"],
    "ipv6": ["", ":", ":::", "1:2:3:4:5:6:7", "1::2::3", "12345::", "::1%eth0",
             "1:2:3:4:5:6:7:8::"],
    "uri": ["", "a b:c", "//a", "http://[::1", "a:%zz", "http://a:65536"],
    "uri-reference": ["a b", "1:b", "%", "\\"],
    "uri-template": ["{", "{}", "{a", "{a:0}", "{a:99999}"],
    "json-pointer": ["a", "/~", "/~2"],
    "relative-json-pointer": ["", "-1", "01", "0##", "#"],
    "full-date": ["2023-02-29", "2024-02-29T00:00:00Z"],
    "regex": ["a{", "a{2,1}", "a{100}", "(a){2}", "(?=a)", r"(a)\1", "(((a)))",
              "(", "a)", "[", "*", "a**", "(a", "[]", "\\"],
    "byte": ["A", "AAA", "AB==", "AAB=", "=", "A A="],
}  # fmt: skip


def dfa_of(name: str) -> regex.Dfa:
    node = format_node(name)
    assert node is not None
    return content_dfa(node.patterns, node.excluded)


@pytest.mark.parametrize("name", sorted(GOOD))
def test_tables(name: str):
    dfa = dfa_of(name)
    assert [text for text in GOOD[name] if not regex.matches(dfa, text)] == []
    assert [text for text in BAD.get(name, ()) if regex.matches(dfa, text)] == []


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_automata_are_small(name: str):
    most = 2500 if name.startswith("idn-") else 1000
    assert len(dfa_of(name)) < most


def test_unknown_formats():
    assert format_node("colour") is None


@pytest.mark.parametrize("name", sorted(FORMATS - {"byte"}))
def test_whatever_is_generated_passes_another_validator(name: str):
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    validator = jsonschema_rs.Draft202012Validator(
        {"type": "string", "format": name}, validate_formats=True
    )
    dfa, rng = dfa_of(name), random.Random(name)
    texts = [walk(dfa, rng) for _ in range(300)]
    assert [text for text in texts if not validator.is_valid(text)] == []


@pytest.mark.parametrize(("name", "most"), [("hostname", 253), ("email", 254)])
def test_hosts_are_never_too_long(name: str, most: int):
    too_long = regex.lengths(most + 1, None)
    assert regex.is_empty(regex.intersect(dfa_of(name), too_long, 10**6))


def test_regular_expressions_are_read_by_python():
    rng = random.Random(1)
    for _ in range(500):
        re.compile(walk(dfa_of("regex"), rng))


@examples(100)
@given(st.dates())
def test_every_date(day: dt.date):
    assert regex.matches(dfa_of("date"), day.isoformat())


@examples(100)
@given(st.from_regex(r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]\Z"))
def test_only_dates(text: str):
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        assert not regex.matches(dfa_of("date"), text)
    else:
        assert regex.matches(dfa_of("date"), text)


@examples(100)
@given(st.one_of(st.ip_addresses(v=6).map(str), st.from_regex(r"[0-9a-f:]{2,20}\Z")))
def test_ipv6(text: str):
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        assert not regex.matches(dfa_of("ipv6"), text)
    else:
        assert regex.matches(dfa_of("ipv6"), text)


@examples(100)
@given(st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 9999))
def test_ranges_of_one_width(a: int, b: int, n: int):
    low, high = sorted((a, b))
    pattern = between(f"{low:04}", f"{high:04}")
    assert bool(re.fullmatch(pattern, f"{n:04}")) == (low <= n <= high)


@examples(100)
@given(st.integers(-1200, 1200), st.integers(-1200, 1200), st.integers(-1300, 1300))
def test_ranges_of_integers(a: int, b: int, n: int):
    low, high = sorted((a, b))
    for first, last in ((low, high), (None, high), (low, None)):
        inside = (first is None or first <= n) and (last is None or n <= last)
        assert bool(re.fullmatch(integers(first, last, 6), str(n))) == inside


@pytest.mark.parametrize("text", ["-0", "00", "+1", "", "01", "1234567"])
def test_integers_have_one_spelling(text: str):
    assert not re.fullmatch(integers(None, None, 6), text)
