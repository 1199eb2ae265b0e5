"""The moves of automata as lists of arcs and as arrays, and from one to the other."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.later import later
from structgen.regex.charsets import bits_of

if TYPE_CHECKING:
    import structgen.regex.table_kernels as kernels
else:
    kernels = later("structgen.regex.table_kernels")

Arc: TypeAlias = tuple[int, int]
"""(bit mask of letters, target)"""

IntArray: TypeAlias = npt.NDArray[np.int32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

MOST_BITS = 62
"""Letters up to which the mask of an arc is an int64."""


def letter_table(arcs: Sequence[Sequence[Arc]], n_letters: int) -> IntArray:
    """int32[letters, states]: where each letter leads, -1 for nowhere."""
    if n_letters > MOST_BITS:
        return _wide_table(arcs, n_letters)
    flat = array("q", chain.from_iterable(chain.from_iterable(arcs)))
    counts = array("q", map(len, arcs))
    return kernels.table_of(np.array(flat, np.int64), np.array(counts, np.int64), n_letters)


def _wide_table(arcs: Sequence[Sequence[Arc]], n_letters: int) -> IntArray:
    """The same where masks may not fit a machine word."""
    table = np.full((n_letters, len(arcs)), -1, np.int32)
    numbers: dict[int, int] = {}
    names = [numbers.setdefault(mask, len(numbers)) for row in arcs for mask, _ in row]
    if not names:
        return table
    states = np.repeat(np.arange(len(arcs)), [len(row) for row in arcs])
    targets = np.array([to for row in arcs for _, to in row], np.int32)
    members = np.zeros((len(numbers), n_letters), np.bool_)
    for mask, number in numbers.items():
        members[number, list(bits_of(mask))] = True
    arc, letter = np.nonzero(members[names])
    table[letter, states[arc]] = targets[arc]
    return table


def arcs_of(table: IntArray) -> tuple[tuple[Arc, ...], ...]:
    """The moves of each state, from a table of letters."""
    return _few_letters(table) if len(table) <= MOST_BITS else _many_letters(table)


def _many_letters(table: IntArray) -> tuple[tuple[Arc, ...], ...]:
    """The same letter by letter."""
    rows: list[tuple[Arc, ...]] = []
    for targets in table.T.tolist():
        masks: dict[int, int] = {}
        for letter, to in enumerate(targets):
            if to >= 0:
                masks[to] = masks.get(to, 0) | 1 << letter
        rows.append(tuple([(mask, to) for to, mask in masks.items()]))
    return tuple(rows)


def _few_letters(table: IntArray) -> tuple[tuple[Arc, ...], ...]:
    """The same where masks fit a machine word."""
    starts, masks, targets = kernels.all_arcs(table)
    arcs = tuple(zip(masks.tolist(), targets.tolist(), strict=True))
    return tuple([arcs[first:end] for first, end in pairwise(starts.tolist())])


def flags(members: Iterable[int], size: int) -> BoolArray:
    """bool[size]: whether each number is among the members."""
    found = np.zeros(size, np.bool_)
    found[list(members)] = True
    return found


def steps_left(table: IntArray, accepting: BoolArray) -> IntArray:
    """int32[states]: the fewest letters to an accepting state, which every state leads to."""
    return kernels.steps_left(table, accepting)
