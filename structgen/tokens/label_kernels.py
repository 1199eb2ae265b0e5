"""Kernels that tell which tokens repeat a label, in an array or list of labels that must differ.

They read the same as `structgen.tokens.points.Steps` does byte by byte, for the one case that is
both common and large: a single open scope whose parts are labels of one set. There a part is known
by its label's number, what was written by sorted numbers, and a beginning is dead if all labels of
its interval were written. What they are not sure of they leave to be looked at the long way.
"""

from __future__ import annotations

import numpy as np

from structgen.automata.frames import FLAGS, LABEL, ROW, IntArray
from structgen.automata.kernels import (
    A_SCOPES,
    A_TOKENS,
    FULL,
    NO_SCOPES,
    T_A,
    T_B,
    T_STACK,
    T_STATE,
    UNREACHABLE,
    Bytes,
    Longs,
    Plan,
    fewest_tokens,
    first_label,
    kernel,
    long,
)
from structgen.automata.program import ProgramArrays
from structgen.tokens.scope_kernels import scoped_step

IN_SCOPE, IN_PART = 0b10, 0b11
"""Paths of threads between two parts of the only open scope, and inside of one."""
KEEP, DROP, ASK = range(3)
"""A token fits, does not fit, or has to be looked at the long way."""


@kernel
def _narrowed(
    program: ProgramArrays, low: int, high: int, depth: int, byte: int
) -> tuple[int, int]:
    """The labels of [low, high) whose byte at `depth` is `byte`; they agree before it."""
    blob, starts = program[4], program[5]
    begin = first_label(blob, starts, low, high, depth, byte)
    if begin < high and blob[starts[begin] + depth] == byte:
        return begin, first_label(blob, starts, begin, high, depth, byte + 1)
    return begin, begin


@kernel
def label_of(program: ProgramArrays, first: int, end: int, text: Bytes) -> int:
    """The number of the label of [first, end) that is `text`, or -1."""
    starts = program[5]
    low, high = first, end
    for depth in range(len(text)):
        low, high = _narrowed(program, low, high, depth, long(text[depth]))
        if low == high:
            return -1
    return low if low < high and starts[low + 1] - starts[low] == len(text) else -1


@kernel
def _rank(numbers: IntArray, number: int) -> int:
    """How many of sorted numbers are less than `number`."""
    low, high = long(0), long(len(numbers))
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _n_written(written: IntArray, more: IntArray, n_more: int, low: int, high: int) -> int:
    """How many labels of [low, high) were written; `more[:n_more]` within this token."""
    count = _rank(written, high) - _rank(written, low)
    for i in range(n_more):
        if low <= more[i] < high:
            count += 1
    return count


@kernel
def _is_part(
    program: ProgramArrays, arena: IntArray, threads: IntArray, at: int, first: int, end: int
) -> bool:
    """Whether a thread is inside of one of the labels of the scope."""
    if not program[0][threads[at, T_STATE], FLAGS] & LABEL:
        return False
    if arena[threads[at, T_STACK], A_SCOPES] != IN_PART:
        return False
    return first <= threads[at, T_A] and threads[at, T_B] <= end


@kernel
def _part_thread(
    program: ProgramArrays,
    arena: IntArray,
    threads: IntArray,
    low: int,
    high: int,
    first: int,
    end: int,
) -> int:
    """The only one of threads[low:high] that is inside of the scope's part; -1 if none is."""
    found = -1
    for i in range(low, high):
        if arena[threads[i, T_STACK], A_SCOPES] == IN_PART:
            if found >= 0 or not _is_part(program, arena, threads, i, first, end):
                return -1
            found = i
    return found


@kernel
def _inside(
    program: ProgramArrays,
    arena: IntArray,
    written: IntArray,
    more: IntArray,
    n_more: int,
    threads: IntArray,
    at: int,
    byte: int,
    first: int,
    end: int,
) -> int:
    """Step threads[at], alone and in a label, over a byte by which that label does not end.

    Writes the thread behind it. KEEP, DROP where all such labels were written, or ASK where the
    byte has to be read by `scoped_step`.
    """
    starts = program[5]
    state, stack = long(threads[at, T_STATE]), long(threads[at, T_STACK])
    if not _is_part(program, arena, threads, at, first, end):
        return ASK
    low, high = long(threads[at, T_A]), long(threads[at, T_B])
    depth = long(program[0][state, ROW])
    if starts[low] + depth >= starts[low + 1]:
        return ASK  # what ends here has returned already, and this is what is longer
    low, high = _narrowed(program, low, high, depth, byte)
    if low == high or starts[low] + depth + 1 >= starts[low + 1]:
        return ASK
    if high - low <= len(written) + n_more and (
        _n_written(written, more, n_more, low, high) == high - low
    ):
        return DROP
    threads[at + 1, T_STATE] = state + 1
    threads[at + 1, T_A] = low
    threads[at + 1, T_B] = high
    threads[at + 1, T_STACK] = stack
    return KEEP


@kernel
def _read_token(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    low: int,
    high: int,
    first: int,
    end: int,
    written: IntArray,
    more: IntArray,
    depth: int,
    label: int,
    token: Bytes,
) -> tuple[int, int]:
    """Read a token's bytes as `Steps.run` does.

    Args:
        depth: bytes of the part that were written.
        label: the number of the label that they are, or -1.

    Returns one of KEEP, DROP, ASK, FULL; and the tokens that suffice afterwards without regard to
    what was written, 0 if the token stays inside of a part.
    """
    n_more = 0
    in_scope = True
    for each in token:
        byte = long(each)
        if high + 1 >= len(threads):
            return FULL, 0
        if high - low == 1 and in_scope:
            quick = _inside(
                program, arena, written, more, n_more, threads, low, byte, first, end
            )  # fmt: skip
            if quick == DROP:
                return DROP, 0
            if quick == KEEP:
                low, high = high, high + 1
                depth += 1
                label = -1
                continue
        top, used, path, opens, deepest = scoped_step(
            program, plan, arena, used, threads, low, high, byte
        )
        if top == FULL:
            return FULL, 0
        if top == high:
            return DROP, 0
        if opens or path > IN_PART or deepest > IN_PART:
            return ASK, 0
        low, high = high, top
        if not in_scope:
            if path != NO_SCOPES or deepest != NO_SCOPES:
                return ASK, 0
            continue
        if path == IN_PART:
            found = _part_thread(program, arena, threads, low, high, first, end)
            if found < 0:
                return ASK, 0
            a, b = long(threads[found, T_A]), long(threads[found, T_B])
            if _n_written(written, more, n_more, a, b) == b - a:
                return DROP, 0
            depth += 1
            label = a if program[5][a] + depth == program[5][a + 1] else -1
        elif depth:
            if label < 0 or n_more == len(more):
                return ASK, 0
            if _n_written(written, more, n_more, label, label + 1):
                return DROP, 0
            more[n_more] = label
            n_more += 1
            depth, label = 0, -1
        if path == NO_SCOPES:
            in_scope = False
            if deepest != NO_SCOPES:
                return ASK, 0
            continue
        if deepest == IN_PART and depth:
            continue
        if depth:  # the part is complete, and nothing but its end can follow
            if label < 0:
                return ASK, 0
            if _n_written(written, more, n_more, label, label + 1):
                return DROP, 0
        if len(written) + n_more + 1 >= end - first:
            return ASK, 0  # perhaps nothing is left to be written
        if deepest == NO_SCOPES:
            in_scope = False
    needed = fewest_tokens(program, plan, arena, threads, low, high)
    if needed >= UNREACHABLE:
        return DROP, 0
    return KEEP, needed if n_more else 0


@kernel
def sort_tokens(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    low: int,
    high: int,
    first: int,
    end: int,
    written: IntArray,
    more: IntArray,
    text: Bytes,
    tokens: tuple[Bytes, Longs],
    listed: IntArray,
    out: IntArray,
) -> tuple[int, int, int, int]:
    """Tell which of the tokens `listed`, int32[L], repeat a label or lead nowhere else.

    Args:
        first, end: the labels of the scope are the program's from `first` to before `end`.
        written: int32[K], sorted, the numbers of those that were written.
        more: int32[M], space for the labels that one token writes.
        text: uint8[...], the part so far.
        tokens: bytes and starts of the vocabulary's tokens.
        out: int32[L or more], filled with the tokens that do not repeat any from the front on, and
            before L with those that are to be looked at the long way.

    Returns how many either are, the former FULL where space does not suffice; the most tokens that
    suffice after any of the former that ends a label, without regard to what was written; and the
    most that suffice behind what any of threads[low:high] is in.
    """
    data, starts = tokens
    label = label_of(program, first, end, text)
    n_kept, n_asked, worst, behind = 0, 0, long(0), long(0)
    for i in range(low, high):
        behind = max(behind, long(arena[threads[i, T_STACK], A_TOKENS]))
    for token in listed:
        verdict, needed = KEEP, long(0)
        if starts[token] < starts[token + 1]:  # unlike the end token
            verdict, needed = _read_token(
                program, plan, arena, used, threads, low, high, first, end, written, more,
                long(len(text)), label, data[starts[token] : starts[token + 1]],
            )  # fmt: skip
        worst = max(worst, needed)
        if verdict == FULL:
            return FULL, 0, 0, 0
        if verdict == KEEP:
            out[n_kept] = token
            n_kept += 1
        elif verdict == ASK:
            n_asked += 1
            out[len(listed) - n_asked] = token
    return n_kept, n_asked, worst, behind


@kernel
def list_tokens(mask: IntArray, out: IntArray) -> int:
    """Write the tokens of a packed mask to `out`; how many they are, or FULL."""
    count = 0
    for word in range(len(mask)):
        bits = np.uint32(mask[word])
        while bits:
            if count == len(out):
                return FULL
            bit = 0
            while not bits >> np.uint32(bit) & np.uint32(1):
                bit += 1
            out[count] = 32 * word + bit
            count += 1
            bits &= bits - np.uint32(1)
    return count
