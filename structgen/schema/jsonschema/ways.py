"""Arrays that must contain items of several kinds: which kinds an item at a place may be of.

An automaton can count items of a kind, but it cannot find out of which kinds an item is while the
item is written. So each place gets alternatives, one for each set of kinds, made by intersection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from structgen.deadline import check_deadline
from structgen.schema.jsonschema.definitions import Definitions, Unrepresentable
from structgen.schema.jsonschema.intersect import meet
from structgen.schema.nodes import Array, Counts, Never, Node, Way
from structgen.schema.rewrite import Change, parts, rewritten

MOST_KINDS = 4
"""Kinds of items that one array may be asked to contain: they double the alternatives."""
MOST_STEPS = 20_000
"""Places of an array that are looked at to see whether it can be finished."""


def add_ways(definitions: Definitions, root: Node) -> Node:
    """The root, and all definitions, with alternatives for each array that must contain items."""

    def change(node: Node) -> Node:
        check_deadline()
        if not isinstance(node, Array) or not node.contains or node.ways:
            return node
        made = with_ways(definitions, node)
        if isinstance(made, Never):
            return made
        # Intersections made new arrays, which may have to contain items themselves.
        ways = (tuple(_rewritten(place, change)) for place in made.ways)
        return replace(made, ways=tuple(ways))

    root = rewritten(root, change)
    done: set[str] = set()
    while left := [name for name in definitions.nodes if name not in done]:
        for name in left:
            definitions.nodes[name] = rewritten(definitions.nodes[name], change)
            done.add(name)
        definitions.settle()
    return root


def _rewritten(place: tuple[Way, ...], change: Change) -> Iterator[Way]:
    for way in place:
        # What has its alternatives is not copied again: at every level that would be exponential.
        item = rewritten(way.item, change) if _lacks_ways(way.item) else way.item
        if not isinstance(item, Never):
            yield replace(way, item=item)


def _lacks_ways(node: Node) -> bool:
    """Whether some array in a node must contain items and has no alternatives yet."""
    return any(isinstance(part, Array) and part.contains and not part.ways for part in parts(node))


def with_ways(definitions: Definitions, node: Array) -> Array | Never:
    """An array with the alternatives for each place; `Never` if its counts contradict each other.

    Raises:
        Unrepresentable: it has too many kinds.
    """
    if len(node.contains) > MOST_KINDS:
        raise Unrepresentable(f"an array that must contain more than {MOST_KINDS} kinds of items")
    places = (*node.prefix, node.item)
    made = replace(node, ways=tuple(tuple(_ways(definitions, node, part)) for part in places))
    if not _can_end(made):
        return Never("no array has so many items of the kinds that it must contain")
    return made


def _ways(definitions: Definitions, node: Array, item: Node) -> Iterator[Way]:
    for chosen in product((False, True), repeat=len(node.contains)):
        way = item
        for part, is_kind in zip(node.contains, chosen, strict=True):
            if is_kind:
                way = meet(definitions, way, part.item)
            elif part.maximum is not None:
                way = meet(definitions, way, part.rest)
        if not isinstance(way, Never):
            yield Way(way, tuple(i for i, is_kind in enumerate(chosen) if is_kind))


def _can_end(node: Array) -> bool:
    """Whether some array has few enough and enough items of each kind."""
    start: tuple[int, Counts] = (0, (0,) * len(node.contains))
    seen: set[tuple[int, Counts]] = {start}
    pending: deque[tuple[int, Counts]] = deque([start])
    while pending and len(seen) < MOST_STEPS:
        at = pending.popleft()
        if node.may_close(*at):
            return True
        for _, after in node.steps(*at):
            if after not in seen:
                seen.add(after)
                pending.append(after)
    return bool(pending)
