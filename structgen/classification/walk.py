"""Exact log-probabilities of labels: every distinct beginning is read once.

Where there are more of them than one pass may hold, the trie is read in parts that are forgotten
one after another; only the way to where a part begins is read anew. The probability of a label is
the model's own, unmasked: of its tokens one after another, and of the answer's end behind them.
Letters of shapes: B prompts, L labels, M nodes of the trie, K nodes of a pass, W columns of the
logits.
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
from structgen.runtime.trees import MAX_PASS_TOKENS, ROOT, TreeSource

Ending: TypeAlias = Literal["end", "open"]
"""What has to follow a label. `end`: an end token. `open`: anything but a token with which a longer
label goes on."""
Following: TypeAlias = Ending | Literal["any"]
"""The same, and `any`: what follows does not count, so that a beginning's probability holds
those of all labels that go on from it."""

LOGITS_BYTES = 256 * 2**20
"""Of the logits of one pass."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk found."""

    log_probs: NDArray[np.float64]
    """[B, L]"""
    forward_passes: int


def walk(
    trees: TreeSource,
    first: Tensor,
    trie: LabelTrie,
    end_ids: tuple[int, ...],
    ending: Following,
) -> Walked:
    """The log-probability of every label behind each prompt.

    Args:
        trees: behind the prompts.
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
    most = max(pass_nodes(width, trees.max_pass_tokens) // n_rows, 1)
    parts = list(_parts(trie, wanted, most))
    n_passes = 0
    for number, nodes in enumerate(parts, 1):
        tree = trees.open(last=number == len(parts))
        numbers = {ROOT: ROOT} | {node: place for place, node in enumerate(nodes)}
        behind = [numbers[parent] for parent in trie.parents[nodes].tolist()]
        log_probs = log_softmax(tree.read(trie.token_ids[nodes].tolist(), behind))  # [B, K, W]
        n_passes += tree.forward_passes
        _spread(log_probs, nodes, trie, reached)
        stopped[:, nodes] = stop_log_probs(log_probs, nodes, trie, end_ids, ending)
    _accumulate(reached, trie)
    return Walked((reached + stopped)[:, trie.label_nodes], n_passes)


def pass_nodes(width: int, max_pass_tokens: int = MAX_PASS_TOKENS) -> int:
    """Nodes, over all rows, whose logits of `width` columns one pass may give."""
    return max(min(max_pass_tokens, LOGITS_BYTES // (width * 4)), 1)


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
    log_probs: Tensor,
    nodes: list[int],
    trie: LabelTrie,
    end_ids: tuple[int, ...],
    ending: Following,
) -> NDArray[np.float64]:
    """[B, K]: of stopping at each node, given that it was reached; log-probabilities [B, K, W]."""
    if ending == "end":
        ends = log_probs[..., list(end_ids)].logsumexp(-1)
        return ends.cpu().numpy().astype(np.float64)
    stops = np.zeros(log_probs.shape[:2])
    if ending == "any":
        return stops
    for place, node in enumerate(nodes):
        tokens = trie.token_ids[trie.children_of(node)].tolist()
        if tokens:
            on = log_probs[:, place, tokens].double().exp().sum(-1).cpu().numpy()
            with np.errstate(divide="ignore"):
                stops[:, place] = np.log1p(-np.minimum(on, 1.0))
    return stops


def _parts(trie: LabelTrie, wanted: NDArray[np.bool_], most: int) -> Iterator[list[int]]:
    """The wanted nodes in parts of `most`, each with all that stands above its nodes.

    A part is larger only where the way to its first node alone is.
    """
    if int(wanted.sum()) <= most:
        if wanted.any():
            yield np.flatnonzero(wanted).tolist()
        return
    part: list[int] = []
    way: list[int] = []
    for node in trie.depth_first():
        if not wanted[node]:
            continue
        del way[trie.depths[node] :]
        if len(part) >= most:
            yield part
            part = list(way)
        part.append(node)
        way.append(node)
    yield part


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
