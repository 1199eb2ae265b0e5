"""The border between a prompt and a value, where a token may cover the end of one and the
beginning of the other.

A prompt that ends with `Label: ` has been tokenised with the space as a token of its own, but the
model knows ` billing` as one token. The last tokens of such a prompt are held back: the value's
session lets the model write them again, or a longer token instead that begins with the same bytes.
After "token healing" in guidance (Lundberg and others, github.com/guidance-ai/guidance).
"""

from __future__ import annotations

from collections.abc import Sequence

from structgen.errors import VocabularyError
from structgen.tokens.forced import common, find
from structgen.tokens.states import State, StateTable
from structgen.tokens.vocabulary import Vocabulary

MOST_HELD = 4
"""Tokens of a prompt that are looked at."""
MOST_TRIED = 16
"""Longer tokens that are tried at each place, evenly taken from all."""


def healing_state(table: StateTable, prompt_ids: Sequence[int]) -> State:
    """The state before a value behind a prompt; its `held` are the tokens to be written again.

    At least one token of the prompt is left to the model to read.
    """
    tail = _tail(table.automaton.vocabulary, prompt_ids)
    known = table.healing.get(tail)
    if known is None:
        held = _held(table, tail)
        known = table.holding(held) if held else table.start
        table.remember_healing(tail, known)
    return known


def _tail(vocabulary: Vocabulary, prompt_ids: Sequence[int]) -> tuple[int, ...]:
    """The last tokens of a prompt that the tokenizer writes just so; special ones end them."""
    tail: list[int] = []
    for token_id in reversed(prompt_ids[1:][-MOST_HELD:]):
        if not 0 <= token_id < vocabulary.width or not vocabulary.bytes_of(token_id):
            break
        tail.insert(0, int(token_id))
    while tail and _encoded(vocabulary, vocabulary.decode(tail)) != tail:
        del tail[0]
    return tuple(tail)


def _held(table: StateTable, tail: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens at the end of a prompt in whose place the tokenizer could write a longer one."""
    vocabulary = table.automaton.vocabulary
    data = vocabulary.decode(tail)
    held, start = 0, 0
    for first in tail:
        longer = table.longer_tokens(table.start, find(table, data[start:]))
        for token_id in longer[:: -(-len(longer) // MOST_TRIED) or 1].tolist():
            token = vocabulary.bytes_of(token_id) or b""
            ids = _encoded(vocabulary, data + token[len(data) - start :])
            kept = common(tail, ids)
            if token_id in ids[len(kept) : len(kept) + 1]:
                held = max(held, len(tail) - len(kept))
        start += len(vocabulary.bytes_of(first) or b"")
    return tail[len(tail) - held :]


def _encoded(vocabulary: Vocabulary, data: bytes) -> list[int]:
    """The tokenizer's ids of some bytes; none where it has none, or they are cut characters."""
    text = data.decode("utf-8", errors="ignore")
    if vocabulary.encode is None or text.encode() != data:
        return []
    try:
        return vocabulary.encode(text)
    except VocabularyError:
        return []
