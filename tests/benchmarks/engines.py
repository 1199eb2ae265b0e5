"""Every engine as the benchmarks drive it: compile a model, then fill masks and take tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from pydantic import BaseModel

import structgen as sg
from structgen.compiler import forget_schemas
from structgen.tokens.vocabulary import Vocabulary


class Walker(Protocol):
    """One sequence."""

    def fill(self) -> None: ...
    def take(self, token_id: int) -> None: ...
    def allows(self, token_id: int) -> bool: ...


class Engine(Protocol):
    """One engine with its vocabulary set up."""

    name: str

    def start(self, model: type[BaseModel]) -> Walker: ...
    def forget(self) -> None: ...


class StructgenWalker:
    def __init__(self, session: sg.Session, row: Any) -> None:
        self._session = session
        self._row = row

    def fill(self) -> None:
        self._session.fill_mask(self._row)

    def take(self, token_id: int) -> None:
        self._session.advance(token_id)

    def allows(self, token_id: int) -> bool:
        return bool(int(self._row[token_id >> 5]) >> (token_id & 31) & 1)


class Structgen:
    name = "structgen"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._row = np.zeros(vocabulary.n_words, np.int32)

    def start(self, model: type[BaseModel]) -> StructgenWalker:
        return StructgenWalker(sg.compile(model, self.vocabulary).session(), self._row)

    def forget(self) -> None:
        forget_schemas()


class LLGuidanceWalker:
    def __init__(self, matcher: Any, mask: Any, fill: Any) -> None:
        self._matcher = matcher
        self._mask = mask
        self._fill = fill

    def fill(self) -> None:
        self._fill(self._matcher, self._mask, 0)

    def take(self, token_id: int) -> None:
        self._matcher.consume_token(token_id)

    def allows(self, token_id: int) -> bool:
        assert not self._matcher.is_error(), self._matcher.get_error()
        return bool(int(self._mask[0, token_id >> 5]) >> (token_id & 31) & 1)


class LLGuidance:
    name = "llguidance"

    def __init__(self, tokenizer_json: Path, width: int, eos: int) -> None:
        import llguidance
        import llguidance.numpy as bitmasks

        text = tokenizer_json.read_text()
        self._matcher = llguidance.LLMatcher
        self._fill = bitmasks.fill_next_token_bitmask
        self._tokenizer = llguidance.LLTokenizer(text, n_vocab=width, eos_token=eos)
        self._mask = bitmasks.allocate_token_bitmask(1, width)

    def start(self, model: type[BaseModel]) -> LLGuidanceWalker:
        grammar = self._matcher.grammar_from_json_schema(
            json.dumps(model.model_json_schema()),
            overrides={
                "whitespace_flexible": False,
                "item_separator": ", ",
                "key_separator": ": ",
            },
        )
        return LLGuidanceWalker(self._matcher(self._tokenizer, grammar), self._mask, self._fill)

    def forget(self) -> None:
        """It keeps no compiled schemas."""
