"""Tokenizers, read as the exact bytes of every token id. No other file knows their formats.

    open_tokenizer(anything)     -> TokenizerData   the tokenizer's own data, not yet interpreted
    read_tokens(data)            -> TokenTable      bytes by id, and what an encoder has to know
    make_encoder(data, settings) -> str -> ids      how the tokenizer would continue a text

Bytes come from the tokenizer's data. Decoding ids one at a time would lose them: a decoder
replaces what is not UTF-8 and may drop a leading space. Two families are read:

- *byte-level*: BPE whose vocabulary is written in GPT-2's printable byte alphabet;
- *sentencepiece*: U+2581 stands for a space and `<0xXX>` for a byte, in a `tokenizer.json` or in a
  SentencePiece model.

An id has no bytes (None) if it is a hole, an unknown, control or unused piece, a token flagged
special, or added text that looks like a control mark: all of it in one pair of angle or square
brackets, such as `<|im_end|>`, `<think>` or `[INST]`, or starting with `<` and a bar, U+007C or
DeepSeek's fullwidth U+FF5C. Other added text, such as runs of newlines or plain words, keeps its
UTF-8 bytes. Leaving a mark out loses no text, since smaller tokens can still spell it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from structgen.errors import InvalidTextError, VocabularyError

Encoder = Callable[[str], list[int]]
Family = Literal["byte-level", "sentencepiece"]
Json = dict[str, Any]

SUPPORTED = (
    "byte-level BPE (GPT-2's byte alphabet: Llama 3, Qwen, SmolLM2, DeepSeek) and SentencePiece "
    "with byte fallback (Llama 2, Mistral, Gemma)"
)

_SPACE = "\u2581"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_UNUSED_PIECE = re.compile(r"<unused\d+>")
# CodeLlama's marks begin with a space. DeepSeek has one that ends in `>` and the bar, the wrong way
# round, so that whatever starts like its marks is taken for one.
_CONTROL_MARK = re.compile(rf"[ {_SPACE}]?(<[^<>\n]+>|\[[^\[\]\n]+\]|<[|\uFF5C].*)")

_DAMAGE = (KeyError, IndexError, TypeError, AttributeError, ValueError)


@dataclass(frozen=True, slots=True)
class TokenizerData:
    """A tokenizer's own data, and what its wrapper says about it."""

    kind: Literal["json", "proto"]
    content: bytes
    """The text of a `tokenizer.json`, or a serialised SentencePiece model."""
    digest: str
    """SHA-256 of the content, without a `tokenizer.json`'s padding and truncation settings."""
    eos_token_ids: tuple[int, ...]
    """As the wrapper, the model or the files beside it say; may be empty."""
    special_ids: tuple[int, ...] = ()
    """Ids that the wrapper uses as special tokens, flagged or not."""
    backend: Any = None
    """The live `tokenizers.Tokenizer`, if there is one: an encoder shares its model."""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """What `read_tokens` found."""

    tokens: Sequence[bytes | None]
    """Bytes by id, None where an id must never be part of a value."""
    family: Family
    normalizer: str | None
    """Names of the steps that may change a prompt's text before it is encoded, e.g. `NFC`."""
    settings: Json
    """JSON-able; all that `make_encoder` has to know about the content."""


def open_tokenizer(tokenizer: object) -> TokenizerData:
    """The data behind a path or a tokenizer object; objects are told apart by what they offer.

    Args:
        tokenizer: a transformers tokenizer, a `tokenizers.Tokenizer`, a SentencePiece processor,
            or the path of a `tokenizer.json`, of a SentencePiece model or of a folder with one.
    """
    if isinstance(tokenizer, str | os.PathLike):
        return _open_path(Path(tokenizer))
    eos = as_ids(getattr(tokenizer, "eos_token_id", None))
    special = as_ids(getattr(tokenizer, "all_special_ids", None))
    backend: Any = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        return _json_data(backend.to_str().encode(), eos, special, backend)
    processor: Any = getattr(tokenizer, "sp_model", tokenizer)
    if hasattr(processor, "serialized_model_proto"):
        return _proto_data(processor.serialized_model_proto(), eos, special)
    raise VocabularyError(
        f"a {type(tokenizer).__module__}.{type(tokenizer).__qualname__} does not give access to "
        "its data; pass a fast transformers tokenizer, a tokenizers.Tokenizer, or the path of a "
        "tokenizer.json or of a SentencePiece model"
    )


def read_tokens(data: TokenizerData) -> TokenTable:
    """The bytes of every token id, or a `VocabularyError` that says what is not understood."""
    try:
        return _read_json(data) if data.kind == "json" else _read_proto(data)
    except _DAMAGE as error:
        raise VocabularyError(f"the tokenizer's data is damaged: {error!r}") from error


def make_encoder(data: TokenizerData, settings: Mapping[str, Any]) -> Encoder | None:
    """How the tokenizer writes a text that continues another one, built on its first call.

    The ids spell exactly the text: no special token is added or recognised, nothing is put in
    front (SentencePiece's dummy prefix, `Metaspace`, `ByteLevel`), and nothing is normalised.
    What the vocabulary has no tokens for is lost, which `Vocabulary.encode` checks.

    Args:
        data: an opened tokenizer; its backend's model is shared and not changed.
        settings: the `TokenTable.settings` of the same tokenizer.

    Returns:
        None if a SentencePiece model is given and the package sentencepiece is not installed.
    """
    if data.kind == "proto" and importlib.util.find_spec("sentencepiece") is None:
        return None
    if data.backend is not None:
        data = replace(data, content=b"")  # don't keep megabytes alive for later
    build = _build_json_encoder if data.kind == "json" else _build_proto_encoder
    inner = functools.cache(lambda: build(data, settings))
    literals: dict[str, list[int]] = settings["literals"]
    longest_first = sorted(literals, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def encode(text: str) -> list[int]:
        _check_utf8(text)
        ids: list[int] = []
        position = 0
        for match in pattern.finditer(text):
            ids += inner()(text[position : match.start()])
            ids += literals[match.group()]
            position = match.end()
        return ids + inner()(text[position:])

    return encode


def as_ids(ids: int | Iterable[int] | None) -> tuple[int, ...]:
    """One id, several or none, as a sorted tuple: `[2, 0, 2]` -> `(0, 2)`."""
    if ids is None:
        return ()
    return tuple(sorted({int(i) for i in ids})) if isinstance(ids, Iterable) else (int(ids),)


def is_control_mark(text: str) -> bool:
    """Whether added text is taken for a control mark: `<think>` is, a newline or `a <b>` not."""
    return _CONTROL_MARK.fullmatch(text) is not None


def _check_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(f"a lone surrogate cannot be written as UTF-8: {error}") from error


def _open_path(path: Path) -> TokenizerData:
    if path.is_dir():
        names = ("tokenizer.json", "tokenizer.model")
        path = next((path / name for name in names if (path / name).exists()), path / names[0])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise VocabularyError(f"cannot read a tokenizer from {path}: {error}") from error
    if content.lstrip()[:1] != b"{":
        return _proto_data(content, (), ())
    return _json_data(content, _eos_beside(path, content), ())


def _json_data(
    content: bytes, eos: tuple[int, ...], special: tuple[int, ...], backend: Any = None
) -> TokenizerData:
    # Padding and truncation come before the added tokens, and transformers changes them from call
    # to call. Inside a JSON string the quotes of this key would be escaped.
    start = max(content.find(b'"added_tokens":'), 0)
    digest = hashlib.sha256(memoryview(content)[start:]).hexdigest()
    return TokenizerData("json", content, digest, eos, special, backend)


def _eos_beside(path: Path, content: bytes) -> tuple[int, ...]:
    """End tokens that `generation_config.json` and `tokenizer_config.json` beside `path` name."""
    numbered = _parse_file(path.with_name("generation_config.json")).get("eos_token_id")
    name = _parse_file(path.with_name("tokenizer_config.json")).get("eos_token")
    name = name["content"] if isinstance(name, dict) else name
    added: list[Json] = (_parse(content).get("added_tokens") or []) if name else []
    named = [token["id"] for token in added if token["content"] == name]
    return as_ids([*as_ids(numbered), *named])


def _parse_file(path: Path) -> Json:
    return _parse(path.read_bytes()) if path.exists() else {}


def _parse(content: bytes) -> Json:
    try:
        return json.loads(content)
    except ValueError as error:
        raise VocabularyError(f"the tokenizer's JSON cannot be parsed: {error}") from error


def _read_json(data: TokenizerData) -> TokenTable:
    parts = _parse(data.content)
    family = _json_family(parts)
    pieces = _json_pieces(parts["model"])
    added: list[Json] = parts.get("added_tokens") or []
    size = 1 + max([*pieces.values(), *(token["id"] for token in added)], default=-1)
    tokens: list[bytes | None] = [None] * size
    spell = _spell_byte_level if family == "byte-level" else _spell_piece
    for piece, token_id in pieces.items():
        tokens[token_id] = spell(piece)
    for token in added:
        tokens[token["id"]] = _spell_added(token, family)
    for token_id in (*data.special_ids, *_unknown_ids(parts["model"], pieces)):
        if token_id < size:
            tokens[token_id] = None
    settings = {
        "normalizer": _encoder_normalizer(parts),
        "pre_tokenizer": _without_prefix(parts.get("pre_tokenizer")),
        "literals": _literals(tokens, added, family),
    }
    return TokenTable(tokens, family, _describe_normalizer(parts), settings)


def _json_family(parts: Json) -> Family:
    """Which family a `tokenizer.json` is of; each step of its decoder has to be understood."""
    model = parts["model"]
    kind = model.get("type") or ("BPE" if "merges" in model else "untyped")
    decoders = _steps(parts.get("decoder"))
    found = {step["type"] for step in decoders}
    before = {step["type"] for step in (*_normalizers(parts), *_steps(parts.get("pre_tokenizer")))}
    affixes = model.get("continuing_subword_prefix") or model.get("end_of_word_suffix")
    if kind == "BPE" and not affixes and "ByteLevel" in found | before:
        if found <= {"ByteLevel", "Fuse"}:
            return "byte-level"
    elif kind in ("BPE", "Unigram") and not affixes and model.get("byte_fallback"):
        others = [step for step in decoders if step["type"] not in ("Fuse", "Strip")]
        marks = [step for step in others if step["type"] != "ByteFallback"]
        if len(marks) == 1 < len(others) and _is_space_mark(marks[0]):
            return "sentencepiece"
    raise VocabularyError(
        f"cannot tell the bytes of this tokenizer's tokens: found a {kind} model"
        f"{' with byte fallback' if model.get('byte_fallback') else ''}"
        f"{f' with the affix {affixes!r}' if affixes else ''}, normalizer and pre-tokenizer "
        f"{sorted(before) or 'none'}, decoder {sorted(found) or 'none'}; supported are {SUPPORTED}"
    )


def _steps(part: Json | None) -> list[Json]:
    """The leaves of a possibly nested Sequence of normalizers, pre-tokenizers or decoders."""
    if part is None or part["type"] != "Sequence":
        return [] if part is None else [part]
    children = [child for key in _SEQUENCE_KEYS for child in part.get(key, ())]
    return [step for child in children for step in _steps(child)]


_SEQUENCE_KEYS = ("normalizers", "pretokenizers", "decoders")


def _normalizers(parts: Json) -> list[Json]:
    return _steps(parts.get("normalizer"))


def _is_space_mark(step: Json) -> bool:
    """Whether a step does no more than swap spaces and U+2581, in either direction."""
    if step["type"] == "Metaspace":
        return step["replacement"] == _SPACE
    swapped = {step.get("pattern", {}).get("String"), step.get("content")}
    return step["type"] == "Replace" and swapped == {" ", _SPACE}


def _json_pieces(model: Json) -> dict[str, int]:
    """Piece -> id; a Unigram model lists [piece, score] in the order of the ids."""
    vocab: dict[str, int] | list[tuple[str, float]] = model["vocab"]
    if isinstance(vocab, dict):
        return vocab
    return {piece: token_id for token_id, (piece, _) in enumerate(vocab)}


def _unknown_ids(model: Json, pieces: Mapping[str, int]) -> list[int]:
    named = pieces.get(model.get("unk_token") or "")
    return [token_id for token_id in (named, model.get("unk_id")) if token_id is not None]


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


def _spell_byte_level(piece: str) -> bytes | None:
    """`Ġa` -> b" a"; None for a piece that is not written in the alphabet."""
    try:
        return piece.translate(_ALPHABET).encode("latin-1") or None
    except UnicodeEncodeError:
        return None


def _spell_piece(piece: str) -> bytes | None:
    """`▁a` -> b" a", `<0x41>` -> b"A"."""
    if match := _BYTE_PIECE.fullmatch(piece):
        return bytes([int(match[1], 16)])
    if _UNUSED_PIECE.fullmatch(piece):
        return None
    return piece.replace(_SPACE, " ").encode() or None


def _spell_added(token: Json, family: Family) -> bytes | None:
    """The literal text of an added token that may be part of a value.

    In a SentencePiece vocabulary it is a piece, in which U+2581 is still a space: Gemma lists its
    runs of spaces as added tokens.
    """
    text: str = token["content"]
    if token["special"] or is_control_mark(text):
        return None
    return (text if family == "byte-level" else text.replace(_SPACE, " ")).encode() or None


def _literals(
    tokens: Sequence[bytes | None], added: Sequence[Json], family: Family
) -> dict[str, list[int]]:
    """Texts that an encoder has to cut out first, with their ids.

    These are the plain added tokens, which no merge would make, and U+2581 itself, which a
    SentencePiece model would take for a space.
    """
    plain = [token for token in added if tokens[token["id"]] and not token.get("single_word")]
    literals = {token["content"]: [token["id"]] for token in plain}
    if family == "byte-level":
        return literals
    literals = {text: ids for text, ids in literals.items() if _SPACE not in text}
    return literals | _space_mark_literal(tokens)


def _space_mark_literal(tokens: Sequence[bytes | None]) -> dict[str, list[int]]:
    parts = [bytes([byte]) for byte in _SPACE.encode()]
    complete = all(part in tokens for part in parts)
    return {_SPACE: [tokens.index(part) for part in parts]} if complete else {}


def _describe_normalizer(parts: Json) -> str | None:
    """Names of the steps that change text for good; spaces as U+2581 are changed back."""
    names = [
        step["type"]
        for step in _normalizers(parts)
        if step["type"] not in ("Prepend", "ByteLevel") and not _is_space_mark(step)
    ]
    return ", ".join(names) or None


def _encoder_normalizer(parts: Json) -> Json | None:
    """The steps that only change the alphabet: bytes as characters, spaces as U+2581."""
    steps = _normalizers(parts)
    kept = [step for step in steps if step["type"] == "ByteLevel" or _is_space_mark(step)]
    return {"type": "Sequence", "normalizers": kept} if kept else None


def _without_prefix(part: Json | None) -> Json | None:
    """A pre-tokenizer that puts no space in front of the text."""
    if part is None:
        return None
    if part["type"] == "Sequence":
        return part | {"pretokenizers": [_without_prefix(p) for p in part["pretokenizers"]]}
    if part["type"] == "ByteLevel":
        return part | {"add_prefix_space": False}
    if part["type"] == "Metaspace":
        # Old files have add_prefix_space, which must agree with the scheme where both are given.
        kept = {key: part[key] for key in ("type", "replacement", "split") if key in part}
        return kept | {"prepend_scheme": "never"}
    return part


def _build_json_encoder(data: TokenizerData, settings: Mapping[str, Any]) -> Encoder:
    """A tokenizer around the same model, with no added tokens and no post-processor."""
    library: Any = importlib.import_module("tokenizers")
    source = data.backend or library.Tokenizer.from_str(data.content.decode())
    shell = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": settings["normalizer"],
        "pre_tokenizer": settings["pre_tokenizer"],
        "model": {"type": "BPE", "vocab": {}, "merges": []},
    }
    twin = library.Tokenizer.from_str(json.dumps(shell))
    twin.model = source.model
    return lambda text: twin.encode(text, add_special_tokens=False).ids


# SentencePiece models: ModelProto { pieces = 1, trainer_spec = 2, normalizer_spec = 3 },
# SentencePiece { piece = 1, score = 2, type = 3 }.
_NORMAL, _CONTROL, _USER_DEFINED, _BYTE = 1, 3, 4, 6
_MODEL_TYPES = {1: "Unigram", 2: "BPE", 3: "word", 4: "character"}
Fields = dict[int, Any]


def _proto_data(content: bytes, eos: tuple[int, ...], special: tuple[int, ...]) -> TokenizerData:
    try:
        eos = eos or _proto_eos(content)
    except _DAMAGE as error:
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


def _read_proto(data: TokenizerData) -> TokenTable:
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
    settings = {"literals": _space_mark_literal(tokens), "marks": marks}
    return TokenTable(tokens, "sentencepiece", _describe_proto_normalizer(normalizer), settings)


def _piece(message: bytes) -> tuple[str, int]:
    """(text, type) of a piece."""
    fields = dict(_fields(message))
    return fields[1].decode(), fields.get(3, _NORMAL)


def _spell_proto(piece: str, kind: int) -> bytes | None:
    if kind == _USER_DEFINED and is_control_mark(piece):
        return None
    if kind in (_NORMAL, _USER_DEFINED):
        return piece.replace(_SPACE, " ").encode() or None
    return _spell_piece(piece) if kind == _BYTE else None


def _describe_proto_normalizer(fields: Fields) -> str | None:
    names = [fields.get(1, b"").decode()] if fields.get(2) else []
    return ", ".join(names + ["remove_extra_whitespaces"] * fields.get(4, 1)) or None


def _build_proto_encoder(data: TokenizerData, settings: Mapping[str, Any]) -> Encoder:
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
