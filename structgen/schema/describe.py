"""A schema in a short form that language models read well, for the prompt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import assert_never

from structgen.schema.nodes import (
    AnyJson,
    Array,
    Embedded,
    Fixed,
    Integer,
    Labels,
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
                return _string(node)
            case Fixed():
                return _fixed(node)
            case Embedded():
                return f"string of JSON: {self.write(node.node, depth)}"
            case Integer():
                return _bounded("whole number", node.minimum, node.maximum, "")
            case Number():
                return _bounded("number", node.minimum, node.maximum, "")
            case Array():
                return self._array(node, depth)
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
        if not lines and len(node.extras) == 1:
            extra = node.extras[0]
            return f"{{{self.write(extra.key, depth)}: {self.write(extra.value, depth)}, ...}}"
        for extra in node.extras:
            key = "any other key" if extra.key == String() else self.write(extra.key, depth + 1)
            lines.append(f"{indent}{key}: {self.write(extra.value, depth + 1)}")
        return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}" if lines else "{}"

    def _array(self, node: Array, depth: int) -> str:
        parts = [self.write(item, depth) for item in node.prefix]
        if not isinstance(node.item, Never):
            parts += [self.write(node.item, depth), "..."]
            items = _bounded("", node.min_items or None, node.max_items, "items").strip()
        else:
            items = "" if node.min_items == len(node.prefix) else f"at least {node.min_items} items"
        kinds = [f"contains {self.write(part.item, depth)}" for part in node.contains]
        notes = "; ".join(filter(None, [items.strip("()"), "no repeats" * node.unique, *kinds]))
        return f"[{', '.join(parts)}]" + (f" ({notes})" if notes else "")

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
    simple = (Labels, String, Integer, Number, Fixed)
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
            for item in (node.item, *node.prefix, *(part.item for part in node.contains)):
                yield from _references(item)
        case Embedded():
            yield from _references(node.node)
        case Union():
            for option in node.options:
                yield from _references(option)
        case Object():
            for prop in node.properties:
                yield from _references(prop.node)
            for extra in node.extras:
                yield from _references(extra.value)
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


def _string(node: String) -> str:
    kind = node.name or "string"
    notes = [_bounded("", node.min_length or None, node.max_length, "characters").strip(" ()")]
    if not node.name:
        notes += [
            f"{'not ' * pattern.negated}matching {pattern.source}" for pattern in node.patterns
        ]
    notes += [f"not {json.dumps(text, ensure_ascii=False)}" for text in node.excluded[:5]]
    shown = "; ".join(filter(None, notes))
    return f"{kind} ({shown})" if shown else kind


def _fixed(node: Fixed) -> str:
    unit = Fraction(1, 10**node.places)
    step = "" if node.step == 1 else f", multiple of {_decimal(node.step * unit)}"
    places = f", at most {node.places} decimals" if node.places and node.step == 1 else ""
    kind = "number" if node.places else "whole number"
    return (
        f"{kind} (from {_decimal(node.low * unit)} to {_decimal(node.high * unit)}{step}{places})"
    )


def _decimal(value: Fraction) -> str:
    return f"{float(value):.12g}" if abs(value) < 10**15 else f"{float(value):.3g}"


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
