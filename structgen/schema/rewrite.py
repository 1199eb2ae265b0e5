"""One change to every node of a tree."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from structgen.schema import nodes
from structgen.schema.nodes import (
    Array,
    Embedded,
    Extra,
    Never,
    Node,
    Object,
    Parts,
    Schema,
    Union,
    Way,
)

Change = Callable[[Node], Node]


def rewritten(node: Node, change: Change) -> Node:
    """The node with `change` made to each of its parts and then to itself.

    A part that stands in several places is changed once, and stands there again.

    Example: `rewritten(Array(Integer()), change)` is `change(Array(change(Integer())))`
    """
    return _remembering(change)(node)


def rewritten_schema(schema: Schema, change: Change) -> Schema:
    """The schema with `change` made to every node."""
    again = _remembering(change)
    definitions = {name: again(node) for name, node in schema.definitions.items()}
    return replace(schema, root=again(schema.root), definitions=definitions)


def _remembering(change: Change) -> Change:
    """`rewritten`, which knows the nodes by their identity and keeps them alive meanwhile."""
    done: dict[int, tuple[Node, Node]] = {}

    def again(node: Node) -> Node:
        known = done.get(id(node))
        if known is None:
            known = done[id(node)] = node, change(_with_parts(node, again))
        return known[1]

    return again


def _with_parts(node: Node, again: Change) -> Node:
    """The node with its parts rewritten."""
    match node:
        case Array():
            return _array(node, again)
        case Object():
            return _object(node, again)
        case Union():
            options = [again(option) for option in node.options]
            return node if _same(options, node.options) else nodes.union(options)
        case Embedded():
            return Embedded(again(node.node))
        case Parts():
            return Parts(tuple(replace(part, node=again(part.node)) for part in node.parts))
        case _:
            return node


def parts(*roots: Node) -> Iterator[Node]:
    """Every node in some nodes, each once, apart from the items of arrays without any."""
    pending = list(roots)
    seen: set[int] = set()  # nodes may be shared, in layers even exponentially often
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        match node:
            case Union():
                pending.extend(node.options)
            case Embedded():
                pending.append(node.node)
            case Array():
                items = (node.item, *(way.item for place in node.ways for way in place))
                pending.extend(item for item in items if not isinstance(item, Never))
                pending.extend(node.prefix)
            case Object():
                pending += [prop.node for prop in node.properties]
                pending.extend(part for extra in node.extras for part in (extra.key, extra.value))
            case Parts():
                pending.extend(part.node for part in node.parts)
            case _:
                pass


def _same(one: Sequence[Node], other: Sequence[Node]) -> bool:
    """Whether the very same nodes stand in two places: then nothing has to be made anew."""
    return all(map(operator.is_, one, other))


def _array(node: Array, again: Change) -> Node:
    item = node.item if isinstance(node.item, Never) else again(node.item)
    if item is node.item and not (node.contains or node.prefix or node.ways):
        return node
    contains = (
        replace(part, item=again(part.item), rest=again(part.rest)) for part in node.contains
    )
    prefix = (again(part) for part in node.prefix)
    made = nodes.array(
        item, node.min_items, node.max_items, prefix, contains, node.unique, node.antichain,
        node.separator, node.strict,
    )  # fmt: skip
    if not node.ways or not isinstance(made, Array):
        return made
    ways = tuple(tuple(_ways(place, again)) for place in node.ways)
    return replace(made, ways=ways)


def _ways(place: tuple[Way, ...], again: Change) -> Iterator[Way]:
    """The alternatives of a place that are still possible."""
    for way in place:
        item = again(way.item)
        if not isinstance(item, Never):
            yield replace(way, item=item)


def _object(node: Object, again: Change) -> Object:
    """A property that became impossible is left out where it may be."""
    before = [prop.node for prop in node.properties]
    before += [part for extra in node.extras for part in (extra.key, extra.value)]
    after = [again(part) for part in before]
    if _same(after, before):
        return node
    properties = [
        replace(prop, node=part) for prop, part in zip(node.properties, after, strict=False)
    ]
    kept = [prop for prop in properties if prop.required or not isinstance(prop.node, Never)]
    lost = {prop.name for prop in node.properties} - {prop.name for prop in kept}
    others = after[len(properties) :]
    extras = map(Extra, others[::2], others[1::2])
    return replace(
        node,
        properties=tuple(kept),
        extras=tuple(e for e in extras if not isinstance(e.key, Never)),
        reserved=tuple(sorted({*node.reserved, *lost})),
    )
