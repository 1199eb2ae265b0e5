"""Kernels that know where in nested scopes a byte belongs; see `structgen.tokens.scopes`.

Arguments are those of `structgen.automata.kernels` and `structgen.tokens.walks`. A *path* is what
the arena's column SCOPES holds: a leading 1, then a bit for each open scope from the outside in,
which is 1 inside one of its parts.
"""

from __future__ import annotations

import numpy as np

from structgen.automata.frames import CHAIN, FLAGS, LABEL, OPENS, ROW, IntArray
from structgen.automata.kernels import (
    FULL,
    NO_SCOPES,
    T_A,
    T_B,
    T_STACK,
    T_STATE,
    UNREACHABLE,
    Bytes,
    Plan,
    advance_threads,
    fewest_tokens,
    first_label,
    kernel,
    long,
    own_scopes,
    step,
)
from structgen.automata.program import FINAL_STATE, ProgramArrays
from structgen.tokens.trie import BYTE, TOKEN
from structgen.tokens.trie import END as NODE_END

PART, OTHER = 1, 2
"""Who can read a byte: threads inside the part of a scope, and all others."""


@kernel
def scoped_step(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    low: int,
    high: int,
    byte: int,
) -> tuple[int, int, int, int, int]:
    """Step threads[low:high] over one byte to threads[high:top].

    Returns (top, used, path of the thread that read the byte, whether the byte opens a scope,
    deepest path of the new threads). top == high where the byte is not legal, FULL where space
    does not suffice.
    """
    path, opens = NO_SCOPES, 0
    for i in range(low, high):
        state = long(threads[i, T_STATE])
        after, _, _ = step(program, state, long(threads[i, T_A]), long(threads[i, T_B]), byte)
        if after < 0:
            continue
        # A declared key and a free one may begin alike: as long as it may be a free one, it is.
        own = own_scopes(program, arena, state, long(threads[i, T_STACK]))
        if own >= path:
            path = own
            opens = 1 if program[0][state, FLAGS] & OPENS else 0
    top, used, _ = advance_threads(program, plan, arena, used, threads, low, high, byte)
    if top == FULL:
        return FULL, used, path, opens, NO_SCOPES
    return top, used, path, opens, deepest_path(program, arena, threads, high, top)


@kernel
def steps_along(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    low: int,
    high: int,
    data: Bytes,
    ends: IntArray,
) -> int:
    """Step threads[low:high] over every byte of `data`, one place behind the other.

    Writes to `ends`, int32[len(data)], where the threads of each place end. Returns the number of
    bytes that were read, or FULL.
    """
    for at in range(len(data)):
        top, used, _ = advance_threads(
            program, plan, arena, used, threads, low, high, long(data[at])
        )
        if top == FULL:
            return FULL
        if top == high:
            return at
        low, high = high, top
        ends[at] = top
    return len(data)


@kernel
def deepest_path(
    program: ProgramArrays, arena: IntArray, threads: IntArray, low: int, high: int
) -> int:
    """The longest path of those of threads[low:high] that go on; of equal ones, inside a part."""
    deepest = NO_SCOPES
    for i in range(low, high):
        state, stack = long(threads[i, T_STATE]), long(threads[i, T_STACK])
        if _goes_on(program, state, long(threads[i, T_A]), long(threads[i, T_B])):
            deepest = max(deepest, own_scopes(program, arena, state, stack))
    return deepest


@kernel
def _goes_on(program: ProgramArrays, state: int, a: int, b: int) -> bool:
    """Whether a thread has a byte edge, apart from calls and returns."""
    states, starts = program[0], program[5]
    if states[state, FLAGS] & LABEL:
        return b - a > 1 or starts[a] + states[state, ROW] < starts[a + 1]
    return states[state, CHAIN] >= 0 or states[state, ROW] >= 0


@kernel
def part_threads(
    program: ProgramArrays, arena: IntArray, threads: IntArray, low: int, high: int, depth: int
) -> int:
    """Copy those of threads[low:high] that are in a part of scope `depth` behind `high`.

    `depth` counts from 1, the outermost. Returns the end of the copies, or FULL.
    """
    top = high
    for i in range(low, high):
        state, stack = long(threads[i, T_STATE]), long(threads[i, T_STACK])
        if _in_part(own_scopes(program, arena, state, stack), depth):
            if top >= len(threads):
                return FULL
            for column in range(4):
                threads[top, column] = threads[i, column]
            top += 1
    return top


@kernel
def _in_part(path: int, depth: int) -> bool:
    """Whether a path is inside a part of its scope number `depth`."""
    bits = 0
    while path >> (bits + 1) > 0:
        bits += 1
    return bits >= depth and (path >> (bits - depth)) & 1 == 1


@kernel
def _next_bytes(program: ProgramArrays, state: int, a: int, b: int, who: int, out: Bytes) -> None:
    """Note `who` in `out` at the bytes by which the labels [a, b) go on."""
    blob, starts = program[4], program[5]
    depth = long(program[0][state, ROW])
    while a < b:
        at = starts[a] + depth
        if at >= starts[a + 1]:
            a += 1
            continue
        out[blob[at]] |= who
        a = first_label(blob, starts, a, b, depth, long(blob[at]) + 1)


@kernel
def readable(
    program: ProgramArrays,
    arena: IntArray,
    threads: IntArray,
    low: int,
    high: int,
    depth: int,
    out: Bytes,
) -> bool:
    """Write who can read each byte to `out`, uint8[256]; returns whether the value may end."""
    ends = False
    out[:] = 0
    for i in range(low, high):
        state, stack = long(threads[i, T_STATE]), long(threads[i, T_STACK])
        if state == FINAL_STATE:
            ends = True
        if program[0][state, CHAIN] < 0 and program[0][state, ROW] < 0:
            continue
        who = PART if _in_part(own_scopes(program, arena, state, stack), depth) else OTHER
        if program[0][state, FLAGS] & LABEL:
            _next_bytes(program, state, long(threads[i, T_A]), long(threads[i, T_B]), who, out)
            continue
        for byte in range(256):
            after, _, _ = step(program, state, long(threads[i, T_A]), long(threads[i, T_B]), byte)
            if after >= 0:
                out[byte] |= who
    return ends


@kernel
def cheapest_step(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    used: int,
    threads: IntArray,
    low: int,
    high: int,
    allowed: Bytes,
    trie: IntArray,
    first: IntArray,
) -> int:
    """Fewest tokens to the end whose first one is a single byte of `allowed`, uint8[256]."""
    best = UNREACHABLE
    for byte in range(256):
        if not allowed[byte] or first[byte] < 0 or trie[first[byte], TOKEN] < 0:
            continue
        top, _, _ = advance_threads(program, plan, arena, used, threads, low, high, long(byte))
        if top == FULL:
            return FULL
        if top > high:
            needed = fewest_tokens(program, plan, arena, threads, high, top)
            best = min(best, needed + 1)
    return best


@kernel
def needed_outside(
    program: ProgramArrays,
    plan: Plan,
    arena: IntArray,
    threads: IntArray,
    low: int,
    high: int,
    depth: int,
) -> int:
    """Tokens that suffice to finish from those threads that are not in a part of scope `depth`."""
    best = UNREACHABLE
    for i in range(low, high):
        state, stack = long(threads[i, T_STATE]), long(threads[i, T_STACK])
        if not _in_part(own_scopes(program, arena, state, stack), depth):
            best = min(best, fewest_tokens(program, plan, arena, threads, i, i + 1))
    return best


@kernel
def _forbid(mask: IntArray, trie: IntArray, same_bytes: IntArray, begin: int, end: int) -> None:
    for node in range(begin, end):
        token = long(trie[node, TOKEN])
        while token >= 0:
            mask[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
            token = long(same_bytes[token])


@kernel
def _node_of(trie: IntArray, blob: Bytes, begin: int, end: int) -> int:
    """The trie node that spells blob[begin:end], or -1."""
    node = 0
    for at in range(begin, end):
        child, last = node + 1, trie[node, NODE_END]
        while child < last and trie[child, BYTE] < blob[at]:
            child = trie[child, NODE_END]
        if child >= last or trie[child, BYTE] != blob[at]:
            return -1
        node = child
    return long(node)


@kernel
def forbid_prefixes(
    trie: IntArray, same_bytes: IntArray, blob: Bytes, ends: IntArray, mask: IntArray
) -> None:
    """Clear in `mask` every token that begins with one of several texts.

    blob: uint8[...], the texts one after another; ends: int32[n], where each ends.
    """
    begin = 0
    for end in ends:
        node = _node_of(trie, blob, begin, long(end))
        begin = long(end)
        if node >= 0:
            _forbid(mask, trie, same_bytes, node, long(trie[node, NODE_END]))


@kernel
def forbid_ends(
    trie: IntArray, same_bytes: IntArray, text: Bytes, goes_on: Bytes, mask: IntArray
) -> None:
    """Clear every token that begins with `text` and a byte that is not in `goes_on`, uint8[256]."""
    node = _node_of(trie, text, 0, len(text))
    if node < 0:
        return
    child, last = node + 1, trie[node, NODE_END]
    while child < last:
        if not goes_on[trie[child, BYTE]]:
            _forbid(mask, trie, same_bytes, long(child), long(trie[child, NODE_END]))
        child = trie[child, NODE_END]


@kernel
def tokens_along(trie: IntArray, text: Bytes, out: IntArray) -> int:
    """Write to `out` the tokens that are beginnings of `text`, shortest first; how many."""
    node, count = 0, 0
    for byte in text:
        child, last = node + 1, trie[node, NODE_END]
        while child < last and trie[child, BYTE] < byte:
            child = trie[child, NODE_END]
        if child >= last or trie[child, BYTE] != byte:
            break
        node = child
        if trie[node, TOKEN] >= 0:
            out[count] = trie[node, TOKEN]
            count += 1
    return count
