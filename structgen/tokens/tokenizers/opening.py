"""From a path or a tokenizer object to its own data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from structgen.errors import VocabularyError
from structgen.tokens.tokenizers.data import Json, TokenizerData, as_ids
from structgen.tokens.tokenizers.json_files import json_data, parse
from structgen.tokens.tokenizers.sentencepiece import proto_data


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
        return json_data(backend.to_str().encode(), eos, special, backend)
    processor: Any = getattr(tokenizer, "sp_model", tokenizer)
    if hasattr(processor, "serialized_model_proto"):
        return proto_data(processor.serialized_model_proto(), eos, special)
    raise VocabularyError(
        f"a {type(tokenizer).__module__}.{type(tokenizer).__qualname__} does not give access to "
        "its data; pass a fast transformers tokenizer, a tokenizers.Tokenizer, or the path of a "
        "tokenizer.json or of a SentencePiece model"
    )


def _open_path(path: Path) -> TokenizerData:
    if path.is_dir():
        names = ("tokenizer.json", "tokenizer.model")
        path = next((path / name for name in names if (path / name).exists()), path / names[0])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise VocabularyError(f"cannot read a tokenizer from {path}: {error}") from error
    if content.lstrip()[:1] != b"{":
        return proto_data(content, (), ())
    return json_data(content, _eos_beside(path, content), ())


def _eos_beside(path: Path, content: bytes) -> tuple[int, ...]:
    """End tokens that `generation_config.json` and `tokenizer_config.json` beside `path` name."""
    numbered = _parse_file(path.with_name("generation_config.json")).get("eos_token_id")
    name = _parse_file(path.with_name("tokenizer_config.json")).get("eos_token")
    name = name["content"] if isinstance(name, dict) else name
    added: list[Json] = (parse(content).get("added_tokens") or []) if name else []
    named = [token["id"] for token in added if token["content"] == name]
    return as_ids([*as_ids(numbered), *named])


def _parse_file(path: Path) -> Json:
    return parse(path.read_bytes()) if path.exists() else {}
