"""Walks over a vocabulary's byte trie: which tokens can the threads of a state read?

The kernels run depth-first through the trie's rows and jump over the subtree of every refused
byte. Their slow twins are in the tests. Arguments are those of `structgen.automata.kernels`, and

    trie: int32[N, 4], see `structgen.tokens.trie`.
    same_bytes: int32[W], the next token id with the same bytes, or -1.
    repeated: uint8[N], for each row of the trie whether its token has such a next one.
    levels: scratch of a walk, int32[longest token + 3, 5]: at each depth the ends of threads and
        arena, the byte that was read last, the tokens then needed (-1 where not yet asked), and
        the first label that is not behind that byte (-1 before the first).
    mask: int32[n_words], 32 tokens a word; bits are set, never cleared.
"""

from __future__ import annotations

import numpy as np

from structgen.automata.calls import NO_LIMIT
from structgen.automata.frames import CHAIN, CLASSES, FLAGS, LABEL, ROW, IntArray
from structgen.automata.kernels import (
    BOTTOM,
    FULL,
    SPECIAL,
    T_A,
    T_B,
    T_STACK,
    T_STATE,
    UNREACHABLE,
    Bytes,
    Longs,
    Plan,
    advance_label,
    advance_threads,
    close,
    fewest_tokens,
    first_label,
    fits,
    inlined,
    kernel,
    long,
    state_cost,
)
from structgen.automata.program import ProgramArrays
from structgen.automata.records import Record
from structgen.tokens.layout import plan_of, program_of, space_of, vocabulary_of
from structgen.tokens.trie import BYTE, DEPTH, END, TOKEN

L_TOP, L_ARENA, L_BYTE, L_NEEDED, L_LABEL = range(5)
"""Columns of `levels`."""
MAX_UNITS = 0xFFFF
"""Units that one token can take at most, as profiles count them."""


@inlined
def _refused(program: ProgramArrays, threads: IntArray, low: int, high: int, byte: int) -> bool:
    """Whether none of threads[low:high] can read `byte`: cheap, and true for most trie nodes."""
    states, table, classes = program[0], program[1], program[2]
    for i in range(low, high):
        state = threads[i, T_STATE]
        chain = states[state, CHAIN]
        if chain >= 0:
            if chain == byte:
                return False
            continue
        row = states[state, ROW]
        if row >= 0 and (
            states[state, FLAGS] & LABEL or table[row + classes[states[state, CLASSES] + byte]] >= 0
        ):
            return False
    return True


@inlined
def _is_label(program: ProgramArrays, threads: IntArray, low: int, high: int) -> bool:
    """Whether one thread is all there is, and it is in a label."""
    return high == low + 1 and program[0][threads[low, T_STATE], FLAGS] & LABEL != 0


@inlined
def _next_label(
    program: ProgramArrays, threads: IntArray, at: int, byte: int, begin: int
) -> tuple[int, int]:
    """Of the labels of a thread from `begin` on, the interval of those that go on with `byte`.

    It is empty where there is none, and begins with the first label behind them. The labels before
    `begin` go on with smaller bytes.
    """
    blob, starts = program[4], program[5]
    depth = long(program[0][threads[at, T_STATE], ROW])
    last = long(threads[at, T_B])
    begin = first_label(blob, starts, begin, last, depth, byte)
    end = begin
    if begin < last and blob[starts[begin] + depth] == byte:
        end = first_label(blob, starts, begin, last, depth, byte + 1)
    return begin, end


@inlined
def _alike(
    program: ProgramArrays, threads: IntArray, low: int, high: int, one: int, other: int
) -> bool:
    """Whether two bytes surely lead threads[low:high] to the same place."""
    states, table, classes = program[0], program[1], program[2]
    for i in range(low, high):
        state = threads[i, T_STATE]
        chain = states[state, CHAIN]
        if chain >= 0:
            if chain in (one, other):
                return False
            continue
        row = states[state, ROW]
        if row < 0:
            continue
        if states[state, FLAGS] & LABEL:
            return False
        first = long(states[state, CLASSES])
        if table[row + classes[first + one]] != table[row + classes[first + other]]:
            return False
    return True


@inlined
def _allow(mask: IntArray, same_bytes: IntArray, token: int) -> None:
    while token >= 0:
        mask[token >> 5] |= np.int32(1) << np.int32(token & 31)
        token = long(same_bytes[token])


@inlined
def _list(
    out: IntArray, count: int, same_bytes: IntArray, repeated: Bytes, node: int, token: int
) -> int:
    """Append a node's token and those with the same bytes; counts on where `out` is full.

    Reading `same_bytes` all over memory took half the time of listing a thousand numbers.
    """
    while token >= 0:
        if count < len(out):
            out[count] = token
        count += 1
        token = long(same_bytes[token]) if repeated[node] else -1
    return count


@inlined
def _child(trie: IntArray, node: int, byte: int) -> int:
    """The child of a trie node over `byte`, or -1."""
    child, end = node + 1, long(trie[node, END])
    while child < end and trie[child, BYTE] < byte:
        child = long(trie[child, END])
    return child if child < end and trie[child, BYTE] == byte else -1


@inlined
def _along_chain(record: Record, most: int, threads: IntArray, count: int) -> tuple[int, int, int]:
    """Go down the trie while the only thread, threads[0], is within a chain, and list tokens.

    Most states are in the middle of a key, and need a third of the time that the general walk does.

    Returns (node, worst, count): the node from which the walk goes on with threads[0], which then
    has to be closed, or -1 where nothing more can be read.
    """
    program, plan = program_of(record), plan_of(record)
    trie, same_bytes, repeated, first, _, _ = vocabulary_of(record)
    arena, _, _, _, _, out = space_of(record)
    states = program[0]
    state, a = long(threads[0, T_STATE]), long(threads[0, T_A])
    stack = long(threads[0, T_STACK])
    worst, node = 0, long(first[states[state, CHAIN]])
    while node >= 0:
        state += 1
        threads[0, T_STATE] = state
        if len(plan[0]) and not fits(program, plan, arena, state, a, stack):
            return -1, worst, count
        if states[state, CHAIN] < 0 or states[state, FLAGS] & SPECIAL:
            break
        if trie[node, TOKEN] >= 0:
            needed = long(0)
            if len(plan[0]):
                needed = fewest_tokens(program, plan, arena, threads, long(0), long(1))
            if needed < UNREACHABLE and (most < 0 or needed <= most):
                worst = max(worst, needed)
                count = _list(out, count, same_bytes, repeated, node, long(trie[node, TOKEN]))
        node = _child(trie, node, long(states[state, CHAIN]))
    return node, worst, count


@kernel
def walk(
    record: Record,
    most: int,
    roots: IntArray,
    used: int,
    n_threads: int,
    state: int,
    a: int,
    b: int,
    stack: int,
    closed: bool,
    count: int,
) -> tuple[int, int, int]:
    """List every token that the threads can read, below each of the trie nodes `roots`.

    threads[:n_threads] stand where a root's bytes end; they are closed first unless they are
    `closed`. A root's own token is listed too (for the trie's root there is none).

    Siblings that every thread reads alike, such as digits, are stepped once: what the first one
    led to is still in the scratch space. That is six times faster where a number may stand.

    Args:
        record: of `structgen.tokens.layout`; the tokens are appended to listed[:count].
        state, a, b, stack: the thread, where it is the only one; else they are in `threads`.

    Returns (status, worst, count): status is FULL where space does not suffice, `worst` the most
    tokens that are needed after any allowed token (0 without a plan). A count above len(listed)
    says that `listed` is too short.
    """
    program, plan = program_of(record), plan_of(record)
    trie, same_bytes, repeated, first, _, _ = vocabulary_of(record)
    arena, threads, _, _, levels, out = space_of(record)
    if n_threads == 1:
        threads[0, T_STATE] = state
        threads[0, T_A] = a
        threads[0, T_B] = b
        threads[0, T_STACK] = stack
    worst = 0
    watched = len(plan[0]) > 0
    below = long(-1)  # where a chain has led to, in place of the only root
    if closed and n_threads == 1 and roots[0] == 0 and program[0][state, CHAIN] >= 0:
        below, worst, count = _along_chain(record, most, threads, count)
        if below < 0:
            return 0, worst, count
        closed = False
    if not closed:
        n_threads, used, _ = close(program, plan, arena, used, threads, long(0), long(0), n_threads)
        if n_threads == FULL:
            return FULL, 0, count
    levels[0, L_TOP] = n_threads
    levels[0, L_ARENA] = used
    at_roots = fewest_tokens(program, plan, arena, threads, long(0), n_threads) if watched else 0
    roots_fit = at_roots < UNREACHABLE and (most < 0 or at_roots <= most)
    for index in range(len(roots)):
        root = below if below >= 0 else long(roots[index])
        base = long(trie[root, DEPTH])
        if trie[root, TOKEN] >= 0 and roots_fit:
            worst = max(worst, at_roots)
            count = _list(out, count, same_bytes, repeated, root, long(trie[root, TOKEN]))
        levels[1, L_BYTE] = -1
        # The many children of the trie's root lie far apart: look only at those that can be read.
        for start in range(256 if root == 0 else 1):
            if root == 0:
                if first[start] < 0 or _refused(program, threads, long(0), n_threads, start):
                    continue
                node = long(first[start])
                end = long(trie[node, END])
            else:
                node = root + 1
                end = long(trie[root, END])
            while node < end:
                depth = long(trie[node, DEPTH]) - base
                byte = long(trie[node, BYTE])
                low = long(levels[depth - 2, L_TOP]) if depth > 1 else long(0)
                high = long(levels[depth - 1, L_TOP])
                last = long(levels[depth, L_BYTE])
                if _is_label(program, threads, low, high):
                    # The labels are sorted, and so are the bytes: go through both side by side.
                    begin = long(threads[low, T_A] if last < 0 else levels[depth, L_LABEL])
                    begin, behind = _next_label(program, threads, low, byte, begin)
                    levels[depth, L_BYTE] = byte
                    levels[depth, L_LABEL] = begin
                    if begin == behind:
                        node = long(trie[node, END])
                        continue
                    top, arena_top = advance_label(
                        program, plan, arena, long(levels[depth - 1, L_ARENA]), threads, low,
                        high, begin, behind,
                    )  # fmt: skip
                    if top == FULL:
                        return FULL, 0, count
                    levels[depth, L_TOP] = top
                    levels[depth, L_ARENA] = arena_top
                    levels[depth, L_NEEDED] = -1
                elif last < 0 or not _alike(program, threads, low, high, last, byte):
                    # Otherwise what the last byte led to is still there.
                    if _refused(program, threads, low, high, byte):
                        node = long(trie[node, END])
                        continue
                    top, arena_top, _ = advance_threads(
                        program, plan, arena, long(levels[depth - 1, L_ARENA]), threads, low, high,
                        byte,
                    )  # fmt: skip
                    if top == FULL:
                        return FULL, 0, count
                    levels[depth, L_TOP] = top
                    levels[depth, L_ARENA] = arena_top
                    levels[depth, L_BYTE] = byte
                    levels[depth, L_NEEDED] = -1
                top = long(levels[depth, L_TOP])
                if top == high:
                    node = long(trie[node, END])
                    continue
                token = long(trie[node, TOKEN])
                if token >= 0:
                    needed = long(levels[depth, L_NEEDED])
                    if watched and needed < 0:
                        needed = fewest_tokens(program, plan, arena, threads, high, top)
                        levels[depth, L_NEEDED] = needed
                    if not watched or (needed < UNREACHABLE and (most < 0 or needed <= most)):
                        worst = max(worst, needed)
                        count = _list(out, count, same_bytes, repeated, node, token)
                levels[depth + 1, L_BYTE] = -1
                node += 1
    return 0, worst, count


@kernel
def profile(
    program: ProgramArrays,
    no_plan: Plan,
    trie: IntArray,
    arena: IntArray,
    threads: IntArray,
    levels: IntArray,
    state: int,
    base: int,
    tokens: IntArray,
    codes: Longs,
    exits: IntArray,
) -> tuple[int, int]:
    """Walk the whole trie inside one frame without calls, from `state` with endless room.

    Writes to `tokens` the node tokens that stay inside, to `codes` the state they lead to and the
    units they take (`state - base << 16 | units`), and to `exits` (node, units) where the frame
    returns. Returns their numbers, or (FULL, FULL).
    """
    n_tokens, n_exits = 0, 0
    threads[0, T_STATE] = state
    threads[0, T_A] = 0
    threads[0, T_B] = NO_LIMIT - 1
    threads[0, T_STACK] = BOTTOM
    levels[0, 0] = 1
    node, end = 1, trie[0, END]
    while node < end:
        depth = long(trie[node, DEPTH])
        low = long(levels[depth - 2, 0]) if depth > 1 else long(0)
        high = long(levels[depth - 1, 0])
        top, _, left = advance_threads(
            program, no_plan, arena, long(2), threads, low, high, long(trie[node, BYTE])
        )
        if top == FULL:
            return FULL, FULL
        if left:
            exits[n_exits, 0] = node
            exits[n_exits, 1] = NO_LIMIT - 1 - threads[high, T_B]
            n_exits += 1
        if top == high:
            node = long(trie[node, END])
            continue
        levels[depth, 0] = top
        inside = threads[high, T_STATE]
        alive = program[0][inside, CHAIN] >= 0 or program[0][inside, ROW] >= 0
        if alive and trie[node, TOKEN] >= 0:
            units = NO_LIMIT - 1 - threads[high, T_B]
            tokens[n_tokens] = trie[node, TOKEN]
            codes[n_tokens] = (inside - base) << 16 | min(units, MAX_UNITS)
            n_tokens += 1
        node += 1
    return n_tokens, n_exits


@kernel
def fill_from_profile(
    program: ProgramArrays,
    plan: Plan,
    most: int,
    same_bytes: IntArray,
    tokens: IntArray,
    codes: Longs,
    base: int,
    need: int,
    room: int,
    mask: IntArray,
) -> int:
    """Set the tokens of a profile that fit `room` units and leave at most `most` tokens to do.

    Returns the most tokens that are needed after any of them, within the frame.
    """
    worst = 0
    watched = len(plan[0]) > 0
    for i in range(len(tokens)):
        units = long(codes[i]) & MAX_UNITS
        if units > room:
            continue
        if watched:
            after = state_cost(program, plan, base + long(codes[i] >> 16), max(need - units, 0))
            if after >= UNREACHABLE or (most >= 0 and after > most):
                continue
            worst = max(worst, after)
        _allow(mask, same_bytes, long(tokens[i]))
    return worst


@kernel
def find_node(trie: IntArray, data: Bytes) -> int:
    """The trie node that spells `data`, uint8[...], or -1."""
    node = 0
    for i in range(len(data)):
        child, end = node + 1, trie[node, END]
        while child < end and trie[child, BYTE] != data[i]:
            child = trie[child, END]
        if child >= end:
            return -1
        node = child
    return node
