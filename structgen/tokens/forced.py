"""Tokens that are certain to come next, written as the tokenizer itself would.

Forced bytes are not forced tokens. The bytes are tokenised behind what was written before them, and
again with what may come behind them: only tokens that all these texts agree on are certain. So
every token is held back that a longer one, or another split of the text, could take the place of,
because that is a choice that belongs to the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from structgen.errors import VocabularyError
from structgen.tokens import walks
from structgen.tokens.states import ForcedRun, State, StateTable
from structgen.tokens.trie import END
from structgen.tokens.vocabulary import Vocabulary

MOST_BYTES = 4096
"""Forced text is looked up in pieces of at most this many bytes."""
PROBES = ("a", "A", "0", " ", "\n", "\t", '"', "'", "\\", ",", ".", "-", "}", "]", "é", "東")
"""One character of each kind that tokenizers are known to split texts by."""
MOST_PROBES = 32


def forced_run(table: StateTable, state: State, before: bytes) -> ForcedRun:
    """Token ids that any finished value must go on with, in the tokenizer's own segmentation.

    Example: before `{"team": "` -> the ids of `{"` and `team`, with `":` and ` "` held back if
    some legal token goes on behind the quote

    Args:
        before: the end of what was written before, e.g. the last token's bytes; a tokenizer may
            split the same bytes differently behind a space than behind a letter.
    """
    known = state.forced.get(before)
    if known is None:
        known = ForcedRun(_forced_tokens(table, state, before))
        table.remember_forced(state, before, known)
    return known


def _forced_tokens(table: StateTable, state: State, before: bytes) -> tuple[int, ...]:
    vocabulary = table.automaton.vocabulary
    data = b"" if state.held else table.forced_bytes(state, MOST_BYTES)
    if not data or vocabulary.encode is None:
        return ()
    place = Place(vocabulary, before)
    forced = place.encode(data)
    if forced:
        end = table.after(state, data)
        for other in _variants(table, end, data):
            forced = common(forced, place.encode(other))
            if not forced:
                break
    return tuple(forced)


class Place:
    """Tokenises texts as they stand behind other text."""

    def __init__(self, vocabulary: Vocabulary, before: bytes) -> None:
        self._vocabulary = vocabulary
        self._before = before.decode("utf-8", errors="ignore")

    def encode(self, data: bytes) -> list[int]:
        """The tokenizer's ids of `data`, cut to whole characters; none where it has no tokens."""
        text = data.decode("utf-8", errors="ignore")
        encode = self._vocabulary.encode
        if encode is None or not data.startswith(text.encode()):
            return []
        try:
            behind = self._behind(encode(self._before + text)) if self._before else None
            return encode(text) if behind is None else behind
        except VocabularyError:
            return []

    def _behind(self, token_ids: list[int]) -> list[int] | None:
        """What follows the tokens of `before`; None if a token crosses its end."""
        left = len(self._before.encode())
        for place, token_id in enumerate(token_ids):
            if left <= 0:
                return token_ids[place:] if left == 0 else None
            left -= len(self._vocabulary.bytes_of(token_id) or b"")
        return [] if left == 0 else None


def _variants(table: StateTable, end: State, data: bytes) -> Iterator[bytes]:
    """Texts that a finished value's own may begin with, as far as tokenisation can tell.

    They are `data` up to each place where a longer token can begin that reaches past its end, and
    `data` with what may stand behind it.
    """
    if end.complete:
        return
    longest = table.automaton.vocabulary.max_token_bytes
    for start in range(max(len(data) - longest, 0), len(data)):
        if table.longer_tokens(end, find(table, data[start:])).size:
            yield data[:start]
    for probe in _probes(table, end):
        yield data + probe


def find(table: StateTable, data: bytes) -> int:
    """The trie's node of some bytes, -1 if no longer token begins with them."""
    nodes = table.automaton.lookup.trie
    node = walks.find_node(nodes, np.frombuffer(bytearray(data), np.uint8))
    return node if node >= 0 and nodes[node, END] > node + 1 else -1


def _probes(table: StateTable, end: State) -> Iterator[bytes]:
    """What may stand behind a state, one text for each first character or each kind of it."""
    row = table.row(end)
    if len(row.base):
        probes = (probe.encode() for probe in PROBES)
        yield from (probe for probe in probes if table.reads(end, probe))
        return
    first: dict[str, bytes] = {}
    for token_id in row.extra.tolist():
        token = table.automaton.vocabulary.bytes_of(token_id) or b""
        text = token.decode("utf-8", errors="ignore")
        if text and token.startswith(text[0].encode()):
            first.setdefault(text[0], text.encode())
    yield from list(first.values())[:MOST_PROBES]


def common(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """The tokens that both begin with."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return list(one[:count])
