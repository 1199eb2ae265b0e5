"""What nodes can say but the automaton cannot enforce: refused by path, never dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from structgen.errors import Fault
from structgen.schema.distinct import Distinct, free_keys_differ, scoped
from structgen.schema.nodes import (
    Array,
    Embedded,
    Extra,
    Node,
    Object,
    Parts,
    Property,
    Ref,
    Schema,
    Union,
    union,
)
from structgen.schema.rewrite import rewritten, rewritten_schema


def unenforceable(schema: Schema) -> tuple[Fault, ...]:
    """Every part that cannot be enforced while decoding."""
    walker = _Walker(schema)
    faults = list(walker.faults(schema.root, "$"))
    if walker.any_scope:
        faults += Distinct(schema.definitions).mixed(schema.root)
    return tuple(dict.fromkeys(faults))


def with_fewer_sets(schema: Schema, faults: tuple[Fault, ...]) -> tuple[Schema, tuple[Fault, ...]]:
    """A Python type's schema, and its faults, where repeats need not be forbidden in some sets.

    A repeated item of a set is valid and does no harm, unless several items are demanded. So where
    repeats cannot be forbidden in a union or in embedded JSON they are allowed there, and
    everywhere if that is not enough.
    """
    for change in (_repeats_in_unions, _repeats_in_sets):
        relaxed = rewritten_schema(schema, change)
        faults = unenforceable(relaxed)
        if not faults:
            return relaxed, ()
    return schema, faults


def _repeats_in_sets(node: Node) -> Node:
    harmless = isinstance(node, Array) and node.unique and node.min_items <= 1 and not node.strict
    return replace(node, unique=False) if harmless else node


def _repeats_in_unions(node: Node) -> Node:
    match node:
        case Embedded():
            return Embedded(rewritten(node.node, _repeats_in_sets))
        case Union() if sum(isinstance(option, Array) for option in node.options) > 1:
            return union(map(_repeats_in_sets, node.options))
        case _:
            return node


class _Walker:
    """Visits every node once, definitions at their first reference."""

    def __init__(self, schema: Schema) -> None:
        self._definitions = schema.definitions
        self._distinct = Distinct(schema.definitions)
        self._seen: set[str] = set()
        self._visited: set[tuple[int, bool]] = set()
        self._embedded = False
        self.any_scope = False
        """Whether parts of some array or object must differ."""

    def faults(self, node: Node, path: str) -> Iterator[Fault]:
        """The faults in and below a node; none where it was visited before."""
        if (id(node), self._embedded) in self._visited:
            return
        self._visited.add((id(node), self._embedded))
        match node:
            case Ref():
                if node.name not in self._seen:
                    self._seen.add(node.name)
                    yield from self.faults(self._definitions[node.name], path)
            case Union():
                for option in node.options:
                    yield from self.faults(option, path)
            case Embedded():
                outside, self._embedded = self._embedded, True
                yield from self.faults(node.node, path)
                self._embedded = outside
            case Array():
                yield from self._array(node, path)
            case Object():
                yield from self._object(node, path)
            case Parts():
                for part in node.parts:
                    yield from self.faults(part.node, path + part.step)
            case _:
                return

    def _array(self, node: Array, path: str) -> Iterator[Fault]:
        yield from self._distinct.array_faults(node, path)
        yield from self._scope(scoped(node), path)
        for index, item in enumerate(node.prefix):
            yield from self.faults(item, f"{path}[{index}]")
        yield from self.faults(node.item, f"{path}[*]")
        for part in node.contains:
            yield from self.faults(part.item, f"{path}[*]")
        for way in (way for place in node.ways for way in place):
            yield from self.faults(way.item, f"{path}[*]")

    def _scope(self, is_scope: bool, path: str) -> Iterator[Fault]:
        self.any_scope |= is_scope
        if is_scope and self._embedded:
            yield Fault(path, "repeats cannot be forbidden in JSON that stands inside a string")

    def _object(self, node: Object, path: str) -> Iterator[Fault]:
        yield from self._distinct.object_faults(node, path)
        yield from self._scope(free_keys_differ(node), path)
        inner: tuple[Property | Extra, ...] = (*node.properties, *node.extras)
        for part in inner:
            name = part.name if isinstance(part, Property) else "*"
            value = part.node if isinstance(part, Property) else part.value
            yield from self.faults(value, f"{path}.{name}")
