"""outlines-core as one of the engines: a regular expression for the whole value, and its index."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from structgen.bench.engines.base import Engine, Kernel, Setup, load


class OutlinesCore(Engine):
    name = "outlines-core"
    package = "outlines_core"
    distribution = "outlines-core"

    def __init__(self, setup: Setup) -> None:
        self._outlines = load("outlines_core")
        self._schemas = load("outlines_core.json_schema")
        ids: defaultdict[bytes, list[int]] = defaultdict(list)
        for token_id, text in setup.usable().items():
            ids[text].append(token_id)
        self._vocabulary = self._outlines.Vocabulary(setup.eos, dict(ids))
        self._n_words = setup.vocabulary.n_words

    def compile(self, model: type[BaseModel]) -> _Grammar:
        regex = self._schemas.build_regex_from_schema(json.dumps(model.model_json_schema()))
        index = self._outlines.Index(regex, self._vocabulary)
        return _Grammar(self._outlines.Guide, index, self._n_words)

    @classmethod
    def kernels(cls) -> Mapping[str, Kernel]:
        on_tensors = load("outlines_core.kernels.torch").apply_token_bitmask_inplace
        on_arrays = load("outlines_core.kernels.numpy").apply_token_bitmask_inplace
        return {
            "outlines-core, torch": on_tensors,
            "outlines-core, numba": lambda logits, mask: on_arrays(logits.numpy(), mask.numpy()),
        }


class _Grammar:
    def __init__(self, guide: Any, index: Any, n_words: int) -> None:
        self._guide = guide
        self._index = index
        self._n_words = n_words

    def start(self) -> _Walker:
        return _Walker(self._guide(self._index), self._n_words)


class _Walker:
    def __init__(self, guide: Any, n_words: int) -> None:
        self._guide = guide
        self.row: NDArray[np.int32] = np.zeros(n_words, np.int32)

    def fill(self) -> None:
        self._guide.write_mask_into(self.row.ctypes.data, self.row.size, self.row.itemsize)

    def take(self, token_id: int) -> None:
        # Without the list of tokens that may follow, which nobody needs beside the mask.
        self._guide.advance(token_id, False)

    def check(self) -> None:
        """Errors are raised where they happen."""
