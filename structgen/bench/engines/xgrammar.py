"""xgrammar as one of the engines.

Whitespace is as structgen writes it. Its compiler uses all cores and remembers nothing: the cache
of 0.2.8 makes some schemas fail, and clearing it leaves parts behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from structgen.bench.engines.base import Engine, Kernel, Setup, Walker, load


class XGrammar(Engine):
    name = "xgrammar"
    package = "xgrammar"
    distribution = "xgrammar"
    strict_mode: ClassVar[bool] = True
    """Its default: what a schema does not declare is forbidden."""

    def __init__(self, setup: Setup) -> None:
        self._xgrammar = load("xgrammar")
        usable = setup.usable()
        self._width = setup.vocabulary.width
        info = self._xgrammar.TokenizerInfo(
            [usable.get(token_id, b"") for token_id in range(self._width)],
            vocab_type=self._xgrammar.VocabType.RAW,
            vocab_size=self._width,
            stop_token_ids=list(setup.vocabulary.eos_token_ids),
        )
        self._compiler = self._xgrammar.GrammarCompiler(
            info, max_threads=len(os.sched_getaffinity(0)), cache_enabled=False
        )

    def compile(self, model: type[BaseModel]) -> _Grammar:
        schema = json.dumps(model.model_json_schema())
        compiled = self._compiler.compile_json_schema(
            schema, any_whitespace=False, strict_mode=self.strict_mode
        )
        return _Grammar(partial(self._xgrammar.GrammarMatcher, compiled), self._new_mask)

    def filler(self, walkers: Sequence[Walker]) -> Callable[[], object]:
        batch = self._xgrammar.BatchGrammarMatcher()
        mask = self._xgrammar.allocate_token_bitmask(len(walkers), self._width)
        matchers = [walker.matcher for walker in walkers if isinstance(walker, _Walker)]
        return lambda: batch.batch_fill_next_token_bitmask(matchers, mask)

    def _new_mask(self) -> Any:
        return self._xgrammar.allocate_token_bitmask(1, self._width)

    @classmethod
    def kernels(cls) -> Mapping[str, Kernel]:
        apply = load("xgrammar").apply_token_bitmask_inplace
        return {
            "xgrammar": apply,
            "xgrammar, compiled by torch": partial(apply, backend="torch_compile"),
        }


class _Grammar:
    def __init__(self, new_matcher: Callable[[], Any], new_mask: Callable[[], Any]) -> None:
        self._new_matcher = new_matcher
        self._new_mask = new_mask

    def start(self) -> _Walker:
        return _Walker(self._new_matcher(), self._new_mask())


class _Walker:
    def __init__(self, matcher: Any, mask: Any) -> None:
        self.matcher = matcher
        self._mask = mask
        self.row: NDArray[np.int32] = mask.numpy()[0]

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self._mask)

    def take(self, token_id: int) -> None:
        if not self.matcher.accept_token(token_id):
            raise ValueError(f"token {token_id} was not accepted")

    def check(self) -> None:
        """Errors are raised where they happen."""
