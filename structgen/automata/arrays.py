"""The places of an array: which items may come where."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from structgen.automata.antichains import exclude_each_other, separator_in_json
from structgen.automata.structures import Place, Target
from structgen.errors import LimitError
from structgen.schema.distinct import few_distinct
from structgen.schema.nodes import Array, Counts, Labels, Node, labels

MOST_PLACES = 20_000

S = TypeVar("S", bound=Hashable)
Targets = Callable[[Node], Sequence[Target]]


def array_places(node: Array, targets: Targets, *, remembered: bool) -> list[Place]:
    """What may be written at each point of an array, beginning at its opening bracket.

    With `remembered`, a session sees to it that items differ.
    """
    if few_distinct(node) and not remembered:
        return _distinct(node, targets)
    if node.contains:
        return _containing(node, targets)
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


def _containing(node: Array, targets: Targets) -> list[Place]:
    """Places that remember how many items there are, and how many of them are of each kind."""
    known = {id(way): targets(way.item) for place in node.ways for way in place}

    def ways(at: tuple[int, Counts]) -> Iterator[tuple[Sequence[Target], tuple[int, Counts]]]:
        for way, after in node.steps(*at):
            yield known[id(way)], after

    return _explore((0, (0,) * len(node.contains)), ways, lambda at: node.may_close(*at))


def _distinct(node: Array, targets: Targets) -> list[Place]:
    """A place for each set of labels that were written."""
    assert isinstance(node.item, Labels), "checked with the schema"
    texts = node.item.texts
    single = [targets(labels((text,))) for text in texts]
    most = len(texts) if node.max_items is None else node.max_items

    separator = separator_in_json(node.separator)
    excluded = [
        {
            index
            for index, text in enumerate(texts)
            if text == own or (node.antichain and exclude_each_other(text, own, separator))
        }
        for own in texts
    ]

    def ways(at: frozenset[int]) -> Iterator[tuple[Sequence[Target], frozenset[int]]]:
        for index, target in enumerate(single if len(at) < most else ()):
            if at.isdisjoint(excluded[index]):
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
            raise LimitError(
                f"an array whose items are counted by kind needs more than {MOST_PLACES} states; "
                "lower min_items, max_items or the bounds of contains"
            )
    return _living(places)


def _living(places: list[Place]) -> list[Place]:
    """The places without the items behind which the array could never be closed."""
    sources: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        for targets, to in place.items:
            if targets:
                sources.setdefault(to, []).append(number)
    pending = [number for number, place in enumerate(places) if place.may_close]
    living = set(pending)
    while pending:
        fresh = [source for source in sources.get(pending.pop(), ()) if source not in living]
        living.update(fresh)
        pending.extend(fresh)
    return [
        replace(place, items=[item for item in place.items if item[1] in living])
        for place in places
    ]
