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


if TYPE_CHECKING:
    from collections.abc import Callable

    def reader(first: int, kinds: Sequence[Kind]) -> Callable[[Record], Any]: ...
    def writer(first: int, kinds: Sequence[Kind]) -> Callable[[Record, Any], bool]: ...

else:
    from numba import types
    from numba.extending import intrinsic

    _TYPES = {np.int32: types.int32, np.int64: types.int64, np.uint8: types.uint8}

    def _array_types(kinds):
        return [types.Array(_TYPES[t], 2 if columns else 1, "C") for t, columns in kinds]

    def writer(first, kinds):
        """A function for kernels that writes a tuple of arrays to a record from place `first` on.

        It returns whether they have the right numbers of columns. Arrays of another kind, or that
        may not be written, are a typing error. (Python takes 2.5 us to ask for one address.)
        """
        array_types = types.Tuple(_array_types(kinds))

        @intrinsic
        def write(_, record, arrays):
            if arrays != array_types:
                return None

            def generate(context, builder, signature, arguments):
                from numba.np.arrayobj import make_array

                whole = make_array(signature.args[0])(context, builder, arguments[0])
                fits = context.get_constant(types.boolean, True)
                for index, (kind, (_, columns)) in enumerate(zip(array_types, kinds, strict=True)):
                    value = builder.extract_value(arguments[1], index)
                    array = make_array(kind)(context, builder, value)
                    address = builder.ptrtoint(array.data, whole.data.type.pointee)
                    length = builder.extract_value(array.shape, 0)
                    for at, number in enumerate((address, length), 2 * (first + index)):
                        place = builder.gep(whole.data, [context.get_constant(types.intp, at)])
                        builder.store(number, place)
                    if columns:
                        found = builder.extract_value(array.shape, 1)
                        right = context.get_constant(types.intp, columns)
                        fits = builder.and_(fits, builder.icmp_signed("==", found, right))
                return fits

            return types.boolean(record, arrays), generate

        return write

    def reader(first, kinds):
        """A function for kernels that returns the arrays of a record from place `first` on.

        Their numbers of columns are constants of the machine code.
        """
        array_types = _array_types(kinds)
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
