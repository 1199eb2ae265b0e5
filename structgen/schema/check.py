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
    Ref,
    Schema,
    String,
    Union,
)

TOO_DEEP = 10_000


def unsatisfiable(schema: Schema) -> tuple[Fault, ...]:
    """Why the root cannot be matched; empty if it can be.

    Example: `class A: a: A` gives `$.a: no finite value ...`
    """
    finite = _finite_definitions(schema.definitions)
    if _is_finite(schema.root, finite):
        return ()
    return tuple(dict.fromkeys(_reasons(schema.root, schema.definitions, finite, "$", frozenset())))


def _finite_definitions(definitions: Mapping[str, Node]) -> frozenset[str]:
    """Definitions that some finite value matches: a least fixed point."""
    finite: set[str] = set()
    while True:
        found = {
            name
            for name, node in definitions.items()
            if name not in finite and _is_finite(node, finite)
        }
        if not found:
            return frozenset(finite)
        finite |= found


def _is_finite(node: Node, finite: frozenset[str] | set[str]) -> bool:
    match node:
        case Never():
            return False
        case Ref():
            return node.name in finite
        case Union():
            return any(_is_finite(option, finite) for option in node.options)
        case Array():
            return node.min_items == 0 or _is_finite(node.item, finite)
        case Object():
            return all(_is_finite(p.node, finite) for p in node.properties if p.required)
        case Map() | Labels() | String() | Integer() | Number() | AnyJson():
            return True
        case _:
            assert_never(node)


def _reasons(
    node: Node,
    definitions: Mapping[str, Node],
    finite: frozenset[str],
    path: str,
    refs: frozenset[str],
) -> Iterator[Fault]:
    """The innermost impossible parts, each with its path."""
    if _is_finite(node, finite):
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
            inner = definitions[node.name]
            yield from _reasons(inner, definitions, finite, path, refs | {node.name})
        case Union():
            for option in node.options:
                yield from _reasons(option, definitions, finite, path, refs)
        case Array():
            yield from _reasons(node.item, definitions, finite, f"{path}[*]", refs)
        case Object():
            for prop in node.properties:
                if prop.required:
                    inner_path = f"{path}.{prop.name}"
                    yield from _reasons(prop.node, definitions, finite, inner_path, refs)
        case _:
            raise AssertionError(f"{type(node).__name__} nodes are always finite")
