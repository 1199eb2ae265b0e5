"""The string frame, and the frame of undeclared keys, against json and len."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structgen.automata.calls import NO_LIMIT
from structgen.automata.keys import other_key_frame
from structgen.automata.strings import string_frame
from tests.automata.frames import accepts
from tests.strategies import examples

PIECES = st.sampled_from(
    [
        "a", "é", "\uffff", "\U0001f600", "\\", '"', "\n", "\x7f", "\x00", "/", " ",
        '\\"', "\\\\", "\\/", "\\b", "\\n", "\\u0041", "\\u00E9", "\\u0000", "\\uD83D\\uDE00",
        "\\ud83d", "\\ude00", "\\uD83D\\u0041", "\\x", "\\u12", "\\u12G4", "\\U0041", "\\uDBFF",
    ]
)  # fmt: skip
LIMITS = st.tuples(st.integers(0, 6), st.integers(0, 6)) | st.just((0, NO_LIMIT))


def length(text: bytes) -> int | None:
    """Code points of a JSON string; None if it is none, or not text."""
    try:
        value = json.loads(text)
        value.encode()
    except ValueError:
        return None
    return len(value) if text.startswith(b'"') and text.endswith(b'"') else None


def check(body: bytes, need: int, room: int) -> None:
    text = b'"' + body + b'"'
    n = length(text)
    expected = n is not None and need <= n <= room
    assert accepts(string_frame(), text, need, room) == expected, text


@examples(600)
@given(st.lists(PIECES, max_size=7).map("".join), LIMITS)
@example("", (0, 0))
@example("\\ud83d\\ude00", (1, 1))
@example("\\uD83D\\uDE00\\uD83D", (0, NO_LIMIT))
def test_strings_of_pieces(body, limits):
    check(body.encode(), *limits)


@examples(300)
@given(st.text(max_size=8), LIMITS, st.booleans())
def test_every_text(text, limits, ascii_only):
    body = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    try:
        check(body.encode(), *limits)
    except UnicodeEncodeError:
        assert not ascii_only


@examples(500)
@given(st.binary(max_size=6))
def test_every_byte_string(body):
    check(body, 0, NO_LIMIT)


def test_every_code_point():
    frame = string_frame()
    for code in [*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010), 0x10FFFF]:
        raw = b'"' + chr(code).encode("utf-8", "surrogatepass") + b'"'
        expected = code >= 0x20 and code not in (0x22, 0x5C) and not 0xD800 <= code < 0xE000
        assert accepts(frame, raw, 1, 1) == expected, hex(code)
        if code < 0x10000:
            escaped = f'"\\u{code:04x}"'.encode()
            assert accepts(frame, escaped, 1, 1) == (not 0xD800 <= code < 0xE000), hex(code)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf",
        b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xc3", b"\xff",
    ],
)  # fmt: skip
def test_bytes_that_are_not_utf8(raw):
    assert not accepts(string_frame(), b'"' + raw + b'"')


def canonical(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


NAMES = st.sets(st.sampled_from(["a", "ab", "abc", "", '"', "\n", "\x01", "é", "è", "\U0001f600"]))


@examples(300)
@given(NAMES, st.text(st.sampled_from('ab"\n\x01éè😀\\c'), max_size=4))
def test_an_undeclared_key_is_any_other_text(names, key):
    frame = other_key_frame(frozenset(names))
    for name in names:
        assert not accepts(frame, canonical(name))
    assert accepts(frame, canonical(key)) == (key not in names)


@examples(300)
@given(NAMES, st.lists(PIECES, max_size=4).map("".join))
def test_an_undeclared_key_is_written_in_one_way(names, body):
    text = b'"' + body.encode() + b'"'
    expected = False
    if length(text) is not None:
        value = json.loads(text)
        expected = canonical(value) == text and value not in names
    assert accepts(other_key_frame(frozenset(names)), text) == expected


@pytest.mark.parametrize("code", range(0x80))
def test_every_ascii_character_in_a_key(code):
    frame = other_key_frame(frozenset({"x"}))
    assert accepts(frame, canonical(chr(code))) == (chr(code) != "x")
    escaped = f'"\\u{code:04x}"'.encode()
    assert accepts(frame, escaped) == (canonical(chr(code)) == escaped)
