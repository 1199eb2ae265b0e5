"""Stacks made permanent: what a step has pushed is given its lasting place in a table's arena.

Equal rows are kept once, so that states which were reached along different ways are the same. The
kernels' slow twin is in the tests. A row's *canonical* row is the one with all room cut to what one
token can use up: threads above rows with the same canonical row have the same mask.
"""

from __future__ import annotations

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import CHAIN, FLAGS, FRAME, LABEL, LOOP, ROW, IntArray
from structgen.automata.kernels import (
    A_A,
    A_B,
    A_CANONICAL,
    A_PARENT,
    A_STATE,
    EITHER,
    FULL,
    T_A,
    T_B,
    T_STACK,
    T_STATE,
    inlined,
    kernel,
    long,
    read_bytes,
)
from structgen.automata.program import FINAL_STATE, ProgramArrays
from structgen.automata.records import Record
from structgen.tokens.layout import plan_of, program_of, space_of, vocabulary_of

NEEDED = 1
"""In A_CANONICAL of a pushed row: a thread stands on it."""


@kernel
def take(
    record: Record, used: int, n_threads: int, state: int, a: int, b: int, stack: int, token: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Read a token's bytes and make what is left permanent.

    Args:
        state, a, b, stack: the thread, where it is the only one; else they are in `threads`.

    Returns `settle`'s (n_threads, n_canonical, used), and of the only thread that is left (state,
    a, b, stack) and the canonical b and stack.
    """
    program, plan = program_of(record), plan_of(record)
    arena, threads, _, caps, _, _ = space_of(record)
    _, _, _, _, blob, starts = vocabulary_of(record)
    if n_threads == 1:
        threads[0, T_STATE] = state
        threads[0, T_A] = a
        threads[0, T_B] = b
        threads[0, T_STACK] = stack
    data = blob[starts[token] : starts[token + 1]]
    if len(data) == 0:  # special tokens spell nothing, and are never part of a value
        return 0, 0, used, 0, 0, 0, 0, 0, 0
    low, high, top = read_bytes(program, plan, arena, used, threads, n_threads, data)
    if high == FULL:
        return FULL, 0, used, 0, 0, 0, 0, 0, 0
    count, n_canonical, used = settle(record, low, high, used, top)
    if count != 1:
        return count, n_canonical, used, 0, 0, 0, 0, 0, 0
    state, a = long(threads[0, T_STATE]), long(threads[0, T_A])
    b, stack = long(threads[0, T_B]), long(threads[0, T_STACK])
    return (
        1, 1, used, state, a, b, stack, _cut(program, caps, state, b),
        long(arena[stack, A_CANONICAL]),
    )  # fmt: skip


@kernel
def settle(record: Record, low: int, high: int, first: int, used: int) -> tuple[int, int, int]:
    """Make a state of threads[low:high], whose stacks were pushed to rows from `first` to `used`.

    Its threads are written to threads[:n], sorted, without those that have no byte edges; the
    canonical threads behind them. Returns (n, number of canonical threads, end of the permanent
    rows); n is FULL, and nothing has changed, where space does not suffice.
    """
    program = program_of(record)
    arena, threads, slots, caps, _, _ = space_of(record)
    if 2 * (high - low) > len(threads) or 3 * used - 2 * first > len(arena):
        return FULL, 0, first
    count = long(0)
    for i in range(low, high):
        if _reads(program, threads, i):
            _copy(threads, i, count)
            count += 1
    used = _place(program, caps, arena, slots, threads, count, first, used)
    count = _sorted(threads, long(0), count)
    if count == 1:
        return 1, 1, used
    for i in range(count):
        state, b, stack = threads[i, T_STATE], threads[i, T_B], threads[i, T_STACK]
        _copy(threads, i, count + i)
        threads[count + i, T_B] = _cut(program, caps, long(state), long(b))
        threads[count + i, T_STACK] = arena[stack, A_CANONICAL]
    return count, _sorted(threads, count, 2 * count) - count, used


@kernel
def enter_all(record: Record, used: int) -> None:
    """Fill a new hash table with the permanent rows, which are those up to `used`."""
    arena, _, slots, _, _, _ = space_of(record)
    for row in range(2, used):
        slots[_slot(arena, slots, long(0), used, row)] = row


@inlined
def _reads(program: ProgramArrays, threads: IntArray, at: int) -> bool:
    """Whether a thread can read a byte, or is at the end of the value."""
    states, starts = program[0], program[5]
    state = threads[at, T_STATE]
    row = states[state, ROW]
    if states[state, FLAGS] & LABEL:
        # Of the labels in [a, b), only the first can end at this depth.
        a, b = threads[at, T_A], threads[at, T_B]
        return b - a > 1 or starts[a] + row < starts[a + 1]
    return states[state, CHAIN] >= 0 or row >= 0 or state == FINAL_STATE


@inlined
def _copy(threads: IntArray, source: int, to: int) -> None:
    for column in range(4):
        threads[to, column] = threads[source, column]


@inlined
def _cut(program: ProgramArrays, caps: IntArray, state: int, room: int) -> int:
    """The room of a thread or row, as far as masks depend on it."""
    states = program[0]
    if room == NO_LIMIT or states[state, LOOP] < 0:
        return room
    return min(room, long(caps[states[state, FRAME]]))


@inlined
def _less(threads: IntArray, one: int, other: int) -> bool:
    for column in range(4):
        if threads[one, column] != threads[other, column]:
            return threads[one, column] < threads[other, column]
    return False


@inlined
def _sorted(threads: IntArray, low: int, high: int) -> int:
    """Sort threads[low:high], of which there are few, and drop repetitions; the new end."""
    for i in range(low + 1, high):
        at = i
        while at > low and _less(threads, at, at - 1):
            for column in range(4):
                other = threads[at - 1, column]
                threads[at - 1, column] = threads[at, column]
                threads[at, column] = other
            at -= 1
    end = low
    for i in range(low, high):
        if end == low or _less(threads, end - 1, i):
            _copy(threads, i, end)
            end += 1
    return end


@kernel
def _place(
    program: ProgramArrays,
    caps: IntArray,
    arena: IntArray,
    slots: IntArray,
    threads: IntArray,
    n_threads: int,
    first: int,
    used: int,
) -> int:
    """Give the threads permanent rows for those pushed since `first`; returns where these end.

    While the pushed rows are still needed, the new rows stand behind them: row r is at r + ahead.
    """
    _mark(arena, threads, n_threads, first, used)
    end, ahead = first, used - first
    for row in range(first, used):
        if arena[row, A_CANONICAL] == NEEDED:
            # What a row stands on has a smaller number, and its place is already known.
            a, b = long(arena[row, A_A]), long(arena[row, A_B])
            if arena[row, A_STATE] == EITHER:
                a = long(arena[a, A_CANONICAL]) if a >= first else a
                b = long(arena[b, A_CANONICAL]) if b >= first else b
                place, end = _enter_either(arena, slots, first, ahead, end, row, a, b)
            else:
                parent = long(arena[row, A_PARENT])
                parent = long(arena[parent, A_CANONICAL]) if parent >= first else parent
                place, end = _enter(arena, slots, first, ahead, end, row, a, b, parent)
            end = _enter_canonical(program, caps, arena, slots, first, ahead, end, place)
            arena[row, A_CANONICAL] = place
    for i in range(n_threads):
        if threads[i, T_STACK] >= first:
            threads[i, T_STACK] = arena[threads[i, T_STACK], A_CANONICAL]
    for row in range(first, end):
        for column in range(A_CANONICAL + 1):
            arena[row, column] = arena[row + ahead, column]
    return end


@inlined
def _mark(arena: IntArray, threads: IntArray, n_threads: int, first: int, used: int) -> None:
    """Note which of the pushed rows the threads stand on."""
    for row in range(first, used):
        arena[row, A_CANONICAL] = 0
    for i in range(n_threads):
        if threads[i, T_STACK] >= first:
            arena[threads[i, T_STACK], A_CANONICAL] = NEEDED
    for row in range(used - 1, first - 1, -1):
        if arena[row, A_CANONICAL] == NEEDED:
            if arena[row, A_STATE] == EITHER:
                for column in (A_A, A_B):
                    if arena[row, column] >= first:
                        arena[arena[row, column], A_CANONICAL] = NEEDED
            elif arena[row, A_PARENT] >= first:
                arena[arena[row, A_PARENT], A_CANONICAL] = NEEDED


@inlined
def _slot(arena: IntArray, slots: IntArray, ahead: int, first: int, at: int) -> int:
    """The slot of the row like arena[at], or the free one where it belongs.

    Rows from `first` on are still `ahead` places behind their number.
    """
    state, a = long(arena[at, A_STATE]), long(arena[at, A_A])
    b, parent = long(arena[at, A_B]), long(arena[at, A_PARENT])
    mixed = ((state * 0x9E3779B1 + a) * 0x85EBCA6B + b) * 0xC2B2AE35 + parent
    mixed = (mixed * 0x9E3779B1) ^ (mixed >> 23)
    slot = mixed & (len(slots) - 1)
    while slots[slot] >= 0:
        row = long(slots[slot])
        row = row + ahead if row >= first else row
        if (
            arena[row, A_STATE] == state
            and arena[row, A_A] == a
            and arena[row, A_B] == b
            and arena[row, A_PARENT] == parent
        ):
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@inlined
def _enter(
    arena: IntArray,
    slots: IntArray,
    first: int,
    ahead: int,
    end: int,
    like: int,
    a: int,
    b: int,
    parent: int,
) -> tuple[int, int]:
    """(number, end): the permanent row like row `like`, but for its registers and its parent."""
    new = end + ahead
    for column in range(A_CANONICAL):
        arena[new, column] = arena[like, column]
    arena[new, A_A] = a
    arena[new, A_B] = b
    arena[new, A_PARENT] = parent
    slot = _slot(arena, slots, ahead, first, new)
    if slots[slot] >= 0:
        return long(slots[slot]), end
    slots[slot] = end
    arena[new, A_CANONICAL] = end
    return end, end + 1


@inlined
def _enter_either(
    arena: IntArray,
    slots: IntArray,
    first: int,
    ahead: int,
    end: int,
    like: int,
    one: int,
    other: int,
) -> tuple[int, int]:
    """(number, end): the permanent row that stands for two others."""
    if one == other:
        return one, end
    low, high = min(one, other), max(one, other)
    return _enter(arena, slots, first, ahead, end, like, low, high, long(0))


@inlined
def _enter_canonical(
    program: ProgramArrays,
    caps: IntArray,
    arena: IntArray,
    slots: IntArray,
    first: int,
    ahead: int,
    end: int,
    number: int,
) -> int:
    """Find the canonical row of a permanent one that has just been entered; returns the end."""
    at = number + ahead if number >= first else number
    a, b, parent = long(arena[at, A_A]), long(arena[at, A_B]), long(arena[at, A_PARENT])
    if arena[at, A_STATE] == EITHER:
        one, other = _canonical(arena, first, ahead, a), _canonical(arena, first, ahead, b)
        place, end = _enter_either(arena, slots, first, ahead, end, at, one, other)
    else:
        b = _cut(program, caps, long(arena[at, A_STATE]), b)
        parent = _canonical(arena, first, ahead, parent)
        place, end = _enter(arena, slots, first, ahead, end, at, a, b, parent)
    arena[at, A_CANONICAL] = place
    return end


@inlined
def _canonical(arena: IntArray, first: int, ahead: int, row: int) -> int:
    """The canonical row of a permanent one."""
    return long(arena[row + ahead if row >= first else row, A_CANONICAL])
