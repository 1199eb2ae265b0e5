"""The parts of a node."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.schema.nodes import Array, Embedded, Node, Object, Ref, Union


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside of a node."""
    match node:
        case Array():
            yield node.item
            yield from node.prefix
            for part in node.contains:
                yield part.item
                yield part.rest
            for place in node.ways:
                for way in place:
                    yield way.item
        case Object():
            for prop in node.properties:
                yield prop.node
            for extra in node.extras:
                yield extra.key
                yield extra.value
        case Union():
            yield from node.options
        case Embedded():
            yield node.node
        case _:
            return


def references(node: Node) -> Iterator[str]:
    """Names of the definitions that a node refers to, itself and in its parts."""
    todo, seen = [node], set[int]()
    while todo:
        part = todo.pop()
        if isinstance(part, Ref):
            yield part.name
        elif id(part) not in seen:
            seen.add(id(part))
            todo.extend(children(part))
