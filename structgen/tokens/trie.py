"""The byte trie of a vocabulary, flat and in depth-first order, ready for skip-pointer walks.

Tokens `a`, `ab` and `b` with ids 7, 8 and 9 become

    index  byte  depth  end  token
    0      -     0      4    -1      the root
    1      a     1      3     7
    2      b     2      3     8
    3      b     1      4     9

A walk goes through the rows in order; where a byte is refused it jumps to `end`, which is the row
after the refused node's whole subtree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BYTE, DEPTH, END, TOKEN = range(4)
"""Columns of `ByteTrie.nodes`."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ByteTrie:
    """Read-only arrays; see the module's docstring for an example."""

    nodes: NDArray[np.int32]
    """int32[N, 4], C-contiguous: byte, depth, end, token. Preorder, children in byte order; row 0
    is the root (0, 0, N, -1). `token` is the lowest id that spells the node, or -1."""
    same_bytes: NDArray[np.int32]
    """int32[W]: the next higher id with the same bytes, or -1."""

    def memory_bytes(self) -> int:
        """Bytes held by the two arrays."""
        return self.nodes.nbytes + self.same_bytes.nbytes


def build_trie(tokens: Sequence[bytes | None], width: int) -> ByteTrie:
    """The trie of `tokens`, whose positions are their ids; None and `b""` are left out.

    Args:
        tokens: at most `width` of them.
        width: number of token ids, W.
    """
    usable = [token_id for token_id, token in enumerate(tokens) if token]
    # The sort is stable, so ids with the same bytes stay in ascending order.
    order = sorted(usable, key=lambda token_id: tokens[token_id] or b"")
    ids = np.array(order, dtype=np.int64)  # [T]
    spelled = [tokens[token_id] or b"" for token_id in order]
    lengths = np.fromiter(map(len, spelled), dtype=np.int64, count=len(spelled))  # [T]
    text = np.frombuffer(b"".join(spelled), dtype=np.uint8)
    starts = np.cumsum(lengths) - lengths  # [T]
    shared = _shared_prefixes(text, starts, lengths)
    nodes = _preorder(ids, text, starts, lengths, shared)
    same_bytes = _chain_duplicates(ids, lengths, shared, width)
    nodes.setflags(write=False)
    same_bytes.setflags(write=False)
    return ByteTrie(nodes, same_bytes)


def _shared_prefixes(text: NDArray[np.uint8], starts: Ints, lengths: Ints) -> Ints:
    """int64[T]: how many leading bytes each sorted token shares with the one before it."""
    shared = np.zeros(len(lengths), dtype=np.int64)
    limits = np.minimum(lengths[1:], lengths[:-1])
    alive = np.arange(1, len(lengths))
    depth = 0
    while alive.size:
        alive = alive[limits[alive - 1] > depth]
        alive = alive[text[starts[alive] + depth] == text[starts[alive - 1] + depth]]
        depth += 1
        shared[alive] = depth
    return shared


def _preorder(
    ids: Ints, text: NDArray[np.uint8], starts: Ints, lengths: Ints, shared: Ints
) -> NDArray[np.int32]:
    """int32[N, 4]: each sorted token adds the nodes below what it shares with the last one."""
    added = lengths - shared  # [T], 0 for a token that repeats the one before it
    last = np.cumsum(added)  # [T], row of each token's own node
    n_nodes = 1 + int(added.sum())
    nodes = np.zeros((n_nodes, 4), dtype=np.int32)
    nodes[:, TOKEN] = -1
    owner = np.repeat(np.arange(len(ids)), added)  # [N - 1], the token that adds the row
    depth = lengths[owner] - (last[owner] - np.arange(1, n_nodes))
    nodes[1:, DEPTH] = depth
    nodes[1:, BYTE] = text[starts[owner] + depth - 1]
    first_of_its_bytes = added > 0
    nodes[last[first_of_its_bytes], TOKEN] = ids[first_of_its_bytes]
    nodes[:, END] = _subtree_ends(nodes[:, DEPTH])
    return nodes


def _subtree_ends(depths: NDArray[np.int32]) -> Ints:
    """int64[N]: the next row that is not deeper, found one level at a time from the root.

    A node ends where the next node of its level starts or where its parent ends, whichever is
    first.
    """
    n_nodes = len(depths)
    by_level = np.argsort(depths, kind="stable")
    bounds = np.cumsum(np.bincount(depths))
    ends = np.full(n_nodes, n_nodes, dtype=np.int64)
    parents = by_level[:1]
    for level in range(1, len(bounds)):
        rows = by_level[bounds[level - 1] : bounds[level]]
        parent = parents[np.searchsorted(parents, rows) - 1]
        following = np.append(rows[1:], n_nodes)
        ends[rows] = np.minimum(following, ends[parent])
        parents = rows
    return ends


def _chain_duplicates(ids: Ints, lengths: Ints, shared: Ints, width: int) -> NDArray[np.int32]:
    """int32[W]: links each id to the next one with the same bytes."""
    chain = np.full(width, -1, dtype=np.int32)
    repeats = np.flatnonzero(shared == lengths)  # row 0 shares nothing and has at least one byte
    chain[ids[repeats - 1]] = ids[repeats]
    return chain
