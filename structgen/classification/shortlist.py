"""Narrowing large taxonomies: a retriever names the few labels that the model is asked about."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structgen.errors import MissingDependencyError, OptionError, UsageError
from structgen.taxonomy import Taxonomy

WORD = r"(?u)\b\w+\b"
_SEAMS = re.compile(r"_|(?<=[^\W\d_A-Z])(?=[A-Z])")
"""Where words of a name such as `card_arrival` or `cardArrival` meet."""

Retriever: TypeAlias = Callable[[str, int], Sequence[str]]
"""The labels that fit a text best, best first, at most so many."""

Embed: TypeAlias = Callable[[list[str]], ArrayLike]
"""Turns texts into vectors, [number of texts, size]."""


class BM25:
    """Finds labels that share rare words with a text, by Okapi BM25 of the package `bm25s`.

    Example: `BM25(taxonomy)("a leash for my dog", 5)`

    Raises:
        MissingDependencyError: the extra `retrieval` is not installed.
        OptionError: the labels hold no words.
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        try:
            bm25s: Any = importlib.import_module("bm25s")
        except ImportError as error:
            raise MissingDependencyError(
                "bm25s", "a shortlist by BM25", "pip install 'structgen-toolkit[retrieval]'"
            ) from error
        self._labels = taxonomy.labels
        self._bm25s = bm25s
        texts = [f"{entry.label} {entry.description}" for entry in taxonomy.entries()]
        self._index: Any = bm25s.BM25()
        tokens = self._tokens(texts)
        if not tokens.vocab:
            raise OptionError(f"{taxonomy!r} has no words to find labels by; use another retriever")
        self._index.index(tokens, show_progress=False)

    def _tokens(self, texts: list[str]) -> Any:
        parted = [_SEAMS.sub(" ", text) for text in texts]
        # Words of one letter count too, else labels such as "C" have none.
        return self._bm25s.tokenize(parted, stopwords="en", token_pattern=WORD, show_progress=False)

    def __call__(self, text: str, k: int) -> list[str]:
        k = min(k, len(self._labels))
        found, scores = self._index.retrieve(self._tokens([text]), k=k, show_progress=False)
        # Labels that share no word with the text are no candidates, unless none does.
        pairs = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        labels = [self._labels[row] for row, score in pairs if score > 0]
        return labels or [self._labels[row] for row in found[0].tolist()]


class Nearest:
    """Finds labels whose vectors point the same way as the text's.

    Example: `Nearest(taxonomy, encoder.encode)("a leash for my dog", 5)`

    Args:
        embed: any function from texts to vectors, such as `SentenceTransformer(...).encode`.
    """

    def __init__(self, taxonomy: Taxonomy, embed: Embed) -> None:
        self._labels = taxonomy.labels
        self._embed = embed
        texts = [f"{entry.label} {entry.description}".strip() for entry in taxonomy.entries()]
        self._vectors = self._unit_vectors(texts)

    def __call__(self, text: str, k: int) -> list[str]:
        closeness = self._vectors @ self._unit_vectors([text])[0]
        best = np.argsort(-closeness, kind="stable")[:k]
        return [self._labels[row] for row in best.tolist()]

    def _unit_vectors(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.asarray(self._embed(texts), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise OptionError(
                f"embed gave an array of shape {vectors.shape} for {len(texts)} texts; it has to "
                "give one vector for each"
            )
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def candidates(retriever: Retriever, taxonomy: Taxonomy, text: str, k: int) -> Taxonomy:
    """The labels that a retriever names, checked.

    Raises:
        OptionError: it fails, or names what is no label; that is no fault of the text.
        UsageError: it names none, which may be the fault of the text.
    """
    name = getattr(retriever, "__qualname__", None) or repr(retriever)
    did = "raised"
    try:
        named = retriever(text, k)
        did = f"returned {named!r:.80}, no list of labels:"
        if isinstance(named, str):
            raise OptionError(f"the shortlist function {name} {did} a text")
        # It may be a generator, which runs only here, and its labels may be anything.
        found = list(dict.fromkeys(named))[:k]
    except UsageError:
        raise  # it says itself what is wrong, perhaps with this text alone
    except Exception as error:
        kind = type(error).__name__
        raise OptionError(f"the shortlist function {name} {did} {kind}: {error}") from error
    if not found:
        raise UsageError(f"the shortlist function found no labels for the text {text!r:.80}")
    return taxonomy.subset(found)
