"""lm-format-enforcer as one of the engines.

Its integration with transformers does not import under transformers 5, so the tokens are handed
over as that integration would. It remembers masks by the parser's state, and by all tokens so far:
a new sequence gets a prompt of its own, as in real use.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from structgen.bench.engines.base import Engine, Setup, load


class LMFormatEnforcer(Engine):
    name = "lm-format-enforcer"
    package = "lmformatenforcer"
    distribution = "lm-format-enforcer"

    def __init__(self, setup: Setup) -> None:
        self._lmfe = load("lmformatenforcer")
        vocabulary = setup.vocabulary

        def decode(token_ids: list[int]) -> str:
            text = b"".join(vocabulary.bytes_of(i) or b"" for i in token_ids if i >= 0)
            return text.decode("utf-8", "replace").rstrip("\ufffd")

        usable = setup.usable().items()
        regular = [(token_id, text.decode("utf-8", "replace"), False) for token_id, text in usable]
        self._data = self._lmfe.TokenEnforcerTokenizerData(
            regular, decode, setup.eos, True, vocabulary.width
        )

    def compile(self, model: type[BaseModel]) -> _Grammar:
        parser = self._lmfe.JsonSchemaParser(model.model_json_schema())
        return _Grammar(self._lmfe.TokenEnforcer(self._data, parser))


class _Grammar:
    def __init__(self, enforcer: Any) -> None:
        self._enforcer = enforcer
        self._prompts: Iterator[int] = count(-1, -1)

    def start(self) -> _Walker:
        return _Walker(self._enforcer, next(self._prompts))


class _Walker:
    def __init__(self, enforcer: Any, prompt: int) -> None:
        self._enforcer = enforcer
        self._tokens = [prompt]
        self.row: NDArray[np.int32] = np.zeros(0, np.int32)

    def fill(self) -> None:
        self.row = self._enforcer.get_allowed_tokens(self._tokens).allowed_tokens.numpy()

    def take(self, token_id: int) -> None:
        self._tokens.append(token_id)

    def check(self) -> None:
        """It logs its faults, and then allows the end token alone."""
