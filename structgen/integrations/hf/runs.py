"""Which tokens belong to the prompt: told from what arrives, since `generate` does not say.

Letters of shapes: R rows, L tokens of each (left padding included), P of them the prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.errors import OptionError
from structgen.integrations.hf.rows import Row

Ids: TypeAlias = NDArray[np.int64]

Begin: TypeAlias = Callable[[int, int], list[Row]]
"""(R, P) -> R rows without tokens."""

MOST_RUNS = 32
"""Runs that are remembered; more than one only where drafts are refused, see `Runs`."""


class Run:
    """One call of `generate`, as far as it has come."""

    def __init__(self, prompts: Ids, rows: list[Row]) -> None:
        self._prompts = prompts
        self._ids = prompts
        self.rows = rows

    @property
    def length(self) -> int:
        """L of what arrived last."""
        return self._ids.shape[1]

    def follow(self, ids: Ids) -> bool:
        """Take the last token of each row, int64 [R, L]; False if they are no part of this call.

        They are where every row goes on from tokens that were seen before, and at least one of them
        with a token that is legal and does not end the value: if not, `generate` would have
        stopped.
        """
        parents = self._parents(ids)
        if parents is None:
            return False
        last: list[int] = ids[:, -1].tolist()
        if not any(row.may_go_on_with(token) for row, token in zip(parents, last, strict=True)):
            return False
        self.rows = _owned(parents)
        for row, token in zip(self.rows, last, strict=True):
            row.take(token)
        self._ids = ids
        return True

    def replay(self, ids: Ids) -> None:
        """Take all tokens behind the prompts, int64 [R, L]."""
        for row, tokens in zip(self.rows, ids[:, self._prompts.shape[1] :].tolist(), strict=True):
            for token in tokens:
                row.take(token)
        self._ids = ids

    def _parents(self, ids: Ids) -> list[Row] | None:
        """The rows without their last tokens, some of them more than once; None if unknown."""
        start = self._prompts.shape[1]
        if ids.shape[0] != len(self.rows) or ids.shape[1] <= start:
            return None
        before = ids[:, :-1]
        if before.shape == self._ids.shape:
            if np.array_equal(before, self._ids):
                return self.rows
            return self._reordered(before)
        if not np.array_equal(ids[:, :start], self._prompts):
            return None
        return self._rewound(before[:, start:])

    def _reordered(self, before: Ids) -> list[Row] | None:
        """Beams go on from each other's tokens, but keep to their prompt and so to its schema."""
        start = self._prompts.shape[1]
        if not np.array_equal(before[:, :start], self._prompts):
            return None
        rows = self.rows
        known = {_key(*each): each[0] for each in zip(rows, self._ids[:, start:], strict=True)}
        parents = [known.get(_key(*each)) for each in zip(rows, before[:, start:], strict=True)]
        found = [parent for parent in parents if parent is not None]
        return found if len(found) == len(parents) else None

    def _rewound(self, before: Ids) -> list[Row] | None:
        """Assisted decoding goes back to where its draft began."""
        wanted: list[list[int]] = before.tolist()
        if any(row.taken[: len(ids)] != ids for row, ids in zip(self.rows, wanted, strict=True)):
            return None
        return [_cut(row, before.shape[1]) for row in self.rows]


def _key(row: Row, ids: Ids) -> tuple[int, bytes]:
    return id(row.compiled), ids.tobytes()


def _cut(row: Row, n_tokens: int) -> Row:
    twin = row.fork()
    twin.cut(n_tokens)
    return twin


def _owned(parents: list[Row]) -> list[Row]:
    """Independent rows: the second and later use of a parent is a copy of it."""
    used: set[int] = set()
    rows: list[Row] = []
    for parent in parents:
        rows.append(parent.fork() if id(parent) in used else parent)
        used.add(id(parent))
    return rows


class Runs:
    """Finds the run that arriving tokens belong to, or begins one whose prompt they are.

    A refused draft of assisted decoding looks like the prompt of a new call, so it begins a run,
    and the one before is kept: what comes after the refusal is found to belong to it.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._runs: list[Run] = []

    def rows(self, ids: Ids) -> list[Row]:
        """The rows of int64 [R, L], which is kept, brought up to date."""
        for run in reversed(self._runs):
            if run.follow(ids):
                self._runs.remove(run)
                self._runs.append(run)
                return run.rows
        if not (self._runs and ids.shape[1] == self._runs[-1].length + 1):
            self._runs.clear()
        self._runs.append(Run(ids, self._begin(*ids.shape)))
        del self._runs[:-MOST_RUNS]
        return self._runs[-1].rows


class FixedRuns:
    """The same where the caller says how long the prompts are."""

    def __init__(self, begin: Begin, prompt_length: int) -> None:
        self._begin = begin
        self._prompt_length = prompt_length
        self._run: Run | None = None

    def rows(self, ids: Ids) -> list[Row]:
        """The rows of int64 [R, L], which is kept, brought up to date."""
        start = self._prompt_length
        if ids.shape[1] < start:
            raise OptionError(
                f"prompt_length={start}, but generate() was given {ids.shape[1]} tokens a row; "
                "count the padding too: it is input_ids.shape[1]"
            )
        if self._run is None or not self._run.follow(ids):
            self._run = Run(ids[:, :start], self._begin(ids.shape[0], start))
            self._run.replay(ids)
        return self._run.rows
