"""The format of `tokenizer.json`, which the package tokenizers writes."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from structgen.errors import VocabularyError
from structgen.tokens.tokenizers.data import (
    SUPPORTED,
    Encoder,
    Family,
    Json,
    TokenizerData,
    TokenTable,
)
from structgen.tokens.tokenizers.spelling import (
    SPACE,
    space_mark_literal,
    spell_added,
    spell_byte_level,
    spell_piece,
)


def json_data(
    content: bytes, eos: tuple[int, ...], special: tuple[int, ...], backend: Any = None
) -> TokenizerData:
    # Padding and truncation come before the added tokens, and transformers changes them from call
    # to call. Inside a JSON string the quotes of this key would be escaped.
    start = max(content.find(b'"added_tokens":'), 0)
    digest = hashlib.sha256(memoryview(content)[start:]).hexdigest()
    return TokenizerData("json", content, digest, eos, special, backend)


def parse(content: bytes) -> Json:
    try:
        return json.loads(content)
    except ValueError as error:
        raise VocabularyError(f"the tokenizer's JSON cannot be parsed: {error}") from error


def read_json(data: TokenizerData) -> TokenTable:
    parts = parse(data.content)
    family = _json_family(parts)
    pieces = _json_pieces(parts["model"])
    added: list[Json] = parts.get("added_tokens") or []
    size = 1 + max([*pieces.values(), *(token["id"] for token in added)], default=-1)
    tokens: list[bytes | None] = [None] * size
    spell = spell_byte_level if family == "byte-level" else spell_piece
    for piece, token_id in pieces.items():
        tokens[token_id] = spell(piece)
    for token in added:
        tokens[token["id"]] = spell_added(token, family)
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
        return step["replacement"] == SPACE
    swapped = {step.get("pattern", {}).get("String"), step.get("content")}
    return step["type"] == "Replace" and swapped == {" ", SPACE}


def _json_pieces(model: Json) -> dict[str, int]:
    """Piece -> id; a Unigram model lists [piece, score] in the order of the ids."""
    vocab: dict[str, int] | list[tuple[str, float]] = model["vocab"]
    if isinstance(vocab, dict):
        return vocab
    return {piece: token_id for token_id, (piece, _) in enumerate(vocab)}


def _unknown_ids(model: Json, pieces: Mapping[str, int]) -> list[int]:
    named = pieces.get(model.get("unk_token") or "")
    return [token_id for token_id in (named, model.get("unk_id")) if token_id is not None]


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
    literals = {text: ids for text, ids in literals.items() if SPACE not in text}
    return literals | space_mark_literal(tokens)


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


def build_json_encoder(data: TokenizerData, settings: Mapping[str, Any]) -> Encoder:
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
