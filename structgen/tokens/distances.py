"""How far every state is from returning: in tokens of a vocabulary, and in nesting.

The result is an upper bound that can always be kept: from every state with t tokens to go some
legal token leads to one with at most t - 1. It is the shortest path over single bytes, calls, and
tokens that lie within a run of forced bytes.
"""

from __future__ import annotations

from typing import TypeAlias

from structgen.automata.frames import (
    ACCEPT,
    CALL_FROM,
    CALL_TO,
    CHAIN,
    CLASSES,
    COUNT,
    END,
    FLAG_BITS,
    FLAGS,
    LABEL,
    LOOP,
    ROOM,
    ROW,
    SPARE,
    IntArray,
)
from structgen.automata.kernels import (
    FLAG_MASK,
    UNREACHABLE,
    Bytes,
    Longs,
    Plan,
    kernel,
    long,
    state_cost,
)
from structgen.automata.program import (
    CALL_FLAGS,
    CALLEE,
    FLOOR,
    REG_A,
    RETURN,
    ProgramArrays,
)
from structgen.tokens.trie import BYTE, TOKEN
from structgen.tokens.trie import END as NODE_END

READER, CHEAPEST = 0, 2
"""Columns of the notes, one for each layer: the greatest cost of a later state that reads this one,
and the least cost from this state on along its chain."""

Scratch: TypeAlias = tuple[IntArray, IntArray]
"""(groups int32[2, 256] of `_group_bytes`, notes int32[S, 4] of `_settle`)"""

Tries: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""(trie, first, second): the trie, the root's child over each byte and its grandchildren."""


@kernel
def child_of(trie: IntArray, node: int, byte: int) -> int:
    """The child of a trie node over `byte`, or -1."""
    child, end = node + 1, trie[node, NODE_END]
    while child < end:
        if trie[child, BYTE] == byte:
            return long(child)
        if trie[child, BYTE] > byte:
            return -1
        child = trie[child, NODE_END]
    return -1


@kernel
def second_children(trie: IntArray, first: IntArray, second: IntArray) -> None:
    """Fill in the root's grandchild over each pair of bytes: int32[256, 256], -1 before."""
    for byte in range(256):
        node = first[byte]
        if node < 0:
            continue
        child, end = node + 1, trie[node, NODE_END]
        while child < end:
            second[byte, trie[child, BYTE]] = child
            child = trie[child, NODE_END]


@kernel
def _along_chain(
    states: IntArray,
    cost: IntArray,
    trie: IntArray,
    first: IntArray,
    second: IntArray,
    byte: int,
    at: int,
    layer: int,
) -> tuple[int, int]:
    """Best (tokens, height) of a token that begins with `byte` and goes on along a chain."""
    best, height = UNREACHABLE, 0
    node = long(first[byte])
    short = True
    while node >= 0:
        if trie[node, TOKEN] >= 0 and cost[at, layer] + 1 < best:
            best, height = cost[at, layer] + 1, cost[at, layer + 2]
        chain = states[at, CHAIN]
        if chain < 0:
            break
        node = long(second[byte, chain]) if short else child_of(trie, long(node), long(chain))
        short = False
        at += 1
    return best, height


@kernel
def _group_bytes(classes: Bytes, offset: int, groups: IntArray) -> int:
    """List the bytes of each class of a frame in `groups`; returns how many classes there are.

    groups: int32[2, 256], the first byte of each class and the next one behind each byte, or -1.
    """
    n_classes = 0
    groups[0, :] = -1
    for byte in range(255, -1, -1):
        found = classes[offset + byte]
        groups[1, byte] = groups[0, found]
        groups[0, found] = byte
        n_classes = max(n_classes, long(found) + 1)
    return n_classes


@kernel
def _best_of_row(
    program: ProgramArrays,
    cost: IntArray,
    vocabulary: Tries,
    groups: IntArray,
    n_classes: int,
    state: int,
    layer: int,
) -> tuple[int, int]:
    states, table = program[0], program[1]
    trie, first, second = vocabulary
    best, height = UNREACHABLE, 0
    spare = states[state, FLAGS] & SPARE != 0  # there may be no room but for the shortest way
    row = long(states[state, ROW])
    useless = -1  # the last entry that cannot make it better; neighbours are often alike
    for index in range(n_classes):
        entry = long(table[row + index])
        if entry == useless:
            continue
        flags = entry & FLAG_MASK
        if entry < 0 or (flags & END and layer > 0) or (spare and flags & ROOM):
            continue
        after = 0 if flags & COUNT else layer
        to = entry >> FLAG_BITS
        if cost[to, after] + 1 >= best and states[to, CHAIN] < 0:
            useless = entry
            continue
        byte = long(groups[0, index])
        while byte >= 0:
            tokens, high = _along_chain(states, cost, trie, first, second, byte, to, after)
            if tokens < best:
                best, height = tokens, high
            # Bytes of one class lead to the same state; without a chain behind, one is enough.
            byte = long(groups[1, byte])
            if tokens < UNREACHABLE and states[to, CHAIN] < 0:
                byte = -1
    return best, height


@kernel
def _best_of_calls(program: ProgramArrays, plan: Plan, state: int, layer: int) -> tuple[int, int]:
    states, calls, cost = program[0], program[3], plan[0]
    best, height = UNREACHABLE, 0
    for call in range(states[state, CALL_FROM], states[state, CALL_TO]):
        rules = calls[call, CALL_FLAGS]
        after = 0 if rules & COUNT else layer
        callee, a = long(calls[call, CALLEE]), long(calls[call, REG_A])
        inner = max(state_cost(program, plan, callee, a), long(calls[call, FLOOR]))
        high = 0
        if not states[callee, FLAGS] & LABEL:
            high = cost[callee, 3 if a > 0 else 2]
        tokens = inner + cost[calls[call, RETURN], after]
        if tokens < best:
            best = tokens
            height = max(high + 1, cost[calls[call, RETURN], after + 2])
    return best, height


@kernel
def _relax(
    program: ProgramArrays,
    plan: Plan,
    vocabulary: Tries,
    groups: IntArray,
    n_classes: int,
    state: int,
    layer: int,
) -> bool:
    """Improve the cost of one state from its neighbours'; whether it changed."""
    states, cost = program[0], plan[0]
    trie, first, second = vocabulary
    best = cost[state, layer]
    if states[state, FLAGS] & LABEL or best == 0:
        return False
    if state == 0 or (states[state, FLAGS] & ACCEPT and layer == 0):
        cost[state, layer] = 0
        return True
    tokens, high = UNREACHABLE, 0
    chain = states[state, CHAIN]
    if chain >= 0:
        tokens, high = _along_chain(
            states, cost, trie, first, second, long(chain), state + 1, layer
        )
    elif states[state, ROW] >= 0 and best > 1:
        tokens, high = _best_of_row(program, cost, vocabulary, groups, n_classes, state, layer)
    if states[state, CALL_TO] > states[state, CALL_FROM]:
        called, called_high = _best_of_calls(program, plan, state, layer)
        if called < tokens:
            tokens, high = called, called_high
    if tokens >= best:
        return False
    cost[state, layer], cost[state, layer + 2] = tokens, high
    return True


@kernel
def _note_reader(
    program: ProgramArrays, cost: IntArray, notes: IntArray, state: int, n: int
) -> None:
    """Note `state` at the earlier states that it reads, which were not looked at yet."""
    states, table, calls = program[0], program[1], program[3]
    layers = 2 if states[state, LOOP] >= 0 else 1
    if states[state, ROW] >= 0 and states[state, FLAGS] & LABEL == 0:
        row = long(states[state, ROW])
        noted = -1
        for index in range(n):
            entry = long(table[row + index])
            to = entry >> FLAG_BITS
            if 0 <= to < state and entry != noted:
                noted = entry
                for layer in range(layers):
                    after = 0 if entry & COUNT else layer
                    notes[to, after] = max(notes[to, after], cost[state, layer])
    for call in range(states[state, CALL_FROM], states[state, CALL_TO]):
        for to in (calls[call, RETURN], calls[call, CALLEE], states[calls[call, CALLEE], LOOP]):
            if 0 <= to < state:
                notes[to, :2] = UNREACHABLE


@kernel
def _settle(
    program: ProgramArrays, plan: Plan, vocabulary: Tries, scratch: Scratch, low: int, high: int
) -> bool:
    """Bring the costs of one frame, states [low, high), to rest; whether any changed.

    States are gone through from the last to the first, and most are read by earlier ones only. A
    chain state without calls reads nothing but its chain, so it is looked at where that has just
    changed. All are gone through again if a state has become cheap enough for a later one.
    """
    states, cost = program[0], plan[0]
    groups, notes = scratch
    n_classes = _group_bytes(program[2], long(states[low, CLASSES]), groups)
    layers = 2 if states[low, LOOP] >= 0 else 1
    changed, settled = False, False
    while not settled:  # loops inside a frame
        settled = True
        notes[low:high, READER : READER + 2] = 0
        fresh = 0  # layers in which the chain from here on has changed
        for state in range(high - 1, low - 1, -1):
            chain = states[state, CHAIN] >= 0
            calls = states[state, CALL_TO] > states[state, CALL_FROM]
            alone = chain and not calls and states[state, FLAGS] & ACCEPT == 0
            fresh = fresh if chain else 0
            for layer in range(layers):
                if (not alone or fresh >> layer & 1) and _relax(
                    program, plan, vocabulary, groups, n_classes, state, layer
                ):
                    changed = True
                    fresh |= 1 << layer
                cheapest = cost[state, layer]
                if chain:
                    cheapest = min(cheapest, notes[state + 1, CHEAPEST + layer])
                notes[state, CHEAPEST + layer] = cheapest
                if fresh >> layer & 1 and cheapest + 1 < notes[state, READER + layer]:
                    settled = False
            if not alone:
                _note_reader(program, cost, notes, state, n_classes)
    return changed


@kernel
def _calls_are_settled(program: ProgramArrays, plan: Plan, low: int, high: int) -> bool:
    """Whether no call in states [low, high) has become cheaper than its state's cost."""
    states, cost = program[0], plan[0]
    counts = 2 if states[low, LOOP] >= 0 else 1
    for state in range(low, high):
        if states[state, CALL_TO] > states[state, CALL_FROM]:
            for layer in range(counts):
                tokens, _ = _best_of_calls(program, plan, state, layer)
                if tokens < cost[state, layer]:
                    return False
    return True


@kernel
def distances(
    program: ProgramArrays, plan: Plan, vocabulary: Tries, scratch: Scratch, bases: Longs
) -> None:
    """Bring plan[0] down to the least fixed point of the costs: int32[S, 4].

    It must begin as UNREACHABLE in the first two columns and 0 in the others.

    Columns: tokens with no unit needed, tokens with one unit needed, and the nesting of either
    way. `bases` int64[F + 1] bounds the frames; callees stand before callers, so without recursion
    one pass over the frames suffices, and one to see that no call has become cheaper.
    """
    n_frames = len(bases) - 1
    first, changed = True, True
    while changed:
        changed = False
        for frame in range(1, n_frames + 1):
            index = frame % n_frames  # the root's frame comes last
            low, high = long(bases[index]), long(bases[index + 1])
            if first or not _calls_are_settled(program, plan, low, high):
                changed = _settle(program, plan, vocabulary, scratch, low, high) or changed
        first = False
