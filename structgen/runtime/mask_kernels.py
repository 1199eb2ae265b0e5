"""Applying packed masks to logits on the CPU, in one pass over both.

The kernel works on the bits of the logits as integers, so that one source serves every floating
type. A word of a mask is either skipped, or overwritten, or blended: eight lanes at a time the
logits are combined with a row of a table that has ones where a bit of a byte is set.

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
    def _blend(array: Bits, first: int, keep: Bits, at: int, never: int) -> None:
        """array[first:][:LANES] where keep[at:][:LANES] has ones, elsewhere `never`."""

    def _trailing_zeros(value: int) -> int: ...

    unsigned = int

else:
    from llvmlite import ir
    from numba import njit, types
    from numba.extending import intrinsic

    kernel = njit(nogil=True, cache=True)
    # Signed indices cost a test for negative ones, which also keeps LLVM from merging stores.
    unsigned = np.uint64

    def _lanes(context, builder, kind, array, index):
        """A pointer to LANES items of an array, and the bytes of an item."""
        start = context.make_array(kind)(context, builder, array).data
        item = context.get_value_type(kind.dtype)
        vector = ir.VectorType(item, LANES)
        pointer = builder.bitcast(builder.gep(start, [index]), vector.as_pointer())
        return pointer, vector, item.width // 8

    @intrinsic
    def _blend(typing_context, array, first, keep, at, never):
        """array[first:][:LANES] where keep[at:][:LANES] has ones, elsewhere `never`."""

        def generate(context, builder, signature, arguments):
            array_kind, _, keep_kind, _, _ = signature.args
            array, first, keep, at, never = arguments
            target, vector, align = _lanes(context, builder, array_kind, array, first)
            source, _, _ = _lanes(context, builder, keep_kind, keep, at)
            old, mask = builder.load(target, align=align), builder.load(source, align=align)
            undefined, int32 = ir.Constant(vector, ir.Undefined), ir.IntType(32)
            one = builder.insert_element(undefined, never, ir.Constant(int32, 0))
            zeros = ir.Constant(ir.VectorType(int32, LANES), [0] * LANES)
            every = builder.shuffle_vector(one, undefined, zeros)
            kept = builder.and_(mask, builder.xor(old, every))
            builder.store(builder.xor(every, kept), target, align=align)
            return context.get_dummy_value()

        return types.void(array, types.uintp, keep, types.uintp, array.dtype), generate

    @intrinsic
    def _trailing_zeros(typing_context, value):
        """The place of the lowest bit that is set."""

        def generate(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), generate


@kernel
def _all_ones(words: NDArray[np.int32], index: int) -> bool:
    """Whether eight words allow everything; without a branch for each."""
    both = words[index]
    for i in range(unsigned(1), unsigned(8)):
        both &= words[index + i]
    return both == -1


@kernel
def forbid(
    logits: Bits,
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
        logits: contiguous; rows begin `stride` items apart and have `width` columns.
        packed: int32 [B, ceil(width / 32)]; bits past the width are ignored.
        keep: `keep_table` of the items' size.
        never: of the items' type.
        empty: [B], set to whether the mask allows no column at all.
    """
    whole = unsigned(width // 32)
    for row in range(packed.shape[0]):
        words = packed[row]
        start = unsigned(row) * unsigned(stride)
        nothing = True
        index = unsigned(0)
        while index < whole:
            word = words[index]
            if word == -1:
                nothing = False
                index += unsigned(1)
                while index + unsigned(7) < whole and _all_ones(words, index):
                    index += unsigned(8)
            elif word == 0:
                first = index
                index += unsigned(1)
                while index < whole and words[index] == 0:
                    index += unsigned(1)
                for i in range(start + unsigned(32) * first, start + unsigned(32) * index):
                    logits[i] = never
            else:
                nothing = False
                first = start + unsigned(32) * index
                unset = ~unsigned(word) & unsigned(0xFFFFFFFF)
                rest = unset & (unset - unsigned(1))
                if rest & (rest - unsigned(1)) == 0:
                    # One or two zeros: stores need not wait for the line, as a blend has to.
                    logits[first + _trailing_zeros(unset)] = never
                    if rest:
                        logits[first + _trailing_zeros(rest)] = never
                else:
                    for part in range(unsigned(0), unsigned(32), unsigned(LANES)):
                        byte = (unsigned(word) >> part) & unsigned(255)
                        _blend(logits, first + part, keep, byte * unsigned(LANES), never)
                index += unsigned(1)
        for column in range(unsigned(32) * whole, unsigned(width)):
            if (words[whole] >> np.int32(column & unsigned(31))) & 1:
                nothing = False
            else:
                logits[start + column] = never
        empty[row] = nothing
