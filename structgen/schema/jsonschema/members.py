"""Keywords about objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from structgen.deadline import check_deadline
from structgen.schema.jsonschema.admits import admits
from structgen.schema.jsonschema.build import make_object
from structgen.schema.jsonschema.definitions import Unrepresentable
from structgen.schema.jsonschema.documents import Json, child
from structgen.schema.jsonschema.intersect import meet_keys
from structgen.schema.jsonschema.kinds import STRING, of_kinds
from structgen.schema.jsonschema.languages import fits, is_impossible
from structgen.schema.jsonschema.reader import Reader
from structgen.schema.jsonschema.scalars import pattern_of, size
from structgen.schema.nodes import (
    AnyJson,
    Extra,
    Never,
    Node,
    Pattern,
    Property,
    String,
    Union,
    union,
)

OBJECT_KEYWORDS = frozenset(
    {
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
    }
)
MOST_REGIONS = 64
"""Kinds of keys that overlapping patterns may fall into, beyond one for each pattern."""

# The last character is left out where a quantifier follows it.
_LITERAL_START = re.compile(r"\^([A-Za-z0-9_ -]+)(?![?*{])")


def read_object(reader: Reader, schema: Json, path: str) -> Node:
    """The objects of a schema."""
    low = size(reader, schema, "minProperties", path) or 0
    high = size(reader, schema, "maxProperties", path)
    declared = _declared(reader, schema, path)
    required = names_of(reader, schema.get("required", []), child(path, "required"))
    patterns = _patterns(reader, schema, path)
    extra = _additional(reader, schema, path)
    properties = [
        Property(
            name,
            _value(reader, name, declared.get(name), patterns, extra),
            name in required,
            _description(schema, name),
        )
        for name in dict.fromkeys((*declared, *required))
    ]
    extras = key_regions(reader, patterns, extra)
    if "propertyNames" in schema:
        key = reader.part(schema["propertyNames"], child(path, "propertyNames"))
        properties, extras = _named(reader, properties, extras, key)
    node = make_object(properties, extras, low, high, _text(schema))
    return Never(node.reason, path) if isinstance(node, Never) and node.path == "$" else node


def _text(schema: Json) -> str:
    text = schema.get("description")
    return text.encode(errors="replace").decode() if isinstance(text, str) else ""


def _description(schema: Json, name: str) -> str:
    declared = schema.get("properties")
    part = declared.get(name) if isinstance(declared, dict) else None
    return _text(part) if isinstance(part, dict) and "description" in part else ""


def _is_text(reader: Reader, name: Any, path: str) -> bool:
    try:
        name.encode()
    except (AttributeError, UnicodeEncodeError):
        reader.refuse(path, f"the property name {name!r} is not text")
        return False
    return True


def _declared(reader: Reader, schema: Json, path: str) -> dict[str, Node]:
    parts = schema.get("properties", {})
    where = child(path, "properties")
    if not isinstance(parts, dict):
        reader.refuse(where, "properties must be an object of schemas")
        return {}
    return {
        name: reader.part(part, child(where, name))
        for name, part in cast(Json, parts).items()
        if _is_text(reader, name, where)
    }


def names_of(reader: Reader, names: Any, path: str) -> dict[str, None]:
    """The names in a list of required properties, in order."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        hint = "list the required names in the object around" if isinstance(names, bool) else ""
        reader.refuse(path, "it must be a list of property names", hint)
        return {}
    listed = cast(list[str], names)
    return dict.fromkeys(name for name in listed if _is_text(reader, name, path))


def _patterns(reader: Reader, schema: Json, path: str) -> list[tuple[Pattern, Node]]:
    parts = schema.get("patternProperties", {})
    where = child(path, "patternProperties")
    if not isinstance(parts, dict):
        reader.refuse(where, "patternProperties must be an object of schemas")
        return []
    found: list[tuple[Pattern, Node]] = []
    for source, part in cast(Json, parts).items():
        pattern = pattern_of(reader, source, child(where, source))
        node = reader.part(part, child(where, source))
        if pattern is not None:
            found.append((pattern, node))
    return found


def _additional(reader: Reader, schema: Json, path: str) -> Node:
    if "additionalProperties" not in schema:
        return AnyJson()
    return reader.part(schema["additionalProperties"], child(path, "additionalProperties"))


def _value(
    reader: Reader,
    name: str,
    declared: Node | None,
    patterns: list[tuple[Pattern, Node]],
    extra: Node,
) -> Node:
    """What the value of a named property may be."""
    if declared is not None and not patterns:
        return declared
    values = [node for pattern, node in patterns if fits(pattern, name)]
    if declared is not None:
        values.insert(0, declared)
    node: Node = AnyJson() if values else extra
    for value in values:
        node = reader.meet(node, value)
    if isinstance(node, Never) and node is extra:
        return Never(f"{name!r} is not a declared property", node.path)
    return node


@dataclass(frozen=True, slots=True)
class _Region:
    """Keys that fit some patterns and not some others, and what their values may be."""

    inside: tuple[Pattern, ...]
    outside: tuple[Pattern, ...]
    value: Node

    def key(self) -> String:
        return String(patterns=(*self.inside, *map(_opposite, self.outside)))


def key_regions(reader: Reader, patterns: list[tuple[Pattern, Node]], extra: Node) -> list[Extra]:
    """Kinds of undeclared properties, so that each key is in the kind of all its patterns.

    Example: patterns a and b give up to four kinds: a and b, a only, b only, neither.

    Raises:
        Unrepresentable: they are too many.
    """
    regions: list[_Region] = []
    for i, (pattern, node) in enumerate(patterns):
        check_deadline()
        regions = [part for region in regions for part in _split(reader, region, pattern, node)]
        before = [p for p, value in patterns[:i] if value != node and _overlap(p, pattern)]
        regions.append(_Region((pattern,), tuple(before), node))
        regions = [part for part in regions if not is_impossible(part.key())]
        if len(regions) > MOST_REGIONS + len(patterns):
            raise Unrepresentable(
                f"the patterns of patternProperties overlap in more than {MOST_REGIONS} ways"
            )
    rest = _Region((), tuple(pattern for pattern, _ in patterns), extra)
    if not isinstance(extra, Never) and not _is_covered(rest.outside):
        regions.append(rest)
    return [Extra(part.key(), part.value) for part in regions if not isinstance(part.value, Never)]


def _split(reader: Reader, region: _Region, pattern: Pattern, node: Node) -> Iterator[_Region]:
    """A kind of keys, divided by one more pattern where that makes a difference."""
    if region.value == node or any(not _overlap(pattern, p) for p in region.inside):
        yield region
        return
    value = reader.meet(region.value, node)
    yield _Region((*region.inside, pattern), region.outside, value)
    yield _Region(region.inside, (*region.outside, pattern), region.value)


def _opposite(pattern: Pattern) -> Pattern:
    return Pattern(pattern.source, pattern.dialect, not pattern.negated)


def _overlap(a: Pattern, b: Pattern) -> bool:
    """Whether some key may fit both patterns."""
    if not _compatible(_start(a.source), _start(b.source)):
        return False
    return not is_impossible(String(patterns=(a, b)))


def _compatible(a: str, b: str) -> bool:
    return a.startswith(b) or b.startswith(a)


@lru_cache(maxsize=1024)
def _start(source: str) -> str:
    """Text with which all that fits a pattern begins; empty where that is not plain to see."""
    found = _LITERAL_START.match(source)
    return found[1] if found and "|" not in source else ""


def _is_covered(patterns: tuple[Pattern, ...]) -> bool:
    """Whether every key fits one of the patterns; of many patterns, only one by one."""
    opposites = [_opposite(pattern) for pattern in patterns]
    if any(is_impossible(String(patterns=(pattern,))) for pattern in opposites):
        return True
    return 1 < len(opposites) <= 8 and is_impossible(String(patterns=tuple(opposites)))


def _named(
    reader: Reader, properties: Iterable[Property], extras: Iterable[Extra], key: Node
) -> tuple[list[Property], list[Extra]]:
    """Properties whose names fit `propertyNames`."""
    parts = of_kinds(reader.definitions, key, STRING)
    texts = union([reader.meet(part, String()) for part in parts])
    options = texts.options if isinstance(texts, Union) else (texts,)
    allowed: list[Property] = []
    for part in properties:
        if not admits(reader.definitions, texts, part.name):
            part = Property(part.name, Never("propertyNames forbids it"), part.required)
        allowed.append(part)
    return allowed, [
        Extra(met, extra.value)
        for extra in extras
        for option in options
        if not isinstance(met := meet_keys(extra.key, option), Never)
    ]
