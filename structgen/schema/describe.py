"""A schema in a short form that language models read well, for the prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import assert_never

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

MOST_LABELS = 40
"""Larger sets are described by their size and first members."""

CONSTANTS: dict[tuple[bytes, ...], str] = {
    (b"false", b"true"): "true or false",
    (b"null",): "null",
}


def describe(schema: Schema) -> str:
    """The schema as an outline of its JSON, with the author's descriptions as comments.

    Example: `{"team": "billing" or "sales"}`
    """
    writer = _Writer(schema.definitions, schema.root)
    text = writer.write(schema.root, 0)
    parts = [text]
    while writer.pending:
        name = writer.pending.pop(0)
        parts.append(f"{name}: {writer.write(schema.definitions[name], 0)}")
    return "\n".join(parts)


class _Writer:
    def __init__(self, definitions: Mapping[str, Node], root: Node) -> None:
        self._definitions = definitions
        self._named = _named(definitions, root)
        self.names: set[str] = set()
        self.pending: list[str] = []

    def write(self, node: Node, depth: int) -> str:
        match node:
            case Labels():
                return _labels(node)
            case String():
                return _bounded("string", node.min_length or None, node.max_length, "characters")
            case Integer():
                return _bounded("whole number", node.minimum, node.maximum, "")
            case Number():
                return _bounded("number", node.minimum, node.maximum, "")
            case Array():
                items = _bounded("", node.min_items or None, node.max_items, "items").strip()
                return f"[{self.write(node.item, depth)}, ...]" + (f" ({items})" if items else "")
            case Map():
                return f"{{string: {self.write(node.value, depth)}, ...}}"
            case Object():
                return self._object(node, depth)
            case Union():
                return " or ".join(self.write(option, depth) for option in node.options)
            case Ref():
                return self._reference(node.name, depth)
            case AnyJson():
                return "any JSON"
            case Never():
                return "nothing"
            case _:
                assert_never(node)

    def _object(self, node: Object, depth: int) -> str:
        indent = "  " * (depth + 1)
        lines = [f"{indent}// {line}" for line in node.description.splitlines() if line.strip()]
        for prop in node.properties:
            optional = "" if prop.required else " (may be left out)"
            comment = f"  // {' '.join(prop.description.split())}" if prop.description else ""
            value = self.write(prop.node, depth + 1)
            lines.append(f'{indent}"{prop.name}": {value}{optional}{comment}')
        if node.extra is not None:
            lines.append(f"{indent}any other key: {self.write(node.extra, depth + 1)}")
        return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}" if lines else "{}"

    def _reference(self, name: str, depth: int) -> str:
        """A definition is written in place, unless it contains itself or is used repeatedly."""
        if name not in self._named:
            return self.write(self._definitions[name], depth)
        if name not in self.names:
            self.names.add(name)
            self.pending.append(name)
        return name


def _named(definitions: Mapping[str, Node], root: Node) -> frozenset[str]:
    """Definitions that are written once, under their name."""
    uses = Counter[str]()
    for node in (root, *definitions.values()):
        uses.update(_references(node))
    simple = (Labels, String, Integer, Number)
    repeated = {
        name for name, n in uses.items() if n > 1 and not isinstance(definitions[name], simple)
    }
    return _recursive(definitions) | repeated


def _recursive(definitions: Mapping[str, Node]) -> frozenset[str]:
    """Definitions that can be reached from themselves."""
    direct = {name: set(_references(node)) for name, node in definitions.items()}

    def reaches_itself(name: str) -> bool:
        seen: set[str] = set()
        pending = list(direct[name])
        while pending:
            at = pending.pop()
            if at == name:
                return True
            if at not in seen:
                seen.add(at)
                pending.extend(direct.get(at, ()))
        return False

    return frozenset(name for name in definitions if reaches_itself(name))


def _references(node: Node) -> Iterator[str]:
    """The definitions that a node refers to, as often as it does."""
    match node:
        case Ref():
            yield node.name
        case Array():
            yield from _references(node.item)
        case Map():
            yield from _references(node.value)
        case Union():
            for option in node.options:
                yield from _references(option)
        case Object():
            for prop in node.properties:
                yield from _references(prop.node)
            if node.extra is not None:
                yield from _references(node.extra)
        case _:
            return


def _labels(node: Labels) -> str:
    constant = CONSTANTS.get(node.texts)
    if constant is not None:
        return constant
    shown = [text.decode() for text in (node.declared or node.texts)[:MOST_LABELS]]
    if len(node.texts) <= MOST_LABELS:
        return " or ".join(shown)
    return f"one of {len(node.texts)} choices such as {', '.join(shown[:5])}"


def _bounded(kind: str, low: float | None, high: float | None, unit: str) -> str:
    bounds: list[str] = []
    if low is not None:
        bounds.append(f"at least {low:g}" if isinstance(low, float) else f"at least {low}")
    if high is not None:
        bounds.append(f"at most {high:g}" if isinstance(high, float) else f"at most {high}")
    if not bounds:
        return kind
    text = " and ".join(bounds) + (f" {unit}" if unit else "")
    return f"{kind} ({text})" if kind else text
