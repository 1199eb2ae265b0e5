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
CHUNK = 64
"""Words that are compared at once, into one bit each."""
BLOCK = 4 * CHUNK
"""Words that are looked through at once for the few that forbid something."""
FEW = 16
"""As many words of a chunk as forbid something at most where they are few."""
AT_ONCE = 8
"""Words of a chunk that are listed without a branch."""
ANY = -1
"""Do the work however much it is."""

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
    def carray(pointer: Any, shape: Any, dtype: Any) -> Any: ...
    def pointer(address: int) -> Any: ...
    def _blend(address: int, index: int, keep: Bits, at: int, never: int) -> None: ...
    def _put(address: int, index: int, keep: Bits, never: int) -> None: ...
    def _forbidding(words: NDArray[np.int32], index: int) -> int: ...
    def _trailing_zeros(value: int) -> int: ...
    def _count_ones(value: int) -> int: ...

    unsigned = int

else:
    from llvmlite import ir
    from numba import carray, njit, types
    from numba.extending import intrinsic

    kernel = njit(nogil=True, cache=True)
    inlined = njit(nogil=True, cache=True, forceinline=True)
    # Signed indices cost a test for negative ones, which also keeps LLVM from merging stores.
    unsigned = np.uint64

    @intrinsic
    def pointer(typing_context, address):
        """An address as what `carray` takes."""

        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

        return types.voidptr(types.int64), generate

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
    def _forbidding(typing_context, words, index):
        """A bit for each of CHUNK words from an index on: whether it forbids something."""

        def generate(context, builder, signature, arguments):
            vector = ir.VectorType(ir.IntType(32), CHUNK)
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            source = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
            ones = ir.Constant(vector, [-1] * CHUNK)
            forbidding = builder.icmp_signed("!=", builder.load(source, align=4), ones)
            return builder.bitcast(forbidding, ir.IntType(CHUNK))

        return types.uint64(words, types.uint64), generate

    @intrinsic
    def _trailing_zeros(typing_context, value):
        """The place of the lowest bit that is set; how many bits there are if none is."""

        def generate(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), generate

    @intrinsic
    def _count_ones(typing_context, value):
        """How many bits are set."""

        def generate(context, builder, signature, arguments):
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), generate


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
    """Mask a block of words if few of them forbid something; whether they do.

    What is to be masked is listed first, without branches: where a zero comes next is not to be
    foreseen, so that a branch on it would be mispredicted about once for each.
    """
    n_words = unsigned(0)
    for chunk in range(index, index + unsigned(BLOCK), unsigned(CHUNK)):
        left = _forbidding(words, chunk)
        n_here = _count_ones(left)
        if n_here > FEW:
            return False
        if n_here:
            for i in range(unsigned(0), unsigned(AT_ONCE)):
                found[n_words + i] = chunk + _trailing_zeros(left)
                left &= left - unsigned(1)
            for i in range(unsigned(AT_ONCE), n_here):
                found[n_words + i] = chunk + _trailing_zeros(left)
                left &= left - unsigned(1)
            n_words += n_here
    for i in range(unsigned(0), n_words):
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


@inlined
def _is_much(packed: NDArray[np.int32], most: int) -> bool:
    """Whether more words than `most` forbid something; the others are skipped."""
    count = 0
    for row in range(packed.shape[0]):
        for word in packed[row]:
            count += word != -1
        if count > most:
            return True
    return False


@kernel
def address_of(packed: NDArray[np.int32]) -> int:
    """Where an array is in memory; asked of numpy, it takes as long as a row of a mask."""
    return packed.ctypes.data


@kernel
def forbid(
    address: int,
    stride: int,
    width: int,
    masks: int,
    keep: Bits,
    never: int,
    empty: NDArray[np.bool_],
    most: int,
) -> bool:
    """Overwrite with `never` each logit whose bit in a packed mask is 0.

    for row, column: if not packed[row, column // 32] >> column % 32 & 1:
        logits[row * stride + column] = never

    Args:
        address: of logits; rows begin `stride` items apart and have `width` columns side by side.
        masks: address of `packed`, int32 [B, ceil(width / 32)]; bits past the width are ignored.
            Making an array of a tensor would take as long as a row.
        keep: `keep_table` of the logits' size.
        never: of the same type as `keep`.
        empty: [B], set to whether the mask allows no column at all.
        most: words that forbid something; where there are more, nothing is done. ANY for no bound.

    Returns whether it was done.
    """
    n_rows = empty.shape[0]
    packed = carray(pointer(masks), (n_rows, (width + 31) // 32), np.int32)
    if most != ANY and _is_much(packed, most):
        return False
    for row in range(n_rows):
        start = unsigned(row) * unsigned(stride)
        empty[row] = forbid_row(unsigned(address), start, width, packed[row], keep, never)
    return True
