"""The bytes that one piece of a vocabulary stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from structgen.tokens.tokenizers.data import Family, Json

SPACE = "\u2581"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_UNUSED_PIECE = re.compile(r"<unused\d+>")
# CodeLlama's marks begin with a space. DeepSeek has one that ends in `>` and the bar, the wrong way
# round, so that whatever starts like its marks is taken for one.
_CONTROL_MARK = re.compile(rf"[ {SPACE}]?(<[^<>\n]+>|\[[^\[\]\n]+\]|<[|\uFF5C].*)")


def is_control_mark(text: str) -> bool:
    """Whether added text is taken for a control mark: `<think>` is, a newline or `a <b>` not."""
    return _CONTROL_MARK.fullmatch(text) is not None


def _alphabet() -> dict[int, int]:
    """Code point -> byte in GPT-2's alphabet; other code points below 256 are made unencodable.

    Bytes that print in Latin-1 stand for themselves, the other ones are numbered from 256 on.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = sorted(set(range(256)) - set(printable))
    table = dict.fromkeys(others, 0xFFFF)
    table |= {byte: byte for byte in printable}
    return table | {256 + index: byte for index, byte in enumerate(others)}


_ALPHABET = _alphabet()


def spell_byte_level(piece: str) -> bytes | None:
    """`Ġa` -> b" a"; None for a piece that is not written in the alphabet."""
    try:
        return piece.translate(_ALPHABET).encode("latin-1") or None
    except UnicodeEncodeError:
        return None


def spell_piece(piece: str) -> bytes | None:
    """`▁a` -> b" a", `<0x41>` -> b"A"."""
    if match := _BYTE_PIECE.fullmatch(piece):
        return bytes([int(match[1], 16)])
    if _UNUSED_PIECE.fullmatch(piece):
        return None
    return piece.replace(SPACE, " ").encode() or None


def spell_added(token: Json, family: Family) -> bytes | None:
    """The literal text of an added token that may be part of a value.

    In a SentencePiece vocabulary it is a piece, in which U+2581 is still a space: Gemma lists its
    runs of spaces as added tokens.
    """
    text: str = token["content"]
    if token["special"] or is_control_mark(text):
        return None
    return (text if family == "byte-level" else text.replace(SPACE, " ")).encode() or None


def space_mark_literal(tokens: Sequence[bytes | None]) -> dict[str, list[int]]:
    parts = [bytes([byte]) for byte in SPACE.encode()]
    complete = all(part in tokens for part in parts)
    return {SPACE: [tokens.index(part) for part in parts]} if complete else {}
