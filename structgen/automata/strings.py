r"""The frame of a JSON string: `"`, characters, `"`.

One character is raw UTF-8, a short escape, or `\uXXXX`; a surrogate pair is one character and a
lone surrogate cannot be written. Each character is one counted unit, taken at its first byte.
"""

from __future__ import annotations

from functools import cache

from structgen.automata.frames import COUNT, END, ROOM, Frame, FrameBuilder

UNIT = ROOM | COUNT
HEX = b"0123456789abcdefABCDEF"
SHORT_ESCAPES = b'"\\/bfnrt'

# UTF-8 lead bytes with the range of their second byte and the number of bytes after it
# (RFC 3629, table in section 4: no overlong forms, no surrogates, nothing above U+10FFFF).
UTF8_LEADS = (
    (0xC2, 0xDF, 0x80, 0xBF, 0),
    (0xE0, 0xE0, 0xA0, 0xBF, 1),
    (0xE1, 0xEC, 0x80, 0xBF, 1),
    (0xED, 0xED, 0x80, 0x9F, 1),
    (0xEE, 0xEF, 0x80, 0xBF, 1),
    (0xF0, 0xF0, 0x90, 0xBF, 2),
    (0xF1, 0xF3, 0x80, 0xBF, 2),
    (0xF4, 0xF4, 0x80, 0x8F, 2),
)


@cache
def string_frame() -> Frame:
    """The frame of every string; its registers hold the bounds on the length."""
    b = FrameBuilder("string")
    b.literal(b'"')
    inside = b.state()
    closed = b.state(accept=True)
    b.bytes_edge(inside, b'"', closed, END)
    add_raw_characters(b, inside)
    _add_escapes(b, inside)
    return b.frame(loop=inside, chars=True, wide=True)


@cache
def canonical_string_frame() -> Frame:
    """The same with each character in one way only: equal text is equal value."""
    b = FrameBuilder("string")
    b.literal(b'"')
    inside = b.state()
    closed = b.state(accept=True)
    b.bytes_edge(inside, b'"', closed, END)
    canonical_characters(b, inside)
    return b.frame(loop=inside, chars=True, wide=True)


def add_raw_characters(b: FrameBuilder, inside: int) -> None:
    """Edges from `inside` back to it over every character that needs no escape."""
    tail = [inside]
    for _ in range(2):
        more = b.state()
        b.edge(more, 0x80, 0xBF, tail[-1])
        tail.append(more)
    for first, last in ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F)):
        b.edge(inside, first, last, inside, UNIT)
    for lead_first, lead_last, first, last, rest in UTF8_LEADS:
        second = b.state()
        b.edge(inside, lead_first, lead_last, second, UNIT)
        b.edge(second, first, last, tail[rest])


def _add_escapes(b: FrameBuilder, inside: int) -> None:
    escape = b.state()
    b.edge(inside, 0x5C, 0x5C, escape, UNIT)
    b.bytes_edge(escape, SHORT_ESCAPES, inside)
    unicode = b.state()
    b.bytes_edge(escape, b"u", unicode)
    last = _hex_tail(b, inside, 1)
    last_two = _hex_tail_onto(b, last)
    last_three = _hex_tail_onto(b, last_two)
    b.bytes_edge(unicode, b"0123456789abcefABCEF", last_three)
    after_d = b.state()
    b.bytes_edge(unicode, b"dD", after_d)
    b.bytes_edge(after_d, b"01234567", last_two)
    _add_low_surrogate(b, inside, after_d)


def _add_low_surrogate(b: FrameBuilder, inside: int, after_d: int) -> None:
    r"""After `\ud[89ab]XX` a low surrogate `\ud[c-f]XX` must follow."""
    low_tail = _hex_tail(b, inside, 2)
    start = b.literal(b"\\u")
    low_d = b.state()
    low_second = b.state()
    b.bytes_edge(low_d, b"dD", low_second)
    b.bytes_edge(low_second, b"cdefCDEF", low_tail)
    high_last = b.state()
    b.bytes_edge(high_last, HEX, start)
    high_tail = b.state()
    b.bytes_edge(high_tail, HEX, high_last)
    b.bytes_edge(after_d, b"89abAB", high_tail)


def _hex_tail(b: FrameBuilder, to: int, length: int) -> int:
    for _ in range(length):
        to = _hex_tail_onto(b, to)
    return to


def _hex_tail_onto(b: FrameBuilder, to: int) -> int:
    state = b.state()
    b.bytes_edge(state, HEX, to)
    return state


def canonical_characters(b: FrameBuilder, inside: int) -> None:
    """Like a string's inside, but each character in one way only, as `json.dumps` writes it.

    Keys that must differ from given keys are written so: equal text is then equal key.
    """
    add_raw_characters(b, inside)
    escape = b.state()
    b.edge(inside, 0x5C, 0x5C, escape, UNIT)
    b.bytes_edge(escape, b'"\\bfnrt', inside)
    zeros = b.literal(b"00")
    third = b.state()
    b.bytes_edge(escape, b"u", zeros)
    low, high = b.state(), b.state()
    b.bytes_edge(third, b"0", low)
    b.bytes_edge(third, b"1", high)
    # U+0008, 9, A, C and D have short escapes; the other control characters do not.
    b.bytes_edge(low, b"01234567bef", inside)
    b.bytes_edge(high, b"0123456789abcdef", inside)
