"""How far every label is from its end, in tokens.

Of a large set this is most of the work of compiling, so it is done by several threads, each for a
part of the labels; what labels of two parts have in common at their beginning is joined afterwards.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from structgen.automata.frames import FLAGS, LABEL, IntArray
from structgen.automata.kernels import UNREACHABLE, Bytes, Longs, inlined, kernel, long
from structgen.automata.program import CALLEE, REG_A, REG_B, Program
from structgen.tokens.distances import Tries, child_of
from structgen.tokens.trie import BYTE, TOKEN
from structgen.tokens.trie import END as NODE_END

HASH_FACTOR, HASH_SHIFT = 0x9E3779B1, 15
"""Spread a node and a byte over a hash table."""
LEAF, WORD = 1, 2
ENDING = 16
"""Bytes that labels which end alike have in common at least."""
FEW_BYTES = 50_000
"""So much text of labels is measured without a hash table of the vocabulary, which takes 4 MB."""
PART_BYTES = 64_000
"""Text of labels that is worth a thread."""
MOST_PARTS = 8
NO_SLOTS = np.zeros(0, np.int64)


def label_costs(
    program: Program, tries: Tries, slots: Longs, n_parts: int | None = None
) -> IntArray:
    """int32[bytes of all labels], see `label_tokens`.

    Args:
        slots: of `child_slots`, or `NO_SLOTS`.
        n_parts: into how many parts the labels are divided; None for as many as pay.
    """
    blob, starts = program.blob, program.starts
    cost = np.empty(len(blob), np.int32)
    if not len(blob):
        return cost
    begins = np.zeros(len(starts), np.uint8)
    calls = program.calls[program.states[program.calls[:, CALLEE], FLAGS] & LABEL != 0]
    begins[calls[:, REG_A : REG_B + 1]] = 1
    n_parts = _parts_that_pay(len(blob)) if n_parts is None else n_parts
    firsts = {0, len(starts) - 1}
    if n_parts > 1:
        cuts = np.arange(1, n_parts) * (len(blob) / n_parts)
        firsts.update((np.searchsorted(starts, cuts, side="right") - 1).tolist())

    def measure(part: tuple[int, int]) -> None:
        reach = np.zeros(program.longest_label + 1, np.int32)
        recent = np.full((4096 if len(slots) else 16, 2), -1, np.int64)
        label_tokens(blob, starts, begins, part, tries, slots, reach, recent, cost)

    parts = [*pairwise(sorted(firsts))]
    if len(parts) == 1:
        measure(parts[0])
        return cost
    with ThreadPoolExecutor(len(parts) - 1) as threads:
        others = [threads.submit(measure, part) for part in parts[1:]]
        measure(parts[0])
        for other in others:
            other.result()
    for part in reversed(parts[:-1]):
        join(blob, starts, begins, part, cost)
    return cost


def _parts_that_pay(n_bytes: int) -> int:
    if sys.platform == "linux":
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    return max(min(n_cores, n_bytes // PART_BYTES, MOST_PARTS), 1)


@kernel
def hash_children(trie: IntArray, slots: Longs) -> None:
    """Fill in a hash table of (node, byte) -> child: int64[2^n], more than `trie` has rows.

    Each slot holds `(node << 8 | byte) << 32 | child << 2`, and LEAF and WORD where the child has
    no children or a token. The empty slots are -1, as all are before.
    """
    last = len(slots) - 1
    for node in range(len(trie)):
        child, end = node + 1, trie[node, NODE_END]
        while child < end:
            key = node << 8 | long(trie[child, BYTE])
            behind = long(trie[child, NODE_END])
            is_leaf, is_word = behind == child + 1, trie[child, TOKEN] >= 0
            slot = (key * HASH_FACTOR >> HASH_SHIFT) & last
            while slots[slot] >= 0:
                slot = (slot + 1) & last
            slots[slot] = key << 32 | child << 2 | LEAF * is_leaf | WORD * is_word
            child = behind


@inlined
def _described_child(trie: IntArray, slots: Longs, node: int, byte: int) -> int:
    """`child << 2 | flags` as in `hash_children`, which need not have been asked; or -1."""
    if len(slots) == 0:
        child = child_of(trie, node, byte)
        return child if child < 0 else child << 2 | WORD * (trie[child, TOKEN] >= 0)
    last = len(slots) - 1
    key = node << 8 | byte
    slot = (key * HASH_FACTOR >> HASH_SHIFT) & last
    while slots[slot] >= 0:
        if slots[slot] >> 32 == key:
            return long(slots[slot] & 0xFFFFFFFF)
        slot = (slot + 1) & last
    return -1


@inlined
def _shared(blob: Bytes, starts: Longs, label: int) -> int:
    """How many leading bytes a label has in common with the one behind it."""
    one, other = starts[label], starts[label + 1]
    most = min(other - one, starts[label + 2] - other)
    count = 0
    while count < most and blob[one + count] == blob[other + count]:
        count += 1
    return long(count)


@inlined
def _copy_end(blob: Bytes, recent: Longs, least: int, own: int, end: int, cost: IntArray) -> int:
    """Copy the costs of the longest ending that another label shares; where it begins.

    Bytes [own, end) of a label are its alone, and so are those of the labels in `recent`,
    int64[..., 2] of (own, end) by a hash of the last bytes. Their costs depend on nothing else.
    """
    if end - own < least:
        return end
    key = long(0)
    for at in range(end - least, end):
        key = (key * 31 + long(blob[at])) & 0xFFFFFFFF
    slot = key % len(recent)
    other_own, other_end = recent[slot, 0], recent[slot, 1]
    recent[slot, 0], recent[slot, 1] = own, end
    at = end
    if other_end >= 0:
        gap = other_end - end
        lowest = max(own, other_own - gap)
        while at > lowest and blob[at - 1] == blob[at - 1 + gap]:
            at -= 1
            cost[at] = cost[at + gap]
    return at


@kernel
def label_tokens(
    blob: Bytes,
    starts: Longs,
    begins: Bytes,
    part: tuple[int, int],
    vocabulary: Tries,
    slots: Longs,
    reach: IntArray,
    recent: Longs,
    cost: IntArray,
) -> None:
    """Write to `cost` the fewest tokens to the end of a label, from each place in the labels on.

    At byte `depth` of a label stands what is least for all labels of its set that agree with it
    up to there, if it is the first of them; else a number that nobody reads. So labels that begin
    alike are looked at once: this is the shortest path through the trie of each set. What ends
    alike is copied.

    Args:
        begins: uint8[L + 1], whether a label is the first of its set; all labels of a set are
            different and sorted.
        part: the first of the labels to look at, and the one behind the last; as if there were no
            others behind them.
        slots: of `hash_children`, or int64[0].
        reach: scratch, int32[longest label + 1]: up to where a token may reach from each depth.
        recent: scratch, int64[..., 2] of -1.
        cost: int32[len(blob)].
    """
    trie, first, second = vocabulary
    first_label, end_label = part
    behind = -1  # bytes shared with the next label of the set, -1 for the last label
    for label in range(end_label - 1, first_label - 1, -1):
        begin, end = starts[label], starts[label + 1]
        before = -1
        if label > first_label and not begins[label]:
            before = _shared(blob, starts, label - 1)
        own = begin + max(before, behind) + 1
        todo = _copy_end(blob, recent, ENDING, own, end, cost)
        for at in range(todo - 1, begin - 1, -1):
            depth = at - begin
            best = cost[end + depth] if depth <= behind else UNREACHABLE
            known = depth < behind and reach[depth] < behind  # as with the next label
            if known and depth <= before and reach[depth] <= before:
                cost[at] = best
                continue
            found, ahead = long(first[blob[at]]), at
            if found >= 0:
                found = found << 2 | WORD * (trie[found, TOKEN] >= 0)
            while found >= 0:
                ahead += 1
                # What stands behind shared bytes is known with the first label that has them.
                if found & WORD and ahead - begin > before:
                    best = min(best, 1 + (cost[ahead] if ahead < end else 0))
                if ahead == end or found & LEAF:
                    break
                if ahead > at + 1:
                    found = _described_child(trie, slots, found >> 2, long(blob[ahead]))
                else:
                    found = long(second[blob[at], blob[ahead]])
                    if found >= 0:
                        found = found << 2 | WORD * (trie[found, TOKEN] >= 0)
            reach[depth] = ahead - begin
            cost[at] = best
        behind = before


@kernel
def join(blob: Bytes, starts: Longs, begins: Bytes, part: tuple[int, int], cost: IntArray) -> None:
    """Let the labels behind a part count where they begin like labels of the part.

    The fewest tokens from a beginning on are the least of those for the labels of the part that
    have it, and those for all others that do: of both, the first label knows them.
    """
    first_label, behind = part
    if begins[behind]:
        return
    shared = _shared(blob, starts, behind - 1)
    label, before = behind - 1, long(-2)  # -2: not known, what the label shares with the one before
    for depth in range(shared, -1, -1):
        while label > first_label and not begins[label]:
            if before == -2:
                before = _shared(blob, starts, label - 1)
            if before < depth:
                break
            label, before = label - 1, long(-2)
        at = starts[label] + depth
        cost[at] = min(cost[at], cost[starts[behind] + depth])
