"""The labels as token ids behind a prompt, and the trie of their distinct beginnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from structgen.errors import VocabularyError
from structgen.runtime.trees import ROOT
from structgen.tokens.vocabulary import Vocabulary

SHOWN = 5
"""Labels that an error names."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelTrie:
    """Distinct beginnings of L labels; every node stands behind its parent. M nodes.

    Example: of the labels `[[5, 6], [5, 7]]` the nodes' tokens are `[5, 6, 7]`
    """

    token_ids: NDArray[np.int32]
    """[M], the last token of each beginning."""
    parents: NDArray[np.int32]
    """[M], `ROOT` for the end of the prompt."""
    depths: NDArray[np.int32]
    """[M], tokens before the last one."""
    label_nodes: NDArray[np.int32]
    """[L], the node at which each label is complete."""
    first_child: NDArray[np.int32]
    """[M + 2], where a node's children begin in `children`; the last but one is the root's."""
    children: NDArray[np.int32]
    """[M], nodes by parent."""

    def __len__(self) -> int:
        return len(self.token_ids)

    def children_of(self, node: int) -> list[int]:
        """The nodes one token further; of `ROOT`, the labels' first tokens."""
        at = len(self) if node == ROOT else node
        return self.children[self.first_child[at] : self.first_child[at + 1]].tolist()

    def depth_first(self) -> Iterator[int]:
        """All nodes, those with the same beginning one after another."""
        pending = self.children_of(ROOT)[::-1]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(self.children_of(node)[::-1])

    @property
    def is_inner(self) -> NDArray[np.bool_]:
        """[M], whether a label goes on behind the node."""
        return np.diff(self.first_child[:-1]) > 0


def label_trie(labels_ids: Sequence[Sequence[int]]) -> LabelTrie:
    """The trie of token sequences, which are not empty and all different."""
    nodes: dict[tuple[int, int], int] = {}
    depths: list[int] = []
    ends: list[int] = []
    for ids in labels_ids:
        at = ROOT
        for depth, token_id in enumerate(ids):
            key = (at, token_id)
            at = nodes.setdefault(key, len(nodes))
            if at == len(depths):
                depths.append(depth)
        ends.append(at)
    pairs = np.array(list(nodes), np.int32).reshape(-1, 2)
    parents = pairs[:, 0]
    owners = np.where(parents == ROOT, len(nodes), parents)
    first = np.zeros(len(nodes) + 2, np.int32)
    np.cumsum(np.bincount(owners, minlength=len(nodes) + 1), out=first[1:])
    return LabelTrie(
        token_ids=np.ascontiguousarray(pairs[:, 1]),
        parents=np.ascontiguousarray(parents),
        depths=np.array(depths, np.int32),
        label_nodes=np.array(ends, np.int32),
        first_child=first,
        children=np.argsort(owners, kind="stable").astype(np.int32),
    )


@lru_cache(maxsize=16)
def written_behind(
    vocabulary: Vocabulary, before: bytes, held: bytes, labels: tuple[str, ...]
) -> LabelTrie:
    """The labels as the tokenizer writes them behind a prompt.

    Args:
        before: bytes of the prompt's last token, which is not changed.
        held: the prompt's very end, whose tokens are written anew together with the label.

    Raises:
        VocabularyError: labels that the tokenizer cannot write, or not tell apart.
    """
    if vocabulary.encode is None:
        raise VocabularyError(
            "the vocabulary has no encoder, so that labels cannot be tokenised as the model's own "
            'tokenizer would; pass tokenization="any"'
        )
    ids: list[list[int]] = []
    unwritable: list[str] = []
    for label in labels:
        found = _encode(vocabulary, before, held + label.encode())
        if found is None:
            unwritable.append(label)
        else:
            ids.append(found)
    if unwritable:
        shown = ", ".join(map(repr, unwritable[:SHOWN]))
        raise VocabularyError(
            f"the tokenizer cannot write {len(unwritable)} of {len(labels)} labels as they are, "
            f"among them {shown}; change them"
        )
    return label_trie(ids)


def _encode(vocabulary: Vocabulary, before: bytes, data: bytes) -> list[int] | None:
    """The ids of `data` behind `before`; None where they do not spell it."""
    for start in (before, b"") if before else (b"",):
        ids = _encoded(vocabulary, start + data)
        cut = _behind(vocabulary, ids, len(start))
        if cut and vocabulary.decode(cut) == data:
            return cut
    return None


def _encoded(vocabulary: Vocabulary, data: bytes) -> list[int]:
    assert vocabulary.encode is not None
    try:
        return vocabulary.encode(data.decode())
    except (UnicodeDecodeError, VocabularyError):  # half a character, or no tokens for it
        return []


def _behind(vocabulary: Vocabulary, ids: list[int], n_bytes: int) -> list[int]:
    """The tokens behind the first bytes; none where a token crosses the border."""
    for place, token_id in enumerate(ids):
        if n_bytes <= 0:
            return ids[place:] if n_bytes == 0 else []
        n_bytes -= len(vocabulary.bytes_of(token_id) or b"")
    return []
