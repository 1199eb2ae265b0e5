"""Where a reference leads: JSON pointers, anchors and identifiers inside one document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

from structgen.errors import LimitError

Json: TypeAlias = dict[str, Any]

MOST_LEVELS = 64
"""Nesting of the schema as it is written; a recursive schema may go deeper while generating."""

MOST_PARTS = 10_000
"""Dicts and lists of a schema that are looked through for identifiers."""

MOST_INDEX_DIGITS = 9

_IDENTIFIERS = frozenset({"$id", "id", "$anchor", "$dynamicAnchor"})
_ONE = {
    "items",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
}
_SEVERAL = {"prefixItems", "items", "allOf", "anyOf", "oneOf"}
_NAMED = {
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema, with where it is and what its references are relative to."""

    schema: Any
    path: str
    base: str


@dataclass(slots=True)
class Document:
    """One schema with the names of its parts."""

    root: Any
    old: bool
    """A draft before 2019-09: `$ref` hides its siblings, `$id` may be an anchor."""
    is_2019: bool = False
    """Draft 2019-09: items that `contains` finds do not count as evaluated."""
    _resources: dict[str, Place] = field(default_factory=dict[str, Place])
    _anchors: dict[tuple[str, str], Place] = field(
        default_factory=lambda: dict[tuple[str, str], Place]()
    )
    dynamic: dict[str, list[Place]] = field(default_factory=lambda: dict[str, list[Place]]())
    """Where each `$dynamicAnchor` is."""
    _bases: dict[int, str] = field(default_factory=dict[int, str])
    _found: dict[tuple[str, str], Place | None] = field(
        default_factory=lambda: dict[tuple[str, str], Place | None]()
    )
    _indexed: bool = False

    def base_of(self, schema: Json, base: str) -> str:
        """What references in a schema are relative to."""
        name = schema.get("$id", schema.get("id") if self.old else None)
        if not isinstance(name, str) or (self.old and "$ref" in schema):
            return base
        return _join(base, name) if not name.startswith("#") else base

    def find(self, reference: str, base: str) -> Place | None:
        """What a reference leads to; None if that is outside of the document or nothing."""
        key = (reference, base)
        if key not in self._found:
            self._found[key] = self._find(reference, base)
        return self._found[key]

    def _find(self, reference: str, base: str) -> Place | None:
        self._index()
        if reference.startswith("#"):
            address, fragment = base, reference[1:]
        else:
            address, fragment = urldefrag(_join(base, reference, keep=True))
        place = self._resources.get(address)
        if place is None or not fragment:
            return place
        fragment = unquote(fragment)
        if fragment.startswith("/"):
            return self._pointer(place, fragment)
        return self._anchors.get((address, fragment))

    def is_inside(self, reference: str, base: str) -> bool:
        """Whether a reference names a resource of this document."""
        self._index()
        if reference.startswith("#"):
            return base in self._resources
        return urldefrag(_join(base, reference, keep=True))[0] in self._resources

    def _pointer(self, place: Place, pointer: str) -> Place | None:
        value, path, base = place.schema, place.path, place.base
        for token in pointer.split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and _is_index(token) and int(token) < len(value):
                value = value[int(token)]
                path = f"{path}[{token}]"
            elif isinstance(value, dict) and token in value:
                value = value[token]
                path = child(path, token)
            else:
                return None
            base = self._bases.get(id(value), base)
        return Place(value, path, base)

    def _index(self) -> None:
        if self._indexed:
            return
        self._indexed = True
        todo = [(Place(self.root, "$", ""), 0)]
        self._resources[""] = todo[0][0]
        if not isinstance(self.root, dict):
            return
        if not _may_name_parts(self.root):
            self._note(todo[0][0])
            return  # then everything is relative to the root, and paths need not be made
        while todo:
            place, level = todo.pop()
            if level > 10 * MOST_LEVELS:
                raise LimitError(too_deep(place.path))
            if isinstance(place.schema, dict):
                here = self._note(place)
                todo.extend((part, level + 1) for part in _parts(here))

    def _note(self, place: Place) -> Place:
        schema: Json = place.schema
        base = self.base_of(schema, place.base)
        here = place if base == place.base else Place(schema, place.path, base)
        self._bases[id(schema)] = base
        if base != place.base or place.path == "$":
            self._resources[base] = here
        self._resources.setdefault(base, here)
        if self.old:
            name = schema.get("$id", schema.get("id"))
            if isinstance(name, str) and "#" in name and not name.endswith("#"):
                self._anchors[base, name.split("#")[1]] = here
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                self._anchors[base, name] = here
                if keyword == "$dynamicAnchor":
                    self.dynamic.setdefault(name, []).append(here)
        return here


def _may_name_parts(root: Json) -> bool:
    """Whether a part may have an identifier or an anchor; also where that is hard to tell.

    What the root calls itself says nothing of its parts.
    """
    parts: list[Any] = [*root.values()]
    count = 0
    for _ in range(MOST_LEVELS):  # a level at a time
        # A part in many places is looked at once.
        parts = [*{id(part): part for part in parts if isinstance(part, (dict, list))}.values()]
        count += len(parts)
        if not parts or count > MOST_PARTS:
            break
        inner: list[Any] = []
        for part in parts:
            if isinstance(part, dict):
                if not _IDENTIFIERS.isdisjoint(part) and _is_named(cast(Json, part)):
                    return True
                part = part.values()
            inner += [value for value in part if isinstance(value, (dict, list))]
        parts = inner
    return bool(parts)


def _is_named(schema: Json) -> bool:
    return any(isinstance(schema.get(name), str) for name in _IDENTIFIERS)


def _is_index(token: str) -> bool:
    """Whether a step of a pointer counts the items of a list; Python reads no endless digits."""
    return token.isdecimal() and len(token) <= MOST_INDEX_DIGITS


def _join(base: str, reference: str, *, keep: bool = False) -> str:
    if not base and reference.startswith("#"):
        return reference if keep else ""
    try:
        joined = urljoin(base, reference) if reference else base
        if base.startswith("urn:") and reference.startswith("#"):
            joined = urldefrag(base)[0] + reference
    except ValueError:  # such as a port that is no number
        joined = reference
    return joined if keep else urldefrag(joined)[0]


def _parts(place: Place) -> Iterator[Place]:
    schema: Json = place.schema
    for keyword, part in schema.items():
        if isinstance(part, dict):
            if keyword in _ONE:
                yield Place(part, child(place.path, keyword), place.base)
            elif keyword in _NAMED:
                path = child(place.path, keyword)
                for name, inner in cast(Json, part).items():
                    yield Place(inner, child(path, str(name)), place.base)
        elif isinstance(part, list) and keyword in _SEVERAL:
            for i, inner in enumerate(cast(list[Any], part)):
                yield Place(inner, f"{child(place.path, keyword)}[{i}]", place.base)


def child(path: str, name: str) -> str:
    """The path of a part: `$.properties.name`, or `$.properties["first name"]`."""
    return f"{path}.{name}" if name.replace("$", "a").isidentifier() else f'{path}["{name}"]'


def too_deep(path: str) -> str:
    """What to say about a schema that is nested too deeply."""
    return (
        f"the schema is nested more than {MOST_LEVELS} levels deep, at {path[:60]}...; flatten it, "
        "or write the nesting as a recursive definition"
    )
