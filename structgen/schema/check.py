"""Which parts of a schema no finite value can ever match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from structgen.deadline import check_deadline
from structgen.errors import Fault
from structgen.schema.label_checks import most_together
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Choice,
    Embedded,
    Fixed,
    Integer,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Parts,
    Property,
    Raw,
    Ref,
    Schema,
    Selection,
    String,
    Union,
    Verbatim,
)
from structgen.schema.raw import has_text
from structgen.schema.rewrite import parts, rewritten_schema
from structgen.schema.strings import has_string


def unsatisfiable(schema: Schema, *, require_all: bool = False) -> tuple[Fault, ...]:
    """Why the root cannot be matched; empty if it can be.

    Example: `class A: a: A` gives `$.a: no finite value ...`

    Args:
        require_all: as if every property were required.
    """
    return _faults(_Checker(schema.definitions, require_all), schema.root)


def possible(schema: Schema) -> tuple[Schema, tuple[Fault, ...]]:
    """The schema with `Never` in place of every part that no finite value matches.

    Such a part may stand where nothing has to be written. The automaton would begin it and end
    nowhere, and parts that must differ would count it as a way to go on.

    Returns with it why the root cannot be matched; empty if it can be.
    """
    checker = _Checker(schema.definitions, False)
    impossible = _faults(checker, schema.root)
    return (schema, impossible) if impossible else (_pruned(checker, schema), ())


def _faults(checker: _Checker, root: Node) -> tuple[Fault, ...]:
    if checker.is_finite(root):
        return ()
    return tuple(dict.fromkeys(checker.reasons(root, "$", frozenset())))


def _pruned(checker: _Checker, schema: Schema) -> Schema:
    def change(node: Node) -> Node:
        check_deadline()
        return node if checker.is_finite(node) else Never("no finite value matches")

    if not any(
        checker.is_suspect(node) for node in parts(schema.root, *schema.definitions.values())
    ):
        return schema
    return rewritten_schema(schema, change)


class _Checker:
    """Which definitions some finite value matches: a least fixed point."""

    def __init__(self, definitions: Mapping[str, Node], require_all: bool) -> None:
        self._definitions = definitions
        self._require_all = require_all
        self._finite: set[str] = set()
        unknown = list(definitions)
        while True:
            # To and fro: in one of the directions most come behind what they need.
            left = [name for name in reversed(unknown) if not self._is_found_finite(name)]
            if len(left) == len(unknown):
                break
            unknown = left

    def _is_found_finite(self, name: str) -> bool:
        if not self.is_finite(self._definitions[name]):
            return False
        self._finite.add(name)
        return True

    def is_suspect(self, node: Node) -> bool:
        """Whether a node is impossible although all of its parts are possible."""
        match node:
            case Object():
                return not node.extras and node.min_properties > len(node.properties)
            case Array():
                return _has_too_few_choices(node)
            case Never() | Ref() | String():
                return not self.is_finite(node)
            case _:
                return False

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
                return self._is_finite_array(node)
            case Embedded():
                return self.is_finite(node.node)
            case Object():
                return self._is_finite_object(node)
            case String():
                return has_string(node)
            case Raw():
                return has_text(node)
            case Parts():
                return all(self.is_finite(part.node) for part in node.parts)
            case Labels() | Integer() | Number() | Fixed() | AnyJson():
                return True
            case Choice() | Selection() | Verbatim():
                return True
            case _:
                assert_never(node)

    def _is_finite_array(self, node: Array) -> bool:
        first = node.prefix[: node.min_items]
        rest = node.min_items <= len(node.prefix) or self.is_finite(node.item)
        needed = (part.item for part in node.contains if part.minimum)
        if not rest or _has_too_few_choices(node):
            return False
        return all(map(self.is_finite, first)) and all(map(self.is_finite, needed))

    def _is_finite_object(self, node: Object) -> bool:
        # Each part is visited once: twice at every level would be exponential in the nesting.
        written = {prop.name for prop in self._written(node)}
        known = 0
        for prop in node.properties:
            if prop.name in written or node.min_properties:
                finite = self.is_finite(prop.node)
                known += finite
                if prop.name in written and not finite:
                    return False
        return known >= node.min_properties or any(
            self.is_finite(extra.key) and self.is_finite(extra.value) for extra in node.extras
        )

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
                yield from self._array_reasons(node, path, refs)
            case Embedded():
                yield from self.reasons(node.node, path, refs)
            case Object():
                for prop in self._written(node):
                    yield from self.reasons(prop.node, f"{path}.{prop.name}", refs)
                if all(self.is_finite(prop.node) for prop in self._written(node)):
                    yield Fault(path, f"it cannot have {node.min_properties} properties")
            case String():
                yield Fault(path, "no string agrees with all of its patterns and lengths")
            case Raw():
                yield Fault(path, "no text agrees with its pattern and lengths")
            case Parts():
                for part in node.parts:
                    yield from self.reasons(part.node, path + part.step, refs)
            case _:
                raise AssertionError(f"{type(node).__name__} nodes are always finite")

    def _array_reasons(self, node: Array, path: str, refs: frozenset[str]) -> Iterator[Fault]:
        for index, item in enumerate(node.prefix[: node.min_items]):
            yield from self.reasons(item, f"{path}[{index}]", refs)
        if node.min_items > len(node.prefix):
            yield from self.reasons(node.item, f"{path}[*]", refs)
        for part in node.contains if node.min_items else ():
            yield from self.reasons(part.item, f"{path}[*]", refs)
        if _has_too_few_choices(node):
            yield Fault(path, f"it needs {node.min_items} different items of fewer choices")


def _has_too_few_choices(node: Array) -> bool:
    """Whether more items must differ than there are labels."""
    if not node.unique or node.prefix or not isinstance(node.item, Labels):
        return False
    if node.min_items > len(node.item.texts):
        return True
    return node.antichain and node.min_items > most_together(node.item.texts, node.separator)
