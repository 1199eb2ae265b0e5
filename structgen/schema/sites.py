"""Every place of a schema where a value stands, with its path and the field that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from structgen.schema.nodes import (
    Array,
    Embedded,
    Node,
    Object,
    Parts,
    Property,
    Ref,
    Schema,
    Union,
)


@dataclass(frozen=True, slots=True)
class Site:
    """One node at one path."""

    path: str
    node: Node
    """Never a `Ref`: references are followed."""
    field: Property | None = None
    """The innermost declared property that it is a part of."""
    owner: Object | None = None
    """The object that declares `field`."""
    union: Union | None = None
    """The union of which it is an option."""
    same_as: str = ""
    """The path at which this definition was visited before; its parts are not visited again."""


def sites(schema: Schema) -> Iterator[Site]:
    """All nodes, outer before inner, in declared order.

    The parts of a definition are visited at its first reference only, which ends recursion.
    """
    yield from _Walker(schema).visit(Site("$", schema.root))


def path_of(schema: Schema, node: Node) -> str | None:
    """Where a node, or what it refers to, stands first; None if it is only a part of others."""
    target = resolve(schema, node)
    return next((site.path for site in sites(schema) if site.node is target), None)


def resolve(schema: Schema, node: Node) -> Node:
    """The node that a reference stands for."""
    while isinstance(node, Ref):
        node = schema.definitions[node.name]
    return node


def options(schema: Schema, node: Node) -> tuple[Node, ...]:
    """What a node may be: the options of a union, flat and without references."""
    found: list[Node] = []
    pending, seen = [node], set[str]()
    while pending:
        at = pending.pop()
        if isinstance(at, Ref):
            if at.name not in seen:
                seen.add(at.name)
                pending.append(schema.definitions[at.name])
        elif isinstance(at, Union):
            pending.extend(reversed(at.options))
        else:
            found.append(at)
    return tuple(found)


class _Walker:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._paths: dict[str, str] = {}

    def visit(self, site: Site) -> Iterator[Site]:
        """A site, whose node may be a reference, and everything below it."""
        node = site.node
        if isinstance(node, Ref):
            inner = resolve(self._schema, node)
            if isinstance(inner, Object | Array | Union | Embedded):
                if node.name in self._paths:
                    yield replace(site, node=inner, same_as=self._paths[node.name])
                    return
                self._paths[node.name] = site.path
            site = replace(site, node=inner)
        yield site
        for part in _parts(site):
            yield from self.visit(part)


def _parts(site: Site) -> Iterator[Site]:
    """The sites directly below one, with references not followed yet."""
    node, path = site.node, site.path
    inside = replace(site, union=None)
    match node:
        case Union():
            for option in node.options:
                yield replace(site, node=option, union=node)
        case Embedded():
            yield replace(inside, node=node.node)
        case Array():
            for index, item in enumerate(node.prefix):
                yield replace(inside, path=f"{path}[{index}]", node=item)
            for item in (node.item, *(part.item for part in node.contains)):
                yield replace(inside, path=f"{path}[*]", node=item)
        case Object():
            for prop in node.properties:
                yield Site(f"{path}.{prop.name}", prop.node, prop, node)
            for extra in node.extras:
                yield replace(inside, path=f"{path}.<key>", node=extra.key)
                yield replace(inside, path=f"{path}.*", node=extra.value)
        case Parts():
            for part in node.parts:
                if part.step:
                    yield replace(inside, path=path + part.step, node=part.node)
        case _:
            return
