"""From questions to the log-probability of each label, behind one model.

Letters of shapes: B questions, L labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.classification.label_trie import LabelTrie, written_behind
from structgen.classification.prompting import Choices
from structgen.classification.reading import PromptReader, check_room
from structgen.classification.search import Found, best_labels
from structgen.classification.segmentations import sum_segmentations
from structgen.classification.walk import LOGITS_BYTES, Ending, walk
from structgen.compiler import compile as compile_schema
from structgen.prompts import Prompt
from structgen.runtime.lm import LanguageModel
from structgen.runtime.trees import open_tree
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
class _Asked:
    """A question as the model will read it."""

    prompt_ids: list[int]
    """Without the tokens that are written anew together with the label."""
    trie: LabelTrie | None
    """Of the canonical spellings."""
    session: Session
    """Over the labels as plain texts, fresh."""


class Scorer:
    """Asks one model for the log-probabilities of labels; shared between threads."""

    def __init__(self, lm: LanguageModel, tokenization: Tokenization, ending: Ending) -> None:
        self._lm = lm
        self._tokenization: Tokenization = tokenization
        self._ending: Ending = ending
        self._reader = PromptReader(lm)

    def full(self, prompts: Sequence[Prompt], choices: Choices) -> list[Scored]:
        """All labels of each question, canonically written; questions that are alike together."""
        asked = [self._ask(prompt, choices) for prompt in prompts]
        found: list[Scored | None] = [None] * len(asked)
        for trie in {id(one.trie): one.trie for one in asked}.values():
            assert trie is not None
            rows = [row for row, one in enumerate(asked) if one.trie is trie]
            width = self._lm.vocabulary.width * 4
            most = max(LOGITS_BYTES // (width * len(trie)), 1)
            for start in range(0, len(rows), most):
                part = rows[start : start + most]
                scores = self._walk([asked[row].prompt_ids for row in part], trie)
                for row, scored in zip(part, scores, strict=True):
                    found[row] = scored
        return [scored for scored in found if scored is not None]

    def _walk(self, prompts: list[list[int]], trie: LabelTrie) -> list[Scored]:
        cache, logits, n_passes = self._reader.read(prompts)
        tree = open_tree(self._lm, cache, len(prompts))
        end_ids = self._lm.vocabulary.eos_token_ids
        walked = walk(tree, logits, trie, end_ids, self._ending)
        n_passes += walked.forward_passes
        lengths = trie.depths[trie.label_nodes].astype(np.int64) + 1
        return [Scored(row, lengths, n_passes) for row in walked.log_probs]

    def best(self, prompt: Prompt, choices: Choices, budget: Budget) -> Scored:
        """The most probable labels of one question."""
        asked = self._ask(prompt, choices)
        cache, logits, n_passes = self._reader.read([asked.prompt_ids])
        tree = open_tree(self._lm, cache, 1)
        if asked.trie is None:
            labels = {text: index for index, text in enumerate(choices.written)}
            found = sum_segmentations(
                tree, logits, asked.session, self._lm.vocabulary, labels,
                k=budget.k, max_passes=budget.max_passes, max_open_mass=budget.max_open_mass,
            )  # fmt: skip
            lengths = np.ones(len(labels), np.int64)
        else:
            found = best_labels(
                tree, logits, asked.trie, self._lm.vocabulary.eos_token_ids, self._ending,
                k=budget.k, max_passes=budget.max_passes, max_open_mass=budget.max_open_mass,
            )  # fmt: skip
            lengths = asked.trie.depths[asked.trie.label_nodes].astype(np.int64) + 1
        return _scored(found, len(choices.written), lengths, n_passes, budget.k)

    def _ask(self, prompt: Prompt, choices: Choices) -> _Asked:
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
        return _Asked(kept, trie, session)


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
