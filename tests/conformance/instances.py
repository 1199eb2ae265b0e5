"""JSON instances as texts in the order and spelling that the automaton writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from structgen.compiler import CompiledSchema
from structgen.schema.jsonschema.admits import admits
from structgen.schema.nodes import Array, Node, Object, Ref, Schema, Union


def accepts(compiled: CompiledSchema[Any], instance: Any) -> bool:
    """Whether the instance is written by some sequence of single bytes, with keys in order."""
    return any(_runs(compiled, text) for text in texts(compiled.schema, instance))


def texts(schema: Schema, instance: Any) -> Iterator[bytes]:
    """The instance with keys in declared order; numbers as plain decimals, then as floats.

    These are the canonical choices of docs/support.md: an integer is written without a fraction,
    a number with bounds without an exponent.
    """
    arranged = _Arranger(schema.definitions).arrange(schema.root, instance)
    for plain in (True, False):
        yield write(arranged, plain=plain).encode()


def _runs(compiled: CompiledSchema[Any], text: bytes) -> bool:
    session = compiled.session()
    for byte in text:
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


class _Arranger:
    def __init__(self, definitions: Mapping[str, Node]) -> None:
        self._definitions = definitions

    def arrange(self, node: Node, value: Any) -> Any:
        """The value with the keys of each object in the order of its node."""
        node = self._chosen(node, value)
        if isinstance(value, list):
            item = [node.item] * len(value) if isinstance(node, Array) else [node] * len(value)
            if isinstance(node, Array):
                item[: len(node.prefix)] = node.prefix[: len(value)]
            return [self.arrange(n, v) for n, v in zip(item, value, strict=True)]
        if not isinstance(value, dict):
            return value
        if not isinstance(node, Object):
            return {key: self.arrange(node, inner) for key, inner in value.items()}
        declared = {prop.name: prop.node for prop in node.properties}
        names = [name for name in declared if name in value]
        names += [name for name in value if name not in declared]
        return {
            name: self.arrange(self._inner(node, declared, name), value[name]) for name in names
        }

    def _inner(self, node: Object, declared: Mapping[str, Node], name: str) -> Node:
        if name in declared:
            return declared[name]
        for extra in node.extras:
            if admits(self._definitions, extra.key, name):
                return extra.value
        return node

    def _chosen(self, node: Node, value: Any) -> Node:
        """The alternative that the value belongs to, or the first that could be meant."""
        flat = list(self._flat(node, frozenset()))
        for option in flat:
            if admits(self._definitions, option, value):
                return option
        kind = Object if isinstance(value, dict) else Array
        return next((option for option in flat if isinstance(option, kind)), flat[0])

    def _flat(self, node: Node, refs: frozenset[str]) -> Iterator[Node]:
        if isinstance(node, Union):
            for option in node.options:
                yield from self._flat(option, refs)
        elif isinstance(node, Ref) and node.name not in refs:
            yield from self._flat(self._definitions[node.name], refs | {node.name})
        else:
            yield node


def write(value: Any, *, plain: bool) -> str:
    """`json.dumps` with numbers spelled canonically."""
    if isinstance(value, dict):
        inner = (f"{write(key, plain=plain)}: {write(v, plain=plain)}" for key, v in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write(item, plain=plain) for item in value) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        return str(int(value))
    if isinstance(value, float) and plain:
        return format(Decimal(repr(value)), "f")
    return json.dumps(value, ensure_ascii=False)
