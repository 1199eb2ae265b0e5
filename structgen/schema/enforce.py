"""What nodes can say but the automaton cannot enforce: refused by path, never dropped."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.errors import Fault
from structgen.schema.nodes import (
    Array,
    Embedded,
    Extra,
    Labels,
    Node,
    Object,
    Property,
    Ref,
    Schema,
    Union,
)

MOST_DISTINCT = 10
"""Labels of which an array without repeats may consist: each subset has states of its own."""


def unenforceable(schema: Schema) -> tuple[Fault, ...]:
    """Every part that cannot be enforced while decoding."""
    walker = _Walker(schema)
    return tuple(dict.fromkeys(walker.faults(schema.root, "$")))


class _Walker:
    """Visits every node once, definitions at their first reference."""

    def __init__(self, schema: Schema) -> None:
        self._definitions = schema.definitions
        self._seen: set[str] = set()

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
                yield from self.faults(node.node, path)
            case Array():
                yield from self._array(node, path)
            case Object():
                yield from self._object(node, path)
            case _:
                return

    def _array(self, node: Array, path: str) -> Iterator[Fault]:
        yield from _own_faults(node, self._plain(node.item), path)
        for index, item in enumerate(node.prefix):
            yield from self.faults(item, f"{path}[{index}]")
        yield from self.faults(node.item, f"{path}[*]")

    def _plain(self, node: Node) -> Node:
        """The node behind a reference."""
        seen: set[str] = set()
        while isinstance(node, Ref) and node.name not in seen:
            seen.add(node.name)
            node = self._definitions[node.name]
        return node

    def _object(self, node: Object, path: str) -> Iterator[Fault]:
        inner: tuple[Property | Extra, ...] = (*node.properties, *node.extras)
        for part in inner:
            name = part.name if isinstance(part, Property) else "*"
            value = part.node if isinstance(part, Property) else part.value
            yield from self.faults(value, f"{path}.{name}")
        required = sum(prop.required for prop in node.properties)
        if node.extras and node.min_properties > required + 1:
            yield Fault(
                path,
                f"at least {node.min_properties} properties with free keys cannot be enforced: a "
                "key that is written twice counts once",
                "declare the properties, or lower the minimum to 1",
            )


def _own_faults(node: Array, item: Node, path: str) -> Iterator[Fault]:
    if node.unique and node.max_items != 1:
        small = isinstance(item, Labels) and len(item.texts) <= MOST_DISTINCT
        if not small or node.prefix or node.contains:
            yield Fault(
                path,
                f"items without repeats are only enforced for up to {MOST_DISTINCT} choices",
                "use a Literal or enum of few choices, or a list and a validator",
            )
    if node.contains and (len(node.contains) > 1 or node.prefix):
        yield Fault(path, "contains is only enforced alone, for arrays of one kind of item")
