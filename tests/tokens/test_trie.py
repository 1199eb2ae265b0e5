from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.tokens.trie import BYTE, DEPTH, END, TOKEN, build_trie

Rows = list[list[int]]


def slow_rows(tokens: list[bytes | None]) -> Rows:
    """The same rows from a trie of nested dicts; the key -1 holds the token id."""
    root: dict[int, dict] = {}
    for token_id, token in reversed(list(enumerate(tokens))):
        if token:
            node = root
            for byte in token:
                node = node.setdefault(byte, {})
            node[-1] = {token_id: {}}
    rows: Rows = []

    def visit(byte: int, depth: int, node: dict) -> None:
        row = [byte, depth, 0, next(iter(node.get(-1, {-1: {}})))]
        rows.append(row)
        for child in sorted(key for key in node if key >= 0):
            visit(child, depth + 1, node[child])
        row[2] = len(rows)

    visit(0, 0, root)
    return rows


def slow_chain(tokens: list[bytes | None], width: int) -> list[int]:
    def following(token_id: int) -> int:
        own = tokens[token_id] if token_id < len(tokens) else None
        later = range(token_id + 1, len(tokens))
        return next((other for other in later if own and tokens[other] == own), -1)

    return [following(token_id) for token_id in range(width)]


# Few distinct bytes, so that tokens share prefixes and repeat; NUL and 255 are among them.
few_bytes = st.lists(st.sampled_from(b"\0ab\xff"), max_size=6).map(bytes)
token_lists = st.lists(st.none() | few_bytes | st.binary(max_size=4), max_size=60)


@given(token_lists, st.integers(0, 3))
def test_rows_and_chain_agree_with_a_dict_trie(tokens, spare):
    trie = build_trie(tokens, len(tokens) + spare)
    assert trie.nodes.tolist() == slow_rows(tokens)
    assert trie.same_bytes.tolist() == slow_chain(tokens, len(tokens) + spare)


def test_the_example_of_the_documentation():
    trie = build_trie([*[None] * 7, b"a", b"ab", b"b"], 10)
    assert trie.nodes.tolist() == [[0, 0, 4, -1], [97, 1, 3, 7], [98, 2, 3, 8], [98, 1, 4, 9]]


def test_no_tokens_make_a_lone_root():
    assert build_trie([], 3).nodes.tolist() == [[0, 0, 1, -1]]
    assert build_trie([None, b""], 3).same_bytes.tolist() == [-1, -1, -1]


def test_nul_and_255_are_ordinary_bytes():
    trie = build_trie([b"\0", b"\0\0", b"\xff", b"\0\0\0"], 4)
    assert trie.nodes[:, TOKEN].tolist() == [-1, 0, 1, 3, 2]


def test_duplicates_are_chained_from_the_lowest_id():
    trie = build_trie([b"x", b"y", b"x", None, b"x"], 6)
    assert trie.nodes[:, TOKEN].tolist() == [-1, 0, 1]
    assert trie.same_bytes.tolist() == [2, -1, 4, -1, -1, -1]


def test_one_very_long_token():
    trie = build_trie([b"a" * 5000, b"a" * 4999 + b"b"], 2)
    assert len(trie.nodes) == 5002
    assert trie.nodes[5000].tolist() == [97, 5000, 5001, 0]
    assert trie.nodes[5001].tolist() == [98, 5000, 5002, 1]


def test_arrays_are_contiguous_int32_and_read_only():
    trie = build_trie([b"ab"], 1)
    assert trie.nodes.dtype == trie.same_bytes.dtype == np.int32
    assert trie.nodes.flags.c_contiguous
    for array in (trie.nodes, trie.same_bytes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert trie.memory_bytes() == 3 * 16 + 4


def test_skip_pointers_of_a_large_trie_enclose_subtrees():
    random.seed(1)
    tokens = [bytes(random.choices(range(97, 105), k=random.randint(1, 9))) for _ in range(5000)]
    nodes = build_trie(tokens, 5000).nodes
    for row in random.sample(range(len(nodes)), 300):
        end = nodes[row, END]
        assert (nodes[row + 1 : end, DEPTH] > nodes[row, DEPTH]).all()
        assert end == len(nodes) or nodes[end, DEPTH] <= nodes[row, DEPTH]
    assert nodes[:, BYTE].max() == 104


@pytest.mark.bench
def test_129k_tokens_take_less_than_half_a_second(deepseek_path):
    from structgen.tokens.tokenizers import open_tokenizer, read_tokens

    tokens = read_tokens(open_tokenizer(deepseek_path)).tokens
    start = time.perf_counter()
    build_trie(tokens, len(tokens))
    assert time.perf_counter() - start < 0.5
