"""Every label on its own: what the walks over tries have to agree with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import torch

from structgen.runtime.lm import LanguageModel
from structgen.tokens.vocabulary import Vocabulary


def log_prob(lm: LanguageModel, prompt_ids: Sequence[int], ids: Sequence[int], end: bool) -> float:
    """The log-probability of some tokens, and of an end token behind them, one pass for each."""
    total, read = 0.0, list(prompt_ids)
    for token_id in ids:
        total += float(_next(lm, read)[token_id])
        read.append(token_id)
    if end:
        total += float(_next(lm, read)[list(lm.vocabulary.eos_token_ids)].logsumexp(-1))
    return total


def open_log_prob(
    lm: LanguageModel, prompt_ids: Sequence[int], ids: Sequence[int], others: Sequence[list[int]]
) -> float:
    """The same without an end, and without going on to a longer label."""
    longer = {one[len(ids)] for one in others if len(one) > len(ids) and one[: len(ids)] == ids}
    behind = _next(lm, [*prompt_ids, *ids]).exp()
    stay = 1.0 - float(behind[sorted(longer)].sum())
    return log_prob(lm, prompt_ids, ids, end=False) + math.log(max(stay, 1e-300))


def segmentations(vocabulary: Vocabulary, text: bytes) -> Iterator[list[int]]:
    """All ways to cut a text into tokens."""
    if not text:
        yield []
        return
    for token_id in range(vocabulary.width):
        token = vocabulary.bytes_of(token_id)
        if token and text.startswith(token):
            for rest in segmentations(vocabulary, text[len(token) :]):
                yield [token_id, *rest]


def summed(lm: LanguageModel, prompt_ids: Sequence[int], text: bytes) -> float:
    """Log of the probability of a text, however it is cut."""
    ways = segmentations(lm.vocabulary, text)
    each = [log_prob(lm, prompt_ids, ids, end=True) for ids in itertools.islice(ways, 5000)]
    return float(torch.tensor(each, dtype=torch.float64).logsumexp(0))


def _next(lm: LanguageModel, ids: Sequence[int]) -> torch.Tensor:
    _, logits = lm.prefill([list(ids)])
    return torch.log_softmax(logits[0].double(), -1)
