"""A schema in a short form that language models read well, for the prompt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import assert_never

from structgen.schema.core_strings import ASCII, STRIPPED
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
    Raw,
    Ref,
    Schema,
    Selection,
    String,
    Union,
    Verbatim,
)

_PATTERNS = {STRIPPED: "no white space at the ends", ASCII: "ASCII only"}
"""Patterns that settings stand for, in words."""

MOST_LABELS = 40
"""Larger sets are described by their size and first members."""

MOST_OPTIONS = 40
"""Options of larger unions take a line each."""

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
                return _number(node)
            case Array():
                return self._array(node, depth)
            case Object():
                return self._object(node, depth)
            case Union() if len(node.options) > MOST_OPTIONS:
                lines = ("  " * (depth + 1) + self._short(option) for option in node.options)
                return "\n".join([f"one of {len(node.options)} forms:", *lines])
            case Union():
                return " or ".join(self.write(option, depth) for option in node.options)
            case Ref():
                return self._reference(node.name, depth)
            case AnyJson():
                return "any JSON"
            case Never():
                return "nothing"
            case Choice():
                return _labels(node)
            case Selection():
                return _selection(node)
            case Verbatim():
                return node.text.decode()
            case Raw():
                return _raw(node)
            case Parts():
                return "\nthen ".join(self._part(part.node, depth) for part in node.parts)
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

    def _short(self, node: Node) -> str:
        """One of many options on one line: of an object only what tells it from the others."""
        if not isinstance(node, Object):
            return self.write(node, 0)
        parts = (
            f'"{prop.name}": {_labels(prop.node) if isinstance(prop.node, Labels) else "..."}'
            for prop in node.properties
        )
        comment = " ".join(node.description.split())
        return f"{{{', '.join(parts)}}}" + (f"  // {comment}" if comment else "")

    def _array(self, node: Array, depth: int) -> str:
        parts = [self.write(item, depth) for item in node.prefix]
        if not isinstance(node.item, Never):
            parts += [self.write(node.item, depth), "..."]
            items = _bounded("", node.min_items or None, node.max_items, "items").strip()
        else:
            items = "" if node.min_items == len(node.prefix) else f"at least {node.min_items} items"
        kinds = [f"contains {self.write(part.item, depth)}" for part in node.contains]
        repeats = ["no repeats" * node.unique, "none below another" * node.antichain]
        notes = "; ".join(filter(None, [items.strip("()"), *repeats, *kinds]))
        return f"[{', '.join(parts)}]" + (f" ({notes})" if notes else "")

    def _part(self, node: Node, depth: int) -> str:
        """One part of a sequence; what is written as it is stands in quotes."""
        text = self.write(node, depth)
        return json.dumps(text, ensure_ascii=False) if isinstance(node, Verbatim) else text

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
        case Parts():
            for part in node.parts:
                yield from _references(part.node)
        case Object():
            for prop in node.properties:
                yield from _references(prop.node)
            for extra in node.extras:
                yield from _references(extra.value)
        case _:
            return


def _labels(node: Labels | Choice) -> str:
    constant = CONSTANTS.get(node.texts) if isinstance(node, Labels) else None
    if constant is not None:
        return constant
    shown = [text.decode() for text in (node.declared or node.texts)[:MOST_LABELS]]
    if len(node.texts) <= MOST_LABELS:
        return " or ".join(shown)
    return f"one of {len(node.texts)} choices such as {', '.join(shown[:5])}"


def _selection(node: Selection) -> str:
    separator = json.dumps(node.separator.decode(), ensure_ascii=False)
    least, most = node.min_items, node.max_items
    count = str(least) if least == most else f"{least} to {most}"
    return f"{count} different ones, with {separator} between them, of: {_labels(node.choice)}"


def _string(node: String) -> str:
    kind = node.name or "string"
    shown = "; ".join(_notes(node))
    return f"{kind} ({shown})" if shown else kind


def _notes(node: String) -> Iterator[str]:
    lengths = _bounded("", node.min_length or None, node.max_length, "characters").strip(" ()")
    if lengths:
        yield lengths
    for pattern in () if node.name else node.patterns:
        told = _PATTERNS.get(pattern)
        yield told or f"{'not ' * pattern.negated}matching {pattern.source}"
    for text in node.excluded[:5]:
        yield f"not {json.dumps(text, ensure_ascii=False)}"


def _raw(node: Raw) -> str:
    notes = list(_notes(node.content))
    if node.max_tokens is not None:
        notes.append(f"at most {node.max_tokens} tokens")
    shown = f"text ({'; '.join(notes)})" if notes else "text"
    stops = " or ".join(json.dumps(stop, ensure_ascii=False) for stop in node.stops)
    return f"{shown} up to {stops}" if stops else shown


def _number(node: Number) -> str:
    least = "more than" if node.exclusive_minimum else "at least"
    most = "less than" if node.exclusive_maximum else "at most"
    words = _bounded("number", node.minimum, node.maximum, "", least, most)
    gaps = ["not whole" if gap == 1 else f"no multiple of {_decimal(gap)}" for gap in node.gaps]
    return ", ".join([words, *gaps])


def _fixed(node: Fixed) -> str:
    unit = Fraction(1, 10**node.places)
    step = "" if node.step == 1 else f", multiple of {_decimal(node.step * unit)}"
    places = f", at most {node.places} decimals" if node.places and node.step == 1 else ""
    kind = "number" if node.places else "whole number"
    gaps = "".join(f", no multiple of {_decimal(gap * unit)}" for gap in node.gaps)
    bounds = f"from {_decimal(node.low * unit)} to {_decimal(node.high * unit)}"
    return f"{kind} ({bounds}{step}{places}{gaps})"


def _decimal(value: Fraction) -> str:
    return f"{float(value):.12g}" if abs(value) < 10**15 else f"{float(value):.3g}"


def _bounded(
    kind: str,
    low: float | None,
    high: float | None,
    unit: str,
    least: str = "at least",
    most: str = "at most",
) -> str:
    bounds: list[str] = []
    if low is not None:
        bounds.append(f"{least} {low:g}" if isinstance(low, float) else f"{least} {low}")
    if high is not None:
        bounds.append(f"{most} {high:g}" if isinstance(high, float) else f"{most} {high}")
    if not bounds:
        return kind
    text = " and ".join(bounds) + (f" {unit}" if unit else "")
    return f"{kind} ({text})" if kind else text
