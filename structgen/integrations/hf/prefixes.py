"""A function for `model.generate(prefix_allowed_tokens_fn=...)`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from structgen.automata.frames import IntArray
from structgen.compiler import CompiledSchema
from structgen.errors import OptionError
from structgen.integrations.hf.rows import Row
from structgen.integrations.hf.runs import MOST_RUNS, Ids
from structgen.integrations.hf.targets import Targets, check_count, ends, targets

MOST_LISTS = 8
"""Masks whose lists are kept: that of a free text has 100,000 ids and takes about 4 ms to make."""


def prefix_allowed_tokens_fn(
    schema: object,
    tokenizer: object = None,
    *,
    max_new_tokens: int | None = None,
    prompt_length: int | None = None,
) -> Callable[[int, Tensor], list[int]]:
    """A function `(batch_id, input_ids) -> ids of the legal tokens`, which are never none.

    `StructgenLogitsProcessor` does the same faster, and has the same arguments. Here a list of
    schemas is looked up by `batch_id`, in which transformers counts the prompts when there are
    beams and the rows when there are none: without beams, and with `num_return_sequences`, repeat
    each schema so many times.

    Example: `model.generate(**inputs, prefix_allowed_tokens_fn=prefix_allowed_tokens_fn(A, tok))`
    """
    check_count("max_new_tokens", max_new_tokens, least=1)
    check_count("prompt_length", prompt_length, least=0)
    wanted = targets(schema, tokenizer)
    for compiled in wanted.compiled:
        compiled.session(max_new_tokens)  # too small a budget shows right here
    return _Function(wanted, max_new_tokens, prompt_length)


class _Function:
    """The state of the calls of `generate`, by the index of the prompt."""

    def __init__(
        self, wanted: Targets, max_new_tokens: int | None, prompt_length: int | None
    ) -> None:
        self._targets = wanted
        self._max_new_tokens = max_new_tokens
        self._prompt_length = prompt_length
        self._ends = ends(wanted.vocabulary, None)
        self._trees: dict[int, list[_Tree]] = {}
        self._lists: dict[bytes, list[int]] = {}

    def __call__(self, batch_id: int, input_ids: Tensor) -> list[int]:
        ids: Ids = input_ids.cpu().numpy().astype(np.int64)
        words = np.zeros(self._targets.vocabulary.n_words, np.int32)
        self._row(batch_id, ids).fill(words, self._ends)
        return self._as_list(words)

    def _row(self, batch_id: int, ids: Ids) -> Row:
        """The row that int64 [L] brought up to date; a new one if they go on from nothing seen."""
        trees = self._trees.setdefault(batch_id, [])
        for tree in reversed(trees):
            row = tree.follow(ids)
            if row is not None:
                trees.remove(tree)
                trees.append(tree)
                return row
        if not (trees and 0 <= len(ids) - trees[-1].length <= 1):
            trees.clear()  # no beam and no draft of what is going on, but a new call
        compiled = self._compiled(batch_id)
        start = len(ids) if self._prompt_length is None else self._prompt_length
        root = Row(compiled, compiled.session(self._max_new_tokens))
        trees.append(_Tree(ids[:start], root))
        del trees[:-MOST_RUNS]
        return trees[-1].replay(ids)

    def _compiled(self, batch_id: int) -> CompiledSchema[object]:
        each = self._targets.compiled
        if len(each) == 1:
            return each[0]
        if batch_id >= len(each):
            raise OptionError(
                f"there are {len(each)} schemas, and a row of index {batch_id}; pass one schema "
                "for each prompt, and without beams repeat each num_return_sequences times"
            )
        return each[batch_id]

    def _as_list(self, words: IntArray) -> list[int]:
        key = words.tobytes()
        found = self._lists.get(key)
        if found is None:
            found = self._lists[key] = token_ids(words)
            if len(self._lists) > MOST_LISTS:
                del self._lists[next(iter(self._lists))]
        return found


class _Tree:
    """The rows that go on from one prompt, of the last two lengths that arrived."""

    def __init__(self, prompt: Ids, root: Row) -> None:
        self._prompt = prompt
        self._parents: dict[bytes, Row] = {}
        self._rows: dict[bytes, Row] = {b"": root}
        self._n_tokens = 0

    @property
    def length(self) -> int:
        """L of what arrived last."""
        return len(self._prompt) + self._n_tokens

    def replay(self, ids: Ids) -> Row:
        """Take all tokens behind the prompt, int64 [L]."""
        (row,) = self._rows.values()
        value = ids[len(self._prompt) :]
        for token in value.tolist():
            row.take(token)
        self._rows, self._n_tokens = {value.tobytes(): row}, len(value)
        return row

    def follow(self, ids: Ids) -> Row | None:
        """The row of int64 [L], if it goes on from one that was seen with a legal token."""
        start = len(self._prompt)
        if len(ids) <= start or not np.array_equal(ids[:start], self._prompt):
            return None
        value = ids[start:]
        known = self._known(len(value) - 1)
        parent = known.get(value[:-1].tobytes()) or self._rewound(value[:-1].tolist())
        token = int(value[-1])
        if parent is None or not parent.may_go_on_with(token):
            return None
        row = parent.fork()
        row.take(token)
        if len(value) != self._n_tokens:
            self._parents, self._rows, self._n_tokens = known, {}, len(value)
        self._rows[value.tobytes()] = row
        return row

    def _known(self, n_tokens: int) -> dict[bytes, Row]:
        """The rows of one length."""
        if n_tokens == self._n_tokens:
            return self._rows
        return self._parents if n_tokens == self._n_tokens - 1 else {}

    def _rewound(self, tokens: list[int]) -> Row | None:
        """Assisted decoding goes back to where its draft began."""
        for row in self._rows.values():
            if len(tokens) < self._n_tokens and row.taken[: len(tokens)] == tokens:
                twin = row.fork()
                twin.cut(len(tokens))
                return twin
        return None


def token_ids(words: IntArray) -> list[int]:
    """The ids whose bits are 1 in int32[N].

    Example: `token_ids(np.array([5], np.int32)) -> [0, 2]`
    """
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()
