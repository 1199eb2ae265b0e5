"""Tokens that are certain to come next, written as the tokenizer itself would.

Forced bytes are not forced tokens. The bytes are tokenised as a text; then every token is held
back from which on a longer legal token could still cover the end of the forced bytes, because
that longer token is a choice that belongs to the model.
"""

from __future__ import annotations

import numpy as np

from structgen.automata.frames import IntArray
from structgen.errors import VocabularyError
from structgen.tokens import walks
from structgen.tokens.states import State, StateTable
from structgen.tokens.trie import END, TOKEN
from structgen.tokens.vocabulary import Vocabulary

MOST_BYTES = 4096
"""Forced text is looked up in pieces of at most this many bytes."""


def forced_tokens(table: StateTable, state: State) -> tuple[int, ...]:
    """Token ids that any finished value must go on with, in the tokenizer's own segmentation.

    Example: before `{"team": "` -> the ids of `{"` and `team`, with `":` and ` "` held back if
    some legal token goes on behind the quote
    """
    vocabulary = table.automaton.vocabulary
    data = table.forced_bytes(state, MOST_BYTES)
    forced: list[int] = []
    for token_id in _tokenise(vocabulary, data):
        if _may_reach_past(table, state, data):
            break
        token = vocabulary.bytes_of(token_id) or b""
        after = state.next.get(token_id) or table.advance(state, token_id, token)
        assert after is not None, "a part of the forced bytes is legal"
        forced.append(token_id)
        state, data = after, data[len(token) :]
    return tuple(forced)


def _tokenise(vocabulary: Vocabulary, data: bytes) -> list[int]:
    """The tokenizer's ids of `data`, cut to whole characters; none where it cannot write them."""
    text = data.decode("utf-8", errors="ignore")
    if not text or vocabulary.encode is None or not data.startswith(text.encode()):
        return []
    try:
        return vocabulary.encode(text)
    except VocabularyError:
        return []


def _may_reach_past(table: StateTable, state: State, data: bytes) -> bool:
    """Whether some legal token begins with all of `data` and goes on."""
    nodes = table.automaton.lookup.trie
    node = walks.find_node(nodes, np.frombuffer(bytearray(data), np.uint8))
    if node < 0:
        return False
    longer = nodes[node + 1 : nodes[node, END], TOKEN]
    return _any_allowed(table.mask(state), longer[longer >= 0])


def _any_allowed(mask: IntArray, token_ids: IntArray) -> bool:
    return bool(np.any(mask[token_ids >> 5] >> (token_ids & 31) & 1))
