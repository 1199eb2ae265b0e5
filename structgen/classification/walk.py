"""Exact log-probabilities of labels: every distinct beginning is read once.

The probability of a label is the model's own, unmasked: of its tokens one after another, and of the
answer's end behind them. Letters of shapes: B prompts, L labels, M nodes of the trie, K nodes of a
pass, W columns of the logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structgen.classification.label_trie import LabelTrie
from structgen.errors import ModelError
from structgen.runtime.trees import ROOT, TokenTree

Ending: TypeAlias = Literal["end", "open"]
"""What has to follow a label. `end`: an end token. `open`: anything but a token with which a longer
label goes on."""

LOGITS_BYTES = 256 * 2**20
"""Of the logits of one pass."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk found."""

    log_probs: NDArray[np.float64]
    """[B, L]"""
    forward_passes: int


def walk(
    tree: TokenTree, first: Tensor, trie: LabelTrie, end_ids: tuple[int, ...], ending: Ending
) -> Walked:
    """The log-probability of every label behind each prompt.

    Args:
        tree: behind the prompts, fresh.
        first: logits [B, W] that follow the prompts.
        end_ids: tokens that end the answer.
    """
    n_rows, width = first.shape
    reached = np.full((n_rows, len(trie)), -np.inf)  # [B, M]: of each beginning
    stopped = np.zeros((n_rows, len(trie)))  # [B, M]: of stopping there, given the beginning
    _spread(log_softmax(first[:, None]), [ROOT], trie, reached)
    is_label = np.zeros(len(trie), np.bool_)
    is_label[trie.label_nodes] = True
    wanted = trie.is_inner | (is_label if ending == "end" else False)
    n_passes, numbers = 0, np.full(len(trie), ROOT)
    for nodes in _passes(np.flatnonzero(wanted), n_rows * width * 4):
        numbers[nodes] = tree.n_nodes + np.arange(len(nodes))
        parents = trie.parents[nodes]
        behind = np.where(parents == ROOT, ROOT, numbers[parents])
        logits = tree.read(trie.token_ids[nodes].tolist(), behind.tolist())
        n_passes += 1
        log_probs = log_softmax(logits)  # [B, K, W]
        _spread(log_probs, nodes.tolist(), trie, reached)
        stopped[:, nodes] = stop_log_probs(log_probs, nodes.tolist(), trie, end_ids, ending)
    _accumulate(reached, trie)
    return Walked((reached + stopped)[:, trie.label_nodes], n_passes)


def log_softmax(logits: Tensor) -> Tensor:
    """Float32 log-probabilities of the same shape.

    Raises:
        ModelError: the model gave no finite logits.
    """
    found = torch.log_softmax(logits.float(), dim=-1)
    if bool(torch.isnan(found[..., 0]).any()):
        raise ModelError("the model gave logits that are not finite; is its dtype wide enough?")
    return found


def stop_log_probs(
    log_probs: Tensor, nodes: list[int], trie: LabelTrie, end_ids: tuple[int, ...], ending: Ending
) -> NDArray[np.float64]:
    """[B, K]: of stopping at each node, given that it was reached; log-probabilities [B, K, W]."""
    if ending == "end":
        ends = log_probs[..., list(end_ids)].logsumexp(-1)
        return ends.cpu().numpy().astype(np.float64)
    stops = np.zeros(log_probs.shape[:2])
    for place, node in enumerate(nodes):
        tokens = trie.token_ids[trie.children_of(node)].tolist()
        if tokens:
            on = log_probs[:, place, tokens].double().exp().sum(-1).cpu().numpy()
            with np.errstate(divide="ignore"):
                stops[:, place] = np.log1p(-np.minimum(on, 1.0))
    return stops


def _passes(nodes: NDArray[np.intp], bytes_each: int) -> Iterator[NDArray[np.intp]]:
    """The nodes in as few parts as memory allows; ancestors come first anyway."""
    most = max(LOGITS_BYTES // bytes_each, 1)
    for start in range(0, len(nodes), most):
        yield nodes[start : start + most]


def _spread(
    log_probs: Tensor, nodes: list[int], trie: LabelTrie, reached: NDArray[np.float64]
) -> None:
    """Write to `reached` [B, M] the log-probability of each child, given its parent."""
    groups = [trie.children_of(node) for node in nodes]
    places = np.repeat(np.arange(len(nodes)), [len(group) for group in groups])
    children = [child for group in groups for child in group]
    if children:
        found = log_probs[:, places, trie.token_ids[children].astype(np.int64)]
        reached[:, children] = found.cpu().numpy()


def _accumulate(reached: NDArray[np.float64], trie: LabelTrie) -> None:
    """Turn conditional log-probabilities [B, M] into those of whole beginnings, in place."""
    for depth in range(1, int(trie.depths.max(initial=0)) + 1):
        nodes = np.flatnonzero(trie.depths == depth)
        reached[:, nodes] += reached[:, trie.parents[nodes]]
