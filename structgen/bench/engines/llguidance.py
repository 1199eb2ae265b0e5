"""llguidance as one of the engines.

Whitespace is as structgen writes it. It compiles from scratch each time; a new sequence begins with
the lexer states that the last one met.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from structgen.bench.engines.base import Engine, Kernel, Setup, Walker, load

LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class LLGuidance(Engine):
    name = "llguidance"
    package = "llguidance"
    distribution = "llguidance"

    def __init__(self, setup: Setup) -> None:
        self._llguidance = load("llguidance")
        self._arrays = load("llguidance.numpy")
        width = setup.vocabulary.width
        self._tokenizer = self._llguidance.LLTokenizer(
            setup.tokenizer_json, n_vocab=width, eos_token=setup.eos
        )
        self._n_words = setup.vocabulary.n_words

    def compile(self, model: type[BaseModel]) -> _Grammar:
        matcher = self._llguidance.LLMatcher
        schema = json.dumps(model.model_json_schema())
        grammar = matcher.grammar_from_json_schema(schema, overrides=LAYOUT)
        return _Grammar(matcher(self._tokenizer, grammar), self._arrays, self._n_words)

    def filler(self, walkers: Sequence[Walker]) -> Callable[[], object]:
        executor = self._llguidance.LLExecutor()
        rows = np.zeros((len(walkers), self._n_words), np.int32)
        matchers = [(walker.matcher, i) for i, walker in enumerate(walkers) if _is_own(walker)]
        return lambda: self._arrays.fill_next_token_bitmask_par(executor, matchers, rows)

    @classmethod
    def kernels(cls) -> Mapping[str, Kernel]:
        return {"llguidance": load("llguidance.torch").apply_token_bitmask_inplace}


class _Grammar:
    def __init__(self, matcher: Any, arrays: Any, n_words: int) -> None:
        self._arrays = arrays
        self._n_words = n_words
        self._last = matcher
        self._used = False

    def start(self) -> _Walker:
        if self._used:
            self._last = self._last.deep_copy()
            self._last.reset()
        self._used = True
        return _Walker(self._last, self._arrays, self._n_words)


class _Walker:
    def __init__(self, matcher: Any, arrays: Any, n_words: int) -> None:
        self.matcher = matcher
        self._fill = arrays.fill_next_token_bitmask
        self._mask = np.zeros((1, n_words), np.int32)
        self.row: NDArray[np.int32] = self._mask[0]

    def fill(self) -> None:
        self._fill(self.matcher, self._mask, 0)

    def take(self, token_id: int) -> None:
        self.matcher.consume_token(token_id)

    def check(self) -> None:
        """It keeps its errors to itself."""
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())


def _is_own(walker: Walker) -> TypeGuard[_Walker]:
    return isinstance(walker, _Walker)
