"""What the decoding loop asks of a language model.

Letters of shapes: B rows of a batch, W columns of the logits (`vocabulary.width`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import torch

from structgen.tokens.vocabulary import Vocabulary

Cache: TypeAlias = Any
"""What a model remembers of a batch: made by `prefill`, and opaque to everyone but that model."""

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A text, or chat messages such as `{"role": "user", "content": "Hello"}`."""


class LanguageModel(Protocol):
    """A causal language model with a cache, for batches of rows that differ in length.

    Example: `cache, logits = lm.prefill([[1, 2], [3]]); logits = lm.extend(cache, [[4], [5, 6]])`
    """

    @property
    def name(self) -> str:
        """What a person calls the model."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The bytes of each token; its width is the width of the logits."""
        ...

    @property
    def context_length(self) -> int | None:
        """Tokens that fit into one row, or None if the model sets no limit."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the logits are."""
        ...

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, never empty.

        With a chat template a text is one user message, and the ids end where the answer begins;
        without one the text is encoded as the tokenizer does by default.
        """
        ...

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[Cache, torch.Tensor]:
        """Read one prompt per row.

        Returns:
            A new cache, and float logits [B, W] that follow each row's last token.
        """
        ...

    def extend(self, cache: Cache, chunks: Sequence[Sequence[int]]) -> torch.Tensor:
        """Append at least one token to each row, in one forward pass; the cache grows in place.

        Returns:
            Float logits [B, W] that follow each row's last token; the caller may change them.
        """
        ...

    def extend_last(
        self, cache: Cache, chunks: Sequence[Sequence[int]], n_last: int
    ) -> torch.Tensor:
        """The same with more of the logits; every chunk has at least `n_last` tokens.

        Returns:
            Float logits [B, n_last, W] that follow each of the row's last tokens.
        """
        ...

    def fork(self, cache: Cache) -> Cache:
        """A copy that grows on its own; the old one stays in use."""
        ...

    def select(self, cache: Cache, rows: Sequence[int]) -> Cache:
        """The cache of the rows with these indices, in this order; the old one is used up.

        An index may occur more than once.
        """
        ...

    def can_join(self, cache: Cache) -> bool:
        """Whether other rows can be added to this cache; if not, they wait for the next batch."""
        ...

    def join(self, first: Cache, second: Cache) -> Cache:
        """The cache of the rows of both, in this order; both are used up."""
        ...
