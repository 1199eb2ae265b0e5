"""From a tokenizer's data to the bytes of its ids, and to an encoder."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from structgen.errors import InvalidTextError, VocabularyError
from structgen.tokens.tokenizers.data import DAMAGE, Encoder, TokenizerData, TokenTable
from structgen.tokens.tokenizers.json_files import build_json_encoder, read_json
from structgen.tokens.tokenizers.sentencepiece import build_proto_encoder, read_proto


def read_tokens(data: TokenizerData) -> TokenTable:
    """The bytes of every token id, or a `VocabularyError` that says what is not understood."""
    try:
        return read_json(data) if data.kind == "json" else read_proto(data)
    except DAMAGE as error:
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
    build = build_json_encoder if data.kind == "json" else build_proto_encoder
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


def _check_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(f"a lone surrogate cannot be written as UTF-8: {error}") from error
