"""Arrays that kernels find by their addresses, so that a call from Python takes a single argument.

numba spends 0.1 to 0.3 us on each array that Python hands to a kernel, and more on tuples of them:
for the masks of most states that was longer than the kernel itself took (2.6 us of 5 for a walk
with seven arrays and two tuples, 0.4 with a record). A *record* is int64[2 * n], for each array its
address and its length. Whoever makes a record keeps the arrays alive, and writes them to it again
when they are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

Record: TypeAlias = npt.NDArray[np.int64]

Kind: TypeAlias = tuple[type[np.generic], int]
"""(dtype, number of columns), 0 columns for an array of one dimension."""


def empty_record(n_arrays: int) -> Record:
    """A record of so many arrays, none of which is set."""
    return np.zeros(2 * n_arrays, np.int64)


def put(record: Record, first: int, kinds: Sequence[Kind], arrays: Sequence[Any]) -> None:
    """Write the addresses of arrays to the places of a record from `first` on."""
    for place, (dtype, columns), array in zip(
        range(first, first + len(kinds)), kinds, arrays, strict=True
    ):
        assert array.flags.carray, "kernels read plain memory"
        assert (array.dtype, array.shape[1:]) == (dtype, (columns,) if columns else ())
        record[2 * place] = array.ctypes.data
        record[2 * place + 1] = len(array)


if TYPE_CHECKING:
    from collections.abc import Callable

    def reader(first: int, kinds: Sequence[Kind]) -> Callable[[Record], Any]: ...

else:
    from numba import types
    from numba.extending import intrinsic

    _TYPES = {np.int32: types.int32, np.int64: types.int64, np.uint8: types.uint8}

    def reader(first, kinds):
        """A function for kernels that returns the arrays of a record from place `first` on.

        Their numbers of columns are constants of the machine code.
        """
        array_types = [types.Array(_TYPES[t], 2 if columns else 1, "C") for t, columns in kinds]
        result = types.Tuple(array_types)

        @intrinsic
        def read(_, record):
            def generate(context, builder, signature, arguments):
                from numba.np.arrayobj import make_array

                whole = make_array(signature.args[0])(context, builder, arguments[0])
                arrays = [
                    _array(context, builder, whole.data, 2 * (first + index), kind, columns)
                    for index, (kind, (_, columns)) in enumerate(
                        zip(array_types, kinds, strict=True)
                    )
                ]
                return context.make_tuple(builder, result, arrays)

            return result(record), generate

        return read

    def _array(context, builder, data, place, kind, columns):
        """Code that makes an array from the address and length at a place of a record."""
        from numba.np.arrayobj import make_array, populate_array

        def constant(value):
            return context.get_constant(types.intp, value)

        address, length = (
            builder.load(builder.gep(data, [constant(at)])) for at in (place, place + 1)
        )
        size = kind.dtype.bitwidth // 8
        array = make_array(kind)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=[length, constant(columns)] if columns else [length],
            strides=[constant(size * columns), constant(size)] if columns else [constant(size)],
            itemsize=constant(size),
            meminfo=None,
        )
        return array._getvalue()
