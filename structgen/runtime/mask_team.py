"""Masking the rows of a large batch with the threads that torch's own operations use.

Threads of our own would compete with torch's, which keep spinning for a while behind each
operation: 64 rows took 51 us a row with two threads of ours, 43 with one. So the rows are given to
the OpenMP runtime that torch is linked with. Where there is none to be found (torch is linked with
another one on macOS and Windows), one thread does it all.
"""

# ruff: noqa: ARG001  # numba gives intrinsics all of a call's parts

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from structgen.runtime.mask_kernels import (
    ANY,
    LANES,
    Bits,
    carray,
    forbid,
    forbid_row,
    pointer,
    unsigned,
)

MOST_ALONE = 2**13
"""Words with a zero up to which calling a team together takes longer than the work alone."""
PARTS = 4
"""Runs of rows that each thread has on average: rows of one run are next to each other in memory,
and a thread that is late, or has the harder rows, leaves more of them to the others."""
N_FIELDS = 11
"""Integers that tell the threads what to do, in the order of `forbid_together`."""

log = logging.getLogger("structgen")

if TYPE_CHECKING:

    def _taken(address: int) -> int: ...

else:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def _taken(typing_context, address):
        """The int64 at an address, which is one more from then on: each caller gets another."""

        def generate(context, builder, signature, arguments):
            number = ir.IntType(64)
            target = builder.inttoptr(arguments[0], number.as_pointer())
            return builder.atomic_rmw("add", target, ir.Constant(number, 1), "monotonic")

        return types.int64(types.int64), generate


def forbid_together(
    address: int,
    stride: int,
    width: int,
    masks: int,
    keep: Bits,
    never: int,
    empty: NDArray[np.bool_],
) -> None:
    """`mask_kernels.forbid` with as many threads as torch uses, where that pays."""
    n_rows = len(empty)
    n_threads = 1 if n_rows == 1 or _in_child else min(torch.get_num_threads(), n_rows)
    most = ANY if n_threads == 1 else MOST_ALONE
    if forbid(address, stride, width, masks, keep, never, empty, most):
        return
    team = _team()
    if team is None:
        forbid(address, stride, width, masks, keep, never, empty, ANY)
        return
    n_parts = min(n_rows, PARTS * n_threads)
    places = masks, keep.ctypes.data, empty.ctypes.data
    logits = address, stride, width, int(never)
    job = np.array([0, n_parts, n_rows, (width + 31) // 32, *logits, *places], np.int64)
    team(_worker(keep.itemsize).address, job.ctypes.data, n_threads, 0)


def _forget_team() -> None:
    """In a forked process: the threads of its parent are gone, and calling them would hang."""
    _in_child.append(True)


_in_child: list[bool] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_team)


@cache
def _team() -> Callable[[int, int, int, int], None] | None:
    """GNU OpenMP's entry `parallel(function, argument, threads, flags)` as torch has it loaded.

    Each thread of the team calls `function(argument)`. It is what compilers emit for a parallel
    region, and part of the runtime's stable interface. Looked up behind torch's own library, it
    is that of torch, even if another copy of the runtime is loaded.
    """
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        team = ctypes.CDLL(str(library)).GOMP_parallel
    except (OSError, AttributeError) as error:
        log.debug("batches are masked by one thread: %s", error)
        return None
    team.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint
    team.restype = None
    return team


@cache
def _worker(size: int) -> Any:
    """What each thread does for logits of `size` bytes, as a callback of C."""
    import numba

    item = np.dtype(f"i{size}").type

    @numba.cfunc(numba.types.void(numba.types.voidptr), cache=True)
    def work(argument: Any) -> None:
        job = carray(argument, N_FIELDS, np.int64)
        n_parts, n_rows, width = job[1], job[2], job[6]
        packed = carray(pointer(job[8]), (n_rows, job[3]), np.int32)
        keep = carray(pointer(job[9]), 256 * LANES, item)
        empty = carray(pointer(job[10]), n_rows, np.bool_)
        address, stride, never = unsigned(job[4]), unsigned(job[5]), item(job[7])
        part = _taken(job.ctypes.data)
        while part < n_parts:
            for row in range(part * n_rows // n_parts, (part + 1) * n_rows // n_parts):
                start = unsigned(row) * stride
                empty[row] = forbid_row(address, start, width, packed[row], keep, never)
            part = _taken(job.ctypes.data)

    return work
