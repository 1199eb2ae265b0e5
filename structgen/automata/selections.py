"""Frames of several labels that are written as plain text, with a separator between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from structgen.automata.calls import NO_LIMIT, Call
from structgen.automata.frames import COUNT, ROOM, Frame, FrameBuilder
from structgen.automata.structures import Target
from structgen.schema.nodes import Selection

UNIT = ROOM | COUNT


def few_frame(node: Selection, labels: Sequence[Target]) -> Frame:
    """A place for each set of labels that were written; `labels` are the calls of one each."""
    b = FrameBuilder("selection")
    every = frozenset(range(len(labels)))
    most = min(len(labels), node.max_items)
    b.state(accept=not node.min_items)
    behind: dict[frozenset[int], int] = {frozenset(): 0}
    pending = deque([(frozenset[int](), 0)])
    while pending:
        chosen, choose = pending.popleft()
        for label in sorted(every - chosen):
            after = chosen | {label}
            if after not in behind:
                behind[after] = b.state(accept=len(after) >= node.min_items)
                if len(after) < most:
                    pending.append((after, _separator(b, behind[after], node.separator)))
            callee, first, last = labels[label]
            b.add_call(choose, Call(callee, behind[after], first, last))
    return b.frame()


def many_frame(node: Selection, label: Target) -> Frame:
    """A scope of labels, whose registers count what may follow the least number of them."""
    b = FrameBuilder("selection")
    callee, first, last = label
    lengths = sorted(map(len, node.choice.texts))
    floor = lengths[node.min_items - 1] if node.min_items > 1 else 0
    choose = b.state(accept=not node.min_items)
    arrivals: list[int] = []
    n_places = max(node.min_items, 1)
    for count in range(1, n_places + 1):
        arrival = b.state(accept=count >= node.min_items)
        arrivals.append(arrival)
        b.add_call(choose, Call(callee, arrival, first, last, 0, floor))
        if count < n_places:
            choose = _separator(b, arrival, node.separator)
    if node.max_items > n_places:
        loop = arrivals[-1]
        choose = _separator(b, loop, node.separator, UNIT)
        b.add_call(choose, Call(callee, loop, first, last, 0, floor))
    b.scope(arrivals, None)
    return b.frame(loop=arrivals[-1])


def units(node: Selection) -> int:
    """The first registers of `many_frame`: how many labels may follow the least number."""
    return min(node.max_items - max(node.min_items, 1), NO_LIMIT)


def _separator(b: FrameBuilder, state: int, separator: bytes, flags: int = 0) -> int:
    """Let `state` read the separator; the state behind it."""
    b.edge(state, separator[0], separator[0], b.next_state, flags)
    b.literal(bytes(islice(separator, 1, None)))
    return b.state()
