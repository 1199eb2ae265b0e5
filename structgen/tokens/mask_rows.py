"""Masks kept small: a row that many states share, and the few tokens that it lacks.

Most states allow a handful of tokens, or the inside of a string and a handful more. A packed mask
of 150,000 tokens takes 19 kB, which have to come from memory whenever a state is visited; the
shared row stays in the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structgen.automata.frames import IntArray

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

    def kernel(function: F) -> F: ...

else:
    from numba import njit

    # Not `nogil`: giving up the interpreter lock for 0.3 us costs more than it brings.
    kernel = njit("boolean(i4[::1], i4[::1], i4[::1], i8)", cache=True, _nrt=False)

NONE = np.zeros(0, np.int32)
"""No shared row, or no further tokens."""
ROW_BYTES = 256
"""Rough size of a mask without its arrays."""


@dataclass(slots=True, eq=False)  # never written, but frozen ones take 0.6 us longer to make
class MaskRow:
    """One mask, immutable; compared by identity, so that a device can remember its rows.

    Example: `MaskRow(NONE, np.array([1, 33]), 2).dense() -> [2, 2]`
    """

    base: IntArray
    """int32[n_words] with 32 tokens a word, or int32[0] for a row of zeros; never written."""
    extra: IntArray
    """int32[K]: token ids that are allowed as well, in any order."""
    n_words: int

    def fill(self, row: IntArray) -> bool:
        """Write the mask to `row`, contiguous int32; False if it has not n_words."""
        return fill(row, self.base, self.extra, self.n_words)

    def dense(self) -> IntArray:
        """int32[n_words], read-only: bit `t & 31` of word `t >> 5` is 1 where token t is legal."""
        if len(self.base) and not len(self.extra):
            row = self.base.view()
        else:
            row = np.empty(self.n_words, np.int32)
            self.fill(row)
        row.setflags(write=False)
        return row

    def allows(self, token_id: int) -> bool:
        """Whether the mask has the bit of `token_id`, which is one of the vocabulary."""
        if len(self.base) and int(self.base[token_id >> 5]) >> (token_id & 31) & 1:
            return True
        return token_id in self.extra.tolist()

    @property
    def empty(self) -> bool:
        """No token is allowed."""
        return not len(self.extra) and not self.base.any()


def mask_row(base: IntArray, extra: IntArray, n_words: int) -> MaskRow:
    """A mask of a shared row and further tokens, which become a row of their own if many.

    Args:
        base: as in `MaskRow`; no longer written by anyone.
        extra: as in `MaskRow`; copied.
    """
    row = MaskRow(base if base is NONE else _kernel_view(base), extra.copy(), n_words)
    if len(extra) <= n_words // 4:
        return row
    own = np.empty(n_words, np.int32)
    row.fill(own)
    return MaskRow(own, NONE, n_words)


def _kernel_view(array: IntArray) -> IntArray:
    """The same memory without the read-only flag, or a copy where that is impossible.

    numba looks up the type of read-only arguments on its slow path, 5 us for each array and call.
    """
    if array.flags.writeable:
        return array
    if not array.flags.owndata:
        return array.copy()
    array.setflags(write=True)
    view = array.view()
    array.setflags(write=False)
    return view


@kernel
def fill(row: IntArray, base: IntArray, extra: IntArray, n_words: int) -> bool:
    """Write a mask to `row`, int32[n_words]; False, and nothing, if it has another length."""
    if len(row) != n_words:
        return False
    if len(base):
        for i in range(n_words):
            row[i] = base[i]
    else:
        for i in range(n_words):
            row[i] = 0
    for i in range(len(extra)):
        token = extra[i]
        row[token >> 5] |= np.int32(1) << np.int32(token & 31)
    return True
