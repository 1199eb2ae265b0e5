"""Which parts of a schema no finite value can ever match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from structgen.errors import Fault
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Integer,
    Labels,
    Map,
    Never,
    Node,
    Number,
    Object,
    Property,
    Ref,
    Schema,
    String,
    Union,
)


def unsatisfiable(schema: Schema, *, require_all: bool = False) -> tuple[Fault, ...]:
    """Why the root cannot be matched; empty if it can be.

    Example: `class A: a: A` gives `$.a: no finite value ...`

    Args:
        require_all: as if every property were required.
    """
    checker = _Checker(schema.definitions, require_all)
    if checker.is_finite(schema.root):
        return ()
    return tuple(dict.fromkeys(checker.reasons(schema.root, "$", frozenset())))


class _Checker:
    """Which definitions some finite value matches: a least fixed point."""

    def __init__(self, definitions: Mapping[str, Node], require_all: bool) -> None:
        self._definitions = definitions
        self._require_all = require_all
        self._finite: set[str] = set()
        while found := [
            name
            for name, node in definitions.items()
            if name not in self._finite and self.is_finite(node)
        ]:
            self._finite.update(found)

    def is_finite(self, node: Node) -> bool:
        """Whether some finite value matches, as far as is known."""
        match node:
            case Never():
                return False
            case Ref():
                return node.name in self._finite
            case Union():
                return any(self.is_finite(option) for option in node.options)
            case Array():
                return node.min_items == 0 or self.is_finite(node.item)
            case Object():
                return all(self.is_finite(prop.node) for prop in self._written(node))
            case Map() | Labels() | String() | Integer() | Number() | AnyJson():
                return True
            case _:
                assert_never(node)

    def _written(self, node: Object) -> list[Property]:
        return [prop for prop in node.properties if prop.required or self._require_all]

    def reasons(self, node: Node, path: str, refs: frozenset[str]) -> Iterator[Fault]:
        """The innermost impossible parts, each with its path."""
        if self.is_finite(node):
            return
        match node:
            case Never():
                yield Fault(path if node.path == "$" else node.path, node.reason)
            case Ref() if node.name in refs:
                yield Fault(
                    path,
                    "no finite value: the type contains itself and nothing ends the recursion",
                    "make the recursive field optional, or a list",
                )
            case Ref():
                inner = self._definitions[node.name]
                yield from self.reasons(inner, path, refs | {node.name})
            case Union():
                for option in node.options:
                    yield from self.reasons(option, path, refs)
            case Array():
                yield from self.reasons(node.item, f"{path}[*]", refs)
            case Object():
                for prop in self._written(node):
                    yield from self.reasons(prop.node, f"{path}.{prop.name}", refs)
            case _:
                raise AssertionError(f"{type(node).__name__} nodes are always finite")
