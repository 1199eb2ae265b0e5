"""An engine as the benchmarks drive it: compile a model, then fill masks and take tokens.

Letters of shapes: W columns of the logits, N = ceil(W / 32) words of a mask, B rows.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from structgen.tokens.vocabulary import Vocabulary

Kernel: TypeAlias = Callable[[Any, Any], object]
"""Sets the logits, float32 [B, W], to -inf where a packed mask, int32 [B, N], has a 0, in place;
both are torch tensors."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One vocabulary, as each engine wants it."""

    vocabulary: Vocabulary
    tokenizer_json: str
    """The text of the `tokenizer.json` that the vocabulary was read from."""

    @property
    def eos(self) -> int:
        """The first end token."""
        return self.vocabulary.eos_token_ids[0]

    def usable(self) -> dict[int, bytes]:
        """The bytes of every token that can be part of a text."""
        found = ((i, self.vocabulary.bytes_of(i)) for i in range(self.vocabulary.width))
        return {token_id: text for token_id, text in found if text}


class Walker(Protocol):
    """One sequence."""

    row: NDArray[np.int32]
    """int32 [N]: the mask that `fill` writes."""

    def fill(self) -> None:
        """Write the mask of the next token to `row`."""
        ...

    def take(self, token_id: int) -> None:
        """Go on with a token."""
        ...

    def check(self) -> None:
        """Raise what the engine did not raise itself."""
        ...


class Grammar(Protocol):
    """A compiled model."""

    def start(self) -> Walker:
        """A new sequence, which may use what earlier ones found out."""
        ...


class Engine(ABC):
    """An engine with its vocabulary set up, on defaults unless its file says otherwise."""

    name: ClassVar[str]
    package: ClassVar[str]
    """What is imported."""
    distribution: ClassVar[str]
    """What is installed, and has a version."""
    needs_json_schema: ClassVar[bool] = True
    """`compile` asks Pydantic for the JSON Schema of a model."""

    @abstractmethod
    def __init__(self, setup: Setup) -> None: ...

    @abstractmethod
    def compile(self, model: type[BaseModel]) -> Grammar:
        """Compile a model from its class; an error of any kind means that it is refused."""

    def forget(self, *, everything: bool) -> None:  # noqa: B027  # not all remember
        """Forget compiled models; with `everything` also all else that came from their content.

        Most engines remember nothing between two calls of `compile`.
        """

    def filler(self, walkers: Sequence[Walker]) -> Callable[[], object]:
        """What fills the masks of all walkers at once; by default one after the other."""
        return lambda: [walker.fill() for walker in walkers]

    @classmethod
    def kernels(cls) -> Mapping[str, Kernel]:
        """Its ways to apply packed masks on a CPU, by name."""
        return {}


def allows(row: NDArray[np.int32], token_id: int) -> bool:
    """Whether a mask has a bit."""
    return bool(int(row[token_id >> 5]) >> (token_id & 31) & 1)


def load(module: str) -> Any:
    """A module of a peer, of whose types nothing is known."""
    return importlib.import_module(module)
