"""Applying packed masks to logits on the CPU, in one pass over both.

The kernel takes the logits as an address and works on their bits as integers, so that one source
serves every floating type. A word of a mask is either skipped, or overwritten, or blended: eight
lanes at a time the logits are combined with a row of a table that has ones where a bit of a byte
is set.

On 151,936 columns in float32 a blend takes 17 us where a copy of the row takes 18. LLVM's own
vectorisation of the loop over bits takes 99 us, and a vector `select` 73 us, because it becomes
masked stores, which are slow on AMD's processors. Hence the table and the hand-made lanes.
"""

# ruff: noqa: ARG001  # numba gives intrinsics all of a call's parts

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

LANES = 8
"""Logits that are blended at once, one for each bit of a byte."""
GROUP = 8
"""Words that are skipped at once where they allow everything."""
BLOCK = 64 * GROUP
"""Words that are looked through at once for the few that forbid something."""

Bits: TypeAlias = NDArray[np.signedinteger[Any]]
"""Logits as integers of their own size."""


def keep_table(size: int) -> Bits:
    """Integers of `size` bytes, [256 * LANES]: all ones where a byte has the bit, else zero."""
    every = np.arange(256, dtype=np.uint8)[:, None]
    bits = np.unpackbits(every, axis=1, bitorder="little")  # [256, LANES]
    return -bits.astype(f"i{size}").reshape(-1)


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

    def kernel(function: F) -> F: ...
    def inlined(function: F) -> F: ...
    def _blend(address: int, index: int, keep: Bits, at: int, never: int) -> None: ...
    def _put(address: int, index: int, keep: Bits, never: int) -> None: ...
    def _trailing_zeros(value: int) -> int: ...

    unsigned = int

else:
    from llvmlite import ir
    from numba import njit, types
    from numba.extending import intrinsic

    kernel = njit(nogil=True, cache=True)
    inlined = njit(nogil=True, cache=True, forceinline=True)
    # Signed indices cost a test for negative ones, which also keeps LLVM from merging stores.
    unsigned = np.uint64

    def _item(context, builder, kind, address, index):
        """A pointer to one logit, of the table's type; the bytes of an item."""
        item = context.get_value_type(kind.dtype)
        start = builder.inttoptr(address, item.as_pointer())
        return builder.gep(start, [index]), item, item.width // 8

    @intrinsic
    def _put(typing_context, address, index, keep, never):
        """Store `never` at an index behind an address."""

        def generate(context, builder, signature, arguments):
            target, _, align = _item(context, builder, signature.args[2], *arguments[:2])
            builder.store(arguments[3], target, align=align)
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64, keep, keep.dtype), generate

    @intrinsic
    def _blend(typing_context, address, index, keep, at, never):
        """Store `never` in those of LANES logits where keep[at:][:LANES] has no ones."""

        def generate(context, builder, signature, arguments):
            kind = signature.args[2]
            address, index, keep, at, never = arguments
            target, item, align = _item(context, builder, kind, address, index)
            vector, int32 = ir.VectorType(item, LANES), ir.IntType(32)
            target = builder.bitcast(target, vector.as_pointer())
            source = builder.gep(context.make_array(kind)(context, builder, keep).data, [at])
            source = builder.bitcast(source, vector.as_pointer())
            old, mask = builder.load(target, align=align), builder.load(source, align=align)
            undefined = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(undefined, never, ir.Constant(int32, 0))
            zeros = ir.Constant(ir.VectorType(int32, LANES), [0] * LANES)
            every = builder.shuffle_vector(one, undefined, zeros)
            kept = builder.and_(mask, builder.xor(old, every))
            builder.store(builder.xor(every, kept), target, align=align)
            return context.get_dummy_value()

        parts = types.uint64, types.uint64, keep, types.uint64, keep.dtype
        return types.void(*parts), generate

    @intrinsic
    def _trailing_zeros(typing_context, value):
        """The place of the lowest bit that is set."""

        def generate(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), generate


@inlined
def _all_ones(words: NDArray[np.int32], index: int) -> bool:
    """Whether GROUP words allow everything: one branch for all, in dense masks mostly taken."""
    together = words[index]
    for i in range(unsigned(1), unsigned(GROUP)):
        together &= words[index + i]
    return together == -1


@inlined
def _forbid_some(logits: int, first: int, word: int, keep: Bits, never: int) -> None:
    """Mask the 32 logits from `first` on by a word that has ones and zeros."""
    unset = ~unsigned(word) & unsigned(0xFFFFFFFF)
    rest = unset & (unset - unsigned(1))
    if rest & (rest - unsigned(1)) == 0:
        # One or two zeros: stores need not wait for the line, as a blend has to.
        _put(logits, first + _trailing_zeros(unset), keep, never)
        if rest:
            _put(logits, first + _trailing_zeros(rest), keep, never)
    else:
        for part in range(unsigned(0), unsigned(32), unsigned(LANES)):
            byte = (unsigned(word) >> part) & unsigned(255)
            _blend(logits, first + part, keep, byte * unsigned(LANES), never)


@inlined
def _forbid_few(
    logits: int,
    start: int,
    words: NDArray[np.int32],
    index: int,
    found: NDArray[np.uint64],
    keep: Bits,
    never: int,
) -> bool:
    """Mask a block of words if most of its groups allow everything; whether they do.

    What is to be masked is listed first, without branches: where a zero comes next is not to be
    foreseen, so that a branch on it would be mispredicted about once for each.
    """
    n_groups = unsigned(0)
    for group in range(index, index + unsigned(BLOCK), unsigned(GROUP)):
        found[n_groups] = group
        n_groups += unsigned(not _all_ones(words, group))
    if n_groups > BLOCK // GROUP // 2:
        return False
    n_words = unsigned(BLOCK // GROUP)
    for i in range(unsigned(0), n_groups):
        for place in range(found[i], found[i] + unsigned(GROUP)):
            found[n_words] = place
            n_words += unsigned(words[place] != -1)
    for i in range(unsigned(BLOCK // GROUP), n_words):
        place = unsigned(found[i])
        _forbid_some(logits, start + unsigned(32) * place, words[place], keep, never)
    return True


@inlined
def forbid_row(
    logits: int, start: int, width: int, words: NDArray[np.int32], keep: Bits, never: int
) -> bool:
    """`forbid` for the row that begins `start` items behind an address; whether it is empty."""
    whole = unsigned(width // 32)
    found = np.empty(BLOCK, np.uint64)
    nothing = True
    index = unsigned(0)
    while index < whole:
        if index + unsigned(BLOCK) <= whole and _forbid_few(
            logits, start, words, index, found, keep, never
        ):
            nothing = False
            index += unsigned(BLOCK)
            continue
        end = min(index + unsigned(BLOCK), whole)
        while index < end:
            word = words[index]
            if word == 0:
                first = index
                while index < whole and words[index] == 0:
                    index += unsigned(1)
                for i in range(start + unsigned(32) * first, start + unsigned(32) * index):
                    _put(logits, i, keep, never)
                continue
            nothing = False
            if word != -1:
                _forbid_some(logits, start + unsigned(32) * index, word, keep, never)
            index += unsigned(1)
    for column in range(unsigned(32) * whole, unsigned(width)):
        if (words[whole] >> np.int32(column & unsigned(31))) & 1:
            nothing = False
        else:
            _put(logits, start + column, keep, never)
    return nothing


@kernel
def forbid(
    address: int,
    stride: int,
    width: int,
    packed: NDArray[np.int32],
    keep: Bits,
    never: int,
    empty: NDArray[np.bool_],
) -> None:
    """Overwrite with `never` each logit whose bit in a packed mask is 0.

    for row, column: if not packed[row, column // 32] >> column % 32 & 1:
        logits[row * stride + column] = never

    Args:
        address: of logits; rows begin `stride` items apart and have `width` columns side by side.
        packed: int32 [B, ceil(width / 32)]; bits past the width are ignored.
        keep: `keep_table` of the logits' size.
        never: of the same type as `keep`.
        empty: [B], set to whether the mask allows no column at all.
    """
    for row in range(packed.shape[0]):
        start = unsigned(row) * unsigned(stride)
        empty[row] = forbid_row(unsigned(address), start, width, packed[row], keep, never)
