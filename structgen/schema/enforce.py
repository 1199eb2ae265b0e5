"""What nodes can say but the automaton cannot enforce: refused by path, never dropped."""

from __future__ import annotations

from collections.abc import Iterator

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
)


def unenforceable(schema: Schema) -> tuple[Fault, ...]:
    """Every part that cannot be enforced while decoding."""
    walker = _Walker(schema)
    faults = list(walker.faults(schema.root, "$"))
    if walker.any_scope:
        faults += Distinct(schema.definitions).mixed(schema.root)
    return tuple(dict.fromkeys(faults))


class _Walker:
    """Visits every node once, definitions at their first reference."""

    def __init__(self, schema: Schema) -> None:
        self._definitions = schema.definitions
        self._distinct = Distinct(schema.definitions)
        self._seen: set[str] = set()
        self._embedded = False
        self.any_scope = False
        """Whether parts of some array or object must differ."""

    def faults(self, node: Node, path: str) -> Iterator[Fault]:
        """The faults in and below a node."""
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
