"""The hot loops, on plain arrays, compiled by numba. Their slow twins are in the tests.

A *thread* is one way to have read the bytes so far: int32 (state, a, b, stack), where (a, b) are
the registers of the call in progress and `stack` is a row of the arena. Rows 0 and 1 of the arena
are the end of the whole value and the bottom of a frame that is walked on its own. Arena rows are
int32 (state to return to, a, b, parent, tokens to finish, depth, scopes, canonical row); the last
column is that of permanent rows only, see `structgen.tokens.stacks`. Threads that differ only in
their stacks are merged: a row with the state EITHER stands for both stacks a and b. So ambiguous
recursion costs as many threads as there are frame states, not as there are readings (a
graph-structured stack, Tomita 1985).

`scopes` says which open arrays and objects have parts that must differ: behind a leading 1 a bit
for each of them from the outside in, 1 where the stack is inside such a part.

Threads are always *closed*: together with a thread stand those that its calls start and its
returns continue. A step then only has to look at byte edges.

Arguments that recur:
    program: (states, table, classes, calls, blob, starts) of `structgen.automata.program`.
    plan: (cost, label_cost, limits) of `structgen.tokens.distances`: cost int32[S, 4], or
        int32[0, 4] where neither budget nor nesting is watched; label_cost int32[bytes of all
        labels], at each byte the tokens to the end of any label that agrees with the one it is in
        so far and does not stand before it; limits int32[2], the greatest nesting and the
        characters that one token can hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import (
    ACCEPT,
    CALL_FROM,
    CALL_TO,
    CALLS,
    CHAIN,
    CHARS,
    CLASSES,
    COUNT,
    DIFFERS,
    END,
    EXTRA,
    FLAG_BITS,
    FLAGS,
    LABEL,
    LOOP,
    ROOM,
    ROW,
    SCOPE,
    TAIL,
    IntArray,
)
from structgen.automata.program import (
    CALL_FLAGS,
    CALLEE,
    FINAL_STATE,
    REG_A,
    REG_B,
    RETURN,
    RETURN_STATE,
    ProgramArrays,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

    long = int

    def kernel(function: F) -> F: ...
    def inlined(function: F) -> F: ...

else:
    from numba import njit

    long = np.int64
    """Arguments of inlined kernels are cast to it: numba compiles a copy for each type it meets."""

    # Without reference counting (_nrt=False): the kernels allocate nothing, and counting the
    # arrays they hand to each other took three quarters of a walk's time.
    kernel = njit(nogil=True, cache=True, error_model="numpy", _nrt=False)
    inlined = njit(nogil=True, cache=True, error_model="numpy", forceinline=True, _nrt=False)

Plan: TypeAlias = tuple[IntArray, IntArray, IntArray]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Longs: TypeAlias = npt.NDArray[np.int64]

END_OF_VALUE = 0
BOTTOM = 1
EITHER = -1
"""In place of a state to return to: the row stands for the two stacks in its registers."""
UNREACHABLE = 2**28
FULL = -1
"""Returned where the scratch space for threads or the arena does not suffice."""

# Columns of the arena, of a thread and of `cost`.
A_STATE, A_A, A_B, A_PARENT, A_TOKENS, A_DEPTH, A_SCOPES, A_CANONICAL = range(8)
NO_SCOPES = 1
MOST_SCOPES = 28
"""Nested scopes; their bits fit an int32."""
T_STATE, T_A, T_B, T_STACK = range(4)
FLAG_MASK = (1 << FLAG_BITS) - 1
SPECIAL = ACCEPT | CALLS | LABEL


@inlined
def _label_at(blob: Bytes, starts: Longs, label: int, depth: int) -> int:
    """Byte `depth` of a label, -1 behind its end."""
    at = starts[label] + depth
    if at >= starts[label + 1]:
        return -1
    return long(blob[at])


@inlined
def first_label(blob: Bytes, starts: Longs, low: int, high: int, depth: int, byte: int) -> int:
    """The first label of [low, high) whose byte at `depth` is at least `byte`, or `high`.

    They agree before it. It is looked for close to `low` first.
    """
    if low == high or _label_at(blob, starts, low, depth) >= byte:
        return low
    width = 1
    while low + width < high and _label_at(blob, starts, low + width, depth) < byte:
        low += width
        width *= 2
    high = min(low + width, high)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if _label_at(blob, starts, middle, depth) < byte:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _narrow(
    blob: Bytes, starts: Longs, low: int, high: int, depth: int, byte: int
) -> tuple[int, int]:
    """The labels of [low, high) whose byte at `depth` is `byte`; they agree before it."""
    begin = first_label(blob, starts, low, high, depth, byte)
    if begin == high or _label_at(blob, starts, begin, depth) != byte:
        return begin, begin
    return begin, first_label(blob, starts, begin, high, depth, byte + 1)


@inlined
def step(program: ProgramArrays, state: int, a: int, b: int, byte: int) -> tuple[int, int, int]:
    """(state, a, b) after one byte; state is -1 where the byte is not legal."""
    states, table, classes, _, blob, starts = program
    chain = states[state, CHAIN]
    if chain >= 0:
        if chain == byte:
            return state + 1, a, b
        return -1, a, b
    row = states[state, ROW]
    if row < 0:
        return -1, a, b
    if states[state, FLAGS] & LABEL:
        low, high = _narrow(blob, starts, a, b, long(row), byte)
        if low == high:
            return -1, a, b
        return state + 1, low, high
    entry = table[row + classes[states[state, CLASSES] + byte]]
    if entry < 0:
        return -1, a, b
    flags = entry & FLAG_MASK
    if flags:
        units = 1 + long(flags // EXTRA)
        if (flags & ROOM and b < units) or (flags & END and a > 0):
            return -1, a, b
        if flags & COUNT:
            a = max(a - 1, 0)
            if b != NO_LIMIT:
                b -= units
    return long(entry >> FLAG_BITS), a, b


@inlined
def state_cost(program: ProgramArrays, plan: Plan, state: int, a: int) -> int:
    """Tokens that suffice to return from a state whose first register is `a`."""
    states, starts = program[0], program[5]
    cost, label_cost, limits = plan
    if states[state, FLAGS] & LABEL:
        depth = states[state, ROW]
        at = starts[a] + depth
        return long(label_cost[at]) if at < starts[a + 1] else long(0)
    if a == 0:
        return long(cost[state, 0])
    tokens = long(cost[state, 1])
    if a > 1 and tokens < UNREACHABLE:
        loop = states[state, LOOP]
        each = cost[loop, 1] - cost[loop, 0]
        share = limits[1] if states[state, FLAGS] & CHARS else 1
        if state != loop:
            # A unit may be under way here, and then no token takes it together with the next ones.
            tokens += each
            a -= 1
        tokens += (a - 1) * each // share
    return min(tokens, UNREACHABLE)


@inlined
def fits(
    program: ProgramArrays, plan: Plan, arena: IntArray, state: int, a: int, stack: int
) -> bool:
    """Whether the frame can be left within the allowed nesting.

    Whether the vocabulary can write its way out is asked only where a token ends: in the middle of
    a token there may be no other way on.
    """
    cost, _, limits = plan
    if program[0][state, FLAGS] & LABEL:
        return arena[stack, A_DEPTH] <= limits[0]
    layer = 1 if a > 0 else 0
    return arena[stack, A_DEPTH] + cost[state, layer + 2] <= limits[0]


@inlined
def own_scopes(program: ProgramArrays, arena: IntArray, state: int, stack: int) -> int:
    """The open scopes of a thread; its own frame's parts are not begun, or have ended."""
    below = long(arena[stack, A_SCOPES])
    return below << 1 if program[0][state, FLAGS] & SCOPE else below


@inlined
def _scopes(program: ProgramArrays, arena: IntArray, state: int, stack: int) -> int:
    """The open scopes seen from above a frame that will go on in `state`."""
    flags = program[0][state, FLAGS]
    below = long(arena[stack, A_SCOPES])
    if not flags & SCOPE:
        return below
    return below << 1 | (1 if flags & DIFFERS else 0)


@inlined
def _push(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    state: int,
    a: int,
    b: int,
    stack: int,
) -> int:
    """Add an arena row that returns to (state, a, b) above `stack`; its index, or FULL."""
    if used >= len(arena):
        return FULL
    arena[used, A_STATE] = state
    arena[used, A_A] = a
    arena[used, A_B] = b
    arena[used, A_PARENT] = stack
    arena[used, A_DEPTH] = arena[stack, A_DEPTH] + 1
    arena[used, A_SCOPES] = _scopes(program, arena, state, stack)
    arena[used, A_TOKENS] = 0
    if len(plan[0]):
        tokens = state_cost(program, plan, state, a)
        arena[used, A_TOKENS] = min(tokens + arena[stack, A_TOKENS], UNREACHABLE)
    return used


@inlined
def _either(arena: IntArray, used: int, one: int, other: int) -> int:
    """Add an arena row that stands for two stacks; its index, or FULL."""
    if used >= len(arena):
        return FULL
    arena[used, A_STATE] = EITHER
    arena[used, A_A] = one
    arena[used, A_B] = other
    arena[used, A_PARENT] = END_OF_VALUE
    arena[used, A_TOKENS] = min(arena[one, A_TOKENS], arena[other, A_TOKENS])
    arena[used, A_DEPTH] = max(arena[one, A_DEPTH], arena[other, A_DEPTH])
    arena[used, A_SCOPES] = max(arena[one, A_SCOPES], arena[other, A_SCOPES])
    return used


@inlined
def _add(
    arena: IntArray,
    used: int,
    threads: IntArray,
    begin: int,
    open_from: int,
    top: int,
    state: int,
    a: int,
    b: int,
    stack: int,
) -> tuple[int, int]:
    """Append a thread to those since `begin`, or merge it with one that differs in the stack.

    Threads before `open_from` have made their calls and returns and are left as they are.
    Returns (top, used); top is FULL where space does not suffice.
    """
    for i in range(begin, top):
        if threads[i, T_STATE] != state or threads[i, T_A] != a or threads[i, T_B] != b:
            continue
        if threads[i, T_STACK] == stack:
            return top, used
        if i >= open_from and state != RETURN_STATE:
            both = _either(arena, used, long(threads[i, T_STACK]), stack)
            if both == FULL:
                return FULL, used
            threads[i, T_STACK] = both
            return top, used + 1
    if top >= len(threads):
        return FULL, used
    threads[top, T_STATE] = state
    threads[top, T_A] = a
    threads[top, T_B] = b
    threads[top, T_STACK] = stack
    return top + 1, used


@inlined
def _return(
    arena: IntArray, used: int, threads: IntArray, begin: int, todo: int, top: int, stack: int
) -> tuple[int, int]:
    """Add what goes on when the frame above `stack` returns: (top, used) as of `_add`."""
    if stack == END_OF_VALUE:
        state, a, b, parent = long(FINAL_STATE), long(0), long(0), long(END_OF_VALUE)
    elif arena[stack, A_STATE] == EITHER:
        state, a, b, parent = long(RETURN_STATE), long(0), long(0), long(arena[stack, A_A])
        top, used = _add(arena, used, threads, begin, todo, top, state, a, b, parent)
        if top == FULL:
            return top, used
        parent = long(arena[stack, A_B])
    else:
        state, a, b = (
            long(arena[stack, A_STATE]),
            long(arena[stack, A_A]),
            long(arena[stack, A_B]),
        )
        parent = long(arena[stack, A_PARENT])
    return _add(arena, used, threads, begin, todo, top, state, a, b, parent)


@inlined
def close(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    begin: int,
    todo: int,
    top: int,
) -> tuple[int, int, int]:
    """Add to threads[todo:top] all that they call and return to.

    Returns (top, used, exits): `exits` counts returns from the frame at the bottom, which add no
    thread. top is FULL where space does not suffice.
    """
    states, _, _, calls, blob, starts = program
    exits = 0
    while todo < top:
        state, a, b = (
            long(threads[todo, T_STATE]),
            long(threads[todo, T_A]),
            long(threads[todo, T_B]),
        )
        stack = long(threads[todo, T_STACK])
        todo += 1
        flags = states[state, FLAGS]
        if not flags & SPECIAL:
            continue
        returns = flags & ACCEPT != 0
        if flags & LABEL:
            returns = _label_at(blob, starts, a, long(states[state, ROW])) < 0
        if returns:
            if stack == BOTTOM:
                exits += 1
            else:
                top, used = _return(arena, used, threads, begin, todo, top, stack)
                if top == FULL:
                    return top, used, exits
        for call in range(states[state, CALL_FROM], states[state, CALL_TO]):
            rules = calls[call, CALL_FLAGS]
            if rules & ROOM and b == 0:
                continue
            after_a, after_b = a, b
            if rules & COUNT:
                after_a = max(a - 1, 0)
                if b != NO_LIMIT:
                    after_b = b - 1
            back = long(calls[call, RETURN])
            inner, floor = stack, used
            if not states[back, FLAGS] & TAIL:
                inner = _push(program, plan, arena, used, back, after_a, after_b, stack)
                if inner == FULL:
                    return FULL, used, exits
                floor = used + 1
            callee, reg_a = long(calls[call, CALLEE]), long(calls[call, REG_A])
            reg_b = long(calls[call, REG_B])
            if len(plan[0]) and not (
                fits(program, plan, arena, callee, reg_a, inner)
                and fits(program, plan, arena, back, after_a, stack)
            ):
                continue
            used = floor
            top, used = _add(arena, used, threads, begin, todo, top, callee, reg_a, reg_b, inner)
            if top == FULL:
                return top, used, exits
    return top, used, exits


@inlined
def advance_threads(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    low: int,
    high: int,
    byte: int,
) -> tuple[int, int, int]:
    """Step threads[low:high] over one byte, closed, to threads[high:top].

    Returns (top, used, exits) as `close` does.
    """
    states = program[0]
    top = high
    special = False
    for i in range(low, high):
        before = long(threads[i, T_STATE])
        state, a, b = step(program, before, long(threads[i, T_A]), long(threads[i, T_B]), byte)
        if state < 0:
            continue
        stack = long(threads[i, T_STACK])
        if len(plan[0]) and not fits(program, plan, arena, state, a, stack):
            continue
        if states[state, FLAGS] & SPECIAL:
            special = True
        top, used = _add(arena, used, threads, high, high, top, state, a, b, stack)
        if top == FULL:
            return FULL, used, 0
    if special:
        return close(program, plan, arena, used, threads, high, high, top)
    return top, used, 0


@inlined
def advance_label(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    at: int,
    high: int,
    begin: int,
    end: int,
) -> tuple[int, int]:
    """Step the thread threads[at], closed, to the labels [begin, end) and to threads[high:top].

    It is the last thread, and in a label; (top, used) as of `close`.
    """
    if high >= len(threads):
        return FULL, used
    state, stack = long(threads[at, T_STATE]) + 1, long(threads[at, T_STACK])
    threads[high, T_STATE] = state
    threads[high, T_A] = begin
    threads[high, T_B] = end
    threads[high, T_STACK] = stack
    if len(plan[0]) and not fits(program, plan, arena, state, begin, stack):
        return high, used
    if _label_at(program[4], program[5], begin, long(program[0][state, ROW])) >= 0:
        return high + 1, used
    top, used, _ = close(program, plan, arena, used, threads, high, high, high + 1)
    return top, used


@inlined
def fewest_tokens(
    program: ProgramArrays, plan: Plan, arena: IntArray, threads: IntArray, low: int, high: int
) -> int:
    """Tokens that suffice to finish from the best of threads[low:high]."""
    best = UNREACHABLE
    for i in range(low, high):
        state = long(threads[i, T_STATE])
        if program[0][state, CHAIN] < 0 and program[0][state, ROW] < 0 and state != FINAL_STATE:
            continue  # its calls and returns have threads of their own
        tokens = state_cost(program, plan, state, long(threads[i, T_A]))
        best = min(best, tokens + arena[threads[i, T_STACK], A_TOKENS])
    return best


@kernel
def read_bytes(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    n_threads: int,
    data: Bytes,
) -> tuple[int, int, int]:
    """Step threads[:n_threads] over `data`. Returns (low, high, used): the threads that are left.

    low == high where `data` is not legal; high is FULL where space does not suffice.
    """
    low, high = long(0), n_threads
    for i in range(len(data)):
        top, used, _ = advance_threads(
            program, plan, arena, used, threads, low, high, long(data[i])
        )
        if top == FULL:
            return 0, FULL, used
        low, high = high, top
        if low == high:
            break
    if low < high and fewest_tokens(program, plan, arena, threads, low, high) >= UNREACHABLE:
        return high, high, used  # the vocabulary cannot finish what these threads began
    return low, high, used


@inlined
def _only_byte(program: ProgramArrays, threads: IntArray, low: int, high: int) -> int:
    """The one byte that every thread must read next, or -1."""
    states = program[0]
    only = -1
    for i in range(low, high):
        state, a, b = long(threads[i, T_STATE]), long(threads[i, T_A]), long(threads[i, T_B])
        if state == FINAL_STATE:
            return -1
        chain = states[state, CHAIN]
        if chain >= 0:
            if only >= 0 and chain != only:
                return -1
            only = chain
        elif states[state, ROW] >= 0:
            for byte in range(256):
                after, _, _ = step(program, state, a, b, byte)
                if after >= 0:
                    if only >= 0 and byte != only:
                        return -1
                    only = byte
    return only


@kernel
def forced_bytes(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    n_threads: int,
    out: Bytes,
) -> int:
    """Write to `out` the bytes that must come next; returns how many, or FULL."""
    low, high = long(0), n_threads
    count = 0
    while count < len(out):
        byte = _only_byte(program, threads, low, high)
        if byte < 0:
            break
        top, used, _ = advance_threads(program, plan, arena, used, threads, low, high, byte)
        if top == FULL:
            return FULL
        # Only the newest threads are needed: move them to the front.
        for i in range(high, top):
            for column in range(4):
                threads[i - high, column] = threads[i, column]
        low, high = long(0), top - high
        if high == 0:
            break
        out[count] = byte
        count += 1
    return count
