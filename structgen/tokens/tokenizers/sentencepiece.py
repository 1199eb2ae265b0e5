"""SentencePiece models, which are protobuf messages."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from structgen.errors import VocabularyError
from structgen.tokens.tokenizers.data import (
    DAMAGE,
    SUPPORTED,
    Encoder,
    TokenizerData,
    TokenTable,
    as_ids,
)
from structgen.tokens.tokenizers.spelling import (
    SPACE,
    is_control_mark,
    space_mark_literal,
    spell_piece,
)

# SentencePiece models: ModelProto { pieces = 1, trainer_spec = 2, normalizer_spec = 3 },
# SentencePiece { piece = 1, score = 2, type = 3 }.
_NORMAL, _CONTROL, _USER_DEFINED, _BYTE = 1, 3, 4, 6
_MODEL_TYPES = {1: "Unigram", 2: "BPE", 3: "word", 4: "character"}
Fields = dict[int, Any]


def proto_data(content: bytes, eos: tuple[int, ...], special: tuple[int, ...]) -> TokenizerData:
    try:
        eos = eos or _proto_eos(content)
    except DAMAGE as error:
        raise VocabularyError(
            "this is neither a tokenizer.json nor a SentencePiece model "
            f"(it starts with {content[:16]!r})"
        ) from error
    return TokenizerData("proto", content, hashlib.sha256(content).hexdigest(), eos, special)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """(field number, value) pairs of a protobuf message: int, or bytes for everything longer."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag & 7 == 0:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        if tag & 7 == 2:
            size, position = _varint(message, position)
        else:
            size = {1: 8, 5: 4}[tag & 7]
        if position + size > len(message):
            raise ValueError("a field is cut off")
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def _split_proto(content: bytes) -> tuple[list[bytes], Fields, Fields]:
    """(pieces, each a message; trainer settings; normalizer settings)."""
    pieces: list[bytes] = []
    trainer: Fields = {}
    normalizer: Fields = {}
    for number, value in _fields(content):
        if number == 1:
            pieces.append(value)
        elif number in (2, 3):
            (trainer if number == 2 else normalizer).update(_fields(value))
    if not pieces:
        raise ValueError("there are no pieces")
    return pieces, trainer, normalizer


def _proto_eos(content: bytes) -> tuple[int, ...]:
    pieces, trainer, _ = _split_proto(content)
    name: bytes = trainer.get(47, b"</s>")
    found = [token_id for token_id, piece in enumerate(pieces) if name in piece]
    fields = {token_id: dict(_fields(pieces[token_id])) for token_id in found}
    return as_ids(i for i, f in fields.items() if f[1] == name and f.get(3) == _CONTROL)


def read_proto(data: TokenizerData) -> TokenTable:
    messages, trainer, normalizer = _split_proto(data.content)
    pieces = [_piece(message) for message in messages]
    if not any(kind == _BYTE for _, kind in pieces):
        model = _MODEL_TYPES.get(trainer.get(3, 1), "unknown")
        raise VocabularyError(
            f"found a SentencePiece {model} model without byte fallback, so that most characters "
            f"have no tokens; supported are {SUPPORTED}"
        )
    tokens = [_spell_proto(piece, kind) for piece, kind in pieces]
    for token_id in data.special_ids:
        if token_id < len(tokens):
            tokens[token_id] = None
    marks = [i for i, (_, kind) in enumerate(pieces) if kind == _USER_DEFINED and not tokens[i]]
    settings = {"literals": space_mark_literal(tokens), "marks": marks}
    return TokenTable(tokens, "sentencepiece", _describe_proto_normalizer(normalizer), settings)


def _piece(message: bytes) -> tuple[str, int]:
    """(text, type) of a piece."""
    fields = dict(_fields(message))
    return fields[1].decode(), fields.get(3, _NORMAL)


def _spell_proto(piece: str, kind: int) -> bytes | None:
    if kind == _USER_DEFINED and is_control_mark(piece):
        return None
    if kind in (_NORMAL, _USER_DEFINED):
        return piece.replace(SPACE, " ").encode() or None
    return spell_piece(piece) if kind == _BYTE else None


def _describe_proto_normalizer(fields: Fields) -> str | None:
    names = [fields.get(1, b"").decode()] if fields.get(2) else []
    return ", ".join(names + ["remove_extra_whitespaces"] * fields.get(4, 1)) or None


def build_proto_encoder(data: TokenizerData, settings: Mapping[str, Any]) -> Encoder:
    library: Any = importlib.import_module("sentencepiece")
    model = _continuation_model(data.content, frozenset(settings["marks"]))
    processor = library.SentencePieceProcessor(model_proto=model)
    return lambda text: processor.encode(text)


def _continuation_model(content: bytes, marks: frozenset[int]) -> bytes:
    """The same model without dummy prefix, normalisation and recognition of control marks.

    Protobuf readers merge repeated messages and let the last value of a field win, so what is to
    be overruled is only written once more.
    """
    pieces = _split_proto(content)[0]
    hidden = [piece + bytes([3 << 3, _CONTROL]) for piece in pieces]
    chosen = [hidden[i] if i in marks else piece for i, piece in enumerate(pieces)]
    body = [_message(number, value) for number, value in _fields(content) if number in (2, 3)]
    # precompiled_charsmap = 2, add_dummy_prefix = 3, remove_extra_whitespaces = 4
    overruled = bytes([2 << 3 | 2, 0, 3 << 3, 0, 4 << 3, 0])
    return b"".join([*(_message(1, piece) for piece in chosen), *body, _message(3, overruled)])


def _message(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field."""
    size, encoded = len(content), bytearray([number << 3 | 2])
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    return bytes([*encoded, size]) + content
