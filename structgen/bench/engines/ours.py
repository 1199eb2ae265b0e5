"""structgen as one of the engines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from structgen.bench.engines.base import Engine, Kernel, Setup, Walker
from structgen.compiler import CompiledSchema, forget_schemas
from structgen.compiler import compile as compile_schema
from structgen.tokens.session import Session, fill_masks


class Structgen(Engine):
    name = "structgen"
    package = "structgen"
    distribution = "structgen-toolkit"
    needs_json_schema = False

    def __init__(self, setup: Setup) -> None:
        self._vocabulary = setup.vocabulary

    def compile(self, model: type[BaseModel]) -> _Grammar:
        return _Grammar(compile_schema(model, self._vocabulary))

    def forget(self, *, everything: bool) -> None:
        forget_schemas()
        if everything:
            forget_contents()

    def filler(self, walkers: Sequence[Walker]) -> Callable[[], object]:
        sessions = [walker.session for walker in walkers if isinstance(walker, _Walker)]
        rows = np.zeros((len(sessions), self._vocabulary.n_words), np.int32)
        return lambda: fill_masks(sessions, rows)

    @classmethod
    def kernels(cls) -> Mapping[str, Kernel]:
        from structgen.runtime.masking import apply_masks

        return {"structgen": apply_masks}


class _Grammar:
    def __init__(self, compiled: CompiledSchema[Any]) -> None:
        self._compiled = compiled

    def start(self) -> _Walker:
        return _Walker(self._compiled.session(), self._compiled.vocabulary.n_words)


class _Walker:
    def __init__(self, session: Session, n_words: int) -> None:
        self.session = session
        self.row: NDArray[np.int32] = np.zeros(n_words, np.int32)

    def fill(self) -> None:
        self.session.fill_mask(self.row)

    def take(self, token_id: int) -> None:
        self.session.advance(token_id)

    def check(self) -> None:
        """Errors are raised where they happen."""


def forget_contents() -> None:
    """Forget all that depends on the content of some schema, in every module.

    That is what is kept in caches with a bound. What has none belongs to the library, and what
    `structgen.tokens` keeps belongs to vocabularies.
    """
    for name, module in list(sys.modules.items()):
        if not name.startswith("structgen.") or name.startswith("structgen.tokens."):
            continue
        for value in list(vars(module).values()):
            forget: Any = getattr(value, "cache_clear", None)
            parameters: Any = getattr(value, "cache_parameters", None)
            endless = parameters is not None and parameters()["maxsize"] is None
            if forget is not None and not isinstance(value, type) and not endless:
                forget()
