"""From questions to the log-probability of each label, behind one model.

Letters of shapes: B questions, L labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from structgen.classification.label_trie import LabelTrie, written_behind
from structgen.classification.prompting import Choices
from structgen.classification.reading import PromptReader, check_room
from structgen.classification.search import Found, best_labels
from structgen.classification.segmentations import sum_segmentations
from structgen.classification.walk import Following, pass_nodes, walk
from structgen.compiler import compile as compile_schema
from structgen.prompts import Prompt
from structgen.runtime.lm import LanguageModel
from structgen.runtime.trees import MAX_PASS_TOKENS, TreeSource
from structgen.schema.roots import OneOf
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary

Tokenization: TypeAlias = Literal["canonical", "any"]
"""`canonical`: each label as the tokenizer writes it. `any`: all ways to cut it into tokens."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What is known of the labels behind one question."""

    log_probs: NDArray[np.float64]
    """[L], unmasked; -inf for labels that were not found."""
    lengths: NDArray[np.int64]
    """[L], tokens of each label; 1 where labels are not written in one way only."""
    forward_passes: int
    n_sharing: int = 1
    """Questions that were asked in the same passes, this one included."""
    exact: bool = True
    """Every label was looked at."""
    log_open: float = -math.inf
    """Log of the probability that was not looked behind."""
    proven: bool = True


@dataclass(frozen=True, slots=True)
class Budget:
    """How far labels are looked for, where not all are read."""

    k: int
    max_passes: int
    max_open_mass: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the model will read it."""

    choices: Choices
    prompt_ids: list[int]
    """Without the tokens that are written anew together with the label."""
    trie: LabelTrie | None
    """Of the canonical spellings."""
    session: Session
    """Over the labels as plain texts, fresh."""


class Scorer:
    """Asks one model for the log-probabilities of labels; shared between threads."""

    def __init__(
        self,
        lm: LanguageModel,
        tokenization: Tokenization,
        ending: Following,
        max_pass_tokens: int = MAX_PASS_TOKENS,
    ) -> None:
        self._lm = lm
        self._tokenization: Tokenization = tokenization
        self._ending: Following = ending
        self._max_pass_tokens = max_pass_tokens
        self._max_nodes = pass_nodes(lm.vocabulary.width, max_pass_tokens)
        self._reader = PromptReader(lm)

    def ask(self, prompt: Prompt, choices: Choices) -> Asked:
        """A question, ready to be answered; the model is not called yet.

        Raises:
            PromptTooLongError: prompt and labels do not fit into the model's context.
            VocabularyError: the tokenizer cannot write the labels.
        """
        ids = self._lm.encode_prompt(prompt)
        session = _compiled(choices.written, self._lm.vocabulary).session(prompt_ids=ids)
        held = session.held_back
        kept = ids[: len(ids) - len(held)]
        vocabulary = self._lm.vocabulary
        trie = None
        if self._tokenization == "canonical":
            before = vocabulary.bytes_of(kept[-1]) or b""
            trie = written_behind(vocabulary, before, vocabulary.decode(held), choices.written)
        needed = trie.depths.max() + 1 if trie else max(map(len, choices.written))
        check_room(self._lm, kept, int(needed))
        return Asked(choices, kept, trie, session)

    def full(self, asked: Sequence[Asked]) -> list[Scored]:
        """All labels of each question, canonically written; questions that are alike together."""
        found: list[Scored | None] = [None] * len(asked)
        for trie in {id(one.trie): one.trie for one in asked}.values():
            assert trie is not None, "only canonical labels are all read"
            rows = [row for row, one in enumerate(asked) if one.trie is trie]
            for part in self._parts(rows, asked, len(trie)):
                scores = self._walk([asked[row].prompt_ids for row in part], trie)
                for row, scored in zip(part, scores, strict=True):
                    found[row] = scored
        return [scored for scored in found if scored is not None]

    def _parts(
        self, rows: Sequence[int], asked: Sequence[Asked], n_nodes: int
    ) -> Iterator[list[int]]:
        """The rows that are read together: their prompts and labels fit into one pass."""
        most = max(self._max_nodes // n_nodes, 1)
        part: list[int] = []
        longest = 0
        for row in rows:
            longest = max(longest, len(asked[row].prompt_ids))
            full = len(part) == most or (len(part) + 1) * longest > self._max_pass_tokens
            if part and full:
                yield part
                part, longest = [], len(asked[row].prompt_ids)
            part.append(row)
        yield part

    def _walk(self, prompts: list[list[int]], trie: LabelTrie) -> list[Scored]:
        trees, logits, n_passes = self._read(prompts)
        walked = walk(trees, logits, trie, self._lm.vocabulary.eos_token_ids, self._ending)
        n_passes += walked.forward_passes
        lengths = trie.depths[trie.label_nodes].astype(np.int64) + 1
        return [Scored(row, lengths, n_passes, len(prompts)) for row in walked.log_probs]

    def _read(self, prompts: list[list[int]]) -> tuple[TreeSource, Tensor, int]:
        """(what opens trees behind the prompts, logits [B, W] behind them, forward passes)."""
        cache, logits, n_passes = self._reader.read(prompts)
        lengths = list(map(len, prompts))
        return TreeSource(self._lm, cache, lengths, self._max_pass_tokens), logits, n_passes

    def best(self, asked: Asked, budget: Budget) -> Scored:
        """The most probable labels of one question."""
        assert self._ending != "any", "a search stops at ends"
        choices = asked.choices
        trees, logits, n_passes = self._read([asked.prompt_ids])
        tree = trees.open()
        if asked.trie is None:
            labels = {text: index for index, text in enumerate(choices.written)}
            found = sum_segmentations(
                tree, logits, asked.session, self._lm.vocabulary, labels,
                k=budget.k, max_passes=budget.max_passes, max_open_mass=budget.max_open_mass,
                max_nodes=self._max_nodes,
            )  # fmt: skip
            lengths = np.ones(len(labels), np.int64)
        else:
            found = best_labels(
                tree, logits, asked.trie, self._lm.vocabulary.eos_token_ids, self._ending,
                k=budget.k, max_passes=budget.max_passes, max_open_mass=budget.max_open_mass,
                max_nodes=self._max_nodes,
            )  # fmt: skip
            lengths = asked.trie.depths[asked.trie.label_nodes].astype(np.int64) + 1
        return _scored(found, len(choices.written), lengths, n_passes, budget.k)


def _scored(
    found: Found, n_labels: int, lengths: NDArray[np.int64], n_passes: int, k: int
) -> Scored:
    log_probs = np.full(n_labels, -np.inf)
    for label, log_prob in found.log_probs.items():
        log_probs[label] = log_prob
    return Scored(
        log_probs,
        lengths,
        n_passes + found.forward_passes,
        exact=found.exhausted,
        log_open=found.log_open,
        proven=found.proven(k),
    )


class _Compiled:
    """What makes sessions over labels as plain texts."""

    def __init__(self, written: tuple[str, ...], vocabulary: Vocabulary) -> None:
        self._compiled = compile_schema(OneOf(written), vocabulary)

    def session(self, prompt_ids: Sequence[int]) -> Session:
        return self._compiled.session(prompt_ids=prompt_ids)


@lru_cache(maxsize=16)
def _compiled(written: tuple[str, ...], vocabulary: Vocabulary) -> _Compiled:
    return _Compiled(written, vocabulary)


def normalised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities [L] that are in proportion to exp(scores) and sum to 1."""
    highest = float(scores.max())
    if highest == -math.inf:
        return np.full(len(scores), 1 / len(scores))
    weights = np.exp(scores - highest)
    return weights / weights.sum()
