"""The places of an array: which items may come where."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from structgen.automata.structures import Place, Target
from structgen.errors import LimitError
from structgen.schema.nodes import Array, Contains, Labels, Node, labels

MOST_PLACES = 20_000

S = TypeVar("S", bound=Hashable)
Targets = Callable[[Node], Sequence[Target]]


def array_places(node: Array, targets: Targets) -> list[Place]:
    """What may be written at each point of an array, beginning at its opening bracket."""
    if node.unique and node.max_items != 1:
        return _distinct(node, targets)
    if node.contains:
        return _containing(node, node.contains[0], targets)
    return _prefixed(node, targets)


def _prefixed(node: Array, targets: Targets) -> list[Place]:
    """Items of the prefix one by one, then all others, counted by the registers."""
    n_first = len(node.prefix)
    item = targets(node.item)
    places = [
        Place([(targets(first), index + 1)], index >= node.min_items)
        for index, first in enumerate(node.prefix)
    ]
    # Nothing leads back to the first place, so without a prefix it is a place of its own.
    loop = max(n_first, 1)
    places += [Place([(item, loop)] if item else [], True, counted=True)] * (loop + 1 - n_first)
    return places


def _containing(node: Array, part: Contains, targets: Targets) -> list[Place]:
    """Places that remember how many items there are, and how many of them are of the kind."""
    matching, others = targets(part.item), targets(node.item if part.maximum is None else part.rest)
    most = part.minimum if part.maximum is None else part.maximum
    longest = node.min_items if node.max_items is None else node.max_items

    def ways(at: tuple[int, int]) -> Iterator[tuple[Sequence[Target], tuple[int, int]]]:
        items, kind = at
        if node.max_items is None or items < node.max_items:
            more = min(items + 1, longest)
            if part.maximum is None or kind < part.maximum:
                yield matching, (more, min(kind + 1, most))
            yield others, (more, kind)

    def may_close(at: tuple[int, int]) -> bool:
        return at[0] >= node.min_items and at[1] >= part.minimum

    return _explore((0, 0), ways, may_close)


def _distinct(node: Array, targets: Targets) -> list[Place]:
    """A place for each set of labels that were written."""
    assert isinstance(node.item, Labels), "checked with the schema"
    texts = node.item.texts
    single = [targets(labels((text,))) for text in texts]
    most = len(texts) if node.max_items is None else node.max_items

    def ways(at: frozenset[int]) -> Iterator[tuple[Sequence[Target], frozenset[int]]]:
        for index, target in enumerate(single if len(at) < most else ()):
            if index not in at:
                yield target, at | {index}

    return _explore(frozenset[int](), ways, lambda at: len(at) >= node.min_items)


def _explore(
    start: S,
    ways: Callable[[S], Iterable[tuple[Sequence[Target], S]]],
    may_close: Callable[[S], bool],
) -> list[Place]:
    """The places that can be reached; the first stands for `start` and nothing leads back to it."""
    numbers: dict[S, int] = {}
    pending = deque([start])
    places: list[Place] = []
    while pending:
        at = pending.popleft()
        items: list[tuple[Sequence[Target], int]] = []
        for targets, to in ways(at):
            if to not in numbers:
                numbers[to] = len(numbers) + 1
                pending.append(to)
            items.append((targets, numbers[to]))
        places.append(Place(items, may_close(at)))
        if len(numbers) > MOST_PLACES:
            raise LimitError(f"an array needs more than {MOST_PLACES} states; lower its bounds")
    return places
