"""Which rules a field or a class silences by itself, wherever it is a part of a schema.

Example: `Field(json_schema_extra={"structgen_ignore": ["SG108"]})`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

from structgen.errors import OptionError
from structgen.schema.nodes import Object, Property

KEY = "structgen_ignore"

Json: TypeAlias = Mapping[str, Any]


_of_classes: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def silence_class(owner: type, rules: frozenset[str]) -> None:
    """Rules that a class ignores, also inside of other classes."""
    _of_classes[owner] = rules


class _Entry(NamedTuple):
    names: frozenset[str]
    """What the field may be called in JSON; of a class, all its fields."""
    siblings: frozenset[str]
    """The same of all fields of its object."""
    rules: frozenset[str]
    n_fields: int = 0
    """Of the class, 0 for the entry of a field."""


class Silences:
    """The entries of a JSON Schema or of a Pydantic core schema.

    Nodes do not keep such metadata, so a field is found by its name and its siblings' names.
    """

    def __init__(self, source: object) -> None:
        self._entries = tuple(_entries(source))

    def of(self, owner: Object | None, field: Property | None) -> frozenset[str]:
        """Codes and names of the rules that a field silences."""
        if owner is None or field is None:
            return frozenset()
        found = [entry.rules for entry in self._around(owner) if field.name in entry.names]
        return frozenset().union(*found)

    def of_object(self, node: Object) -> frozenset[str]:
        """Codes and names of the rules that the class of an object silences."""
        return frozenset().union(*(e.rules for e in self._around(node) if e.n_fields))

    def _around(self, owner: Object) -> list[_Entry]:
        """The entries of the classes that an object may be of."""
        names = {prop.name for prop in owner.properties}
        return [entry for entry in self._entries if _fits(entry, names)]

    def __iter__(self) -> Iterator[str]:
        """Every rule that any field silences."""
        for entry in self._entries:
            yield from entry.rules


def _fits(entry: _Entry, names: set[str]) -> bool:
    """Whether an entry may be about an object with these properties.

    A class has them all; a JSON Schema may have some more, or fewer, beside an `allOf`.
    """
    if entry.n_fields:
        return names <= entry.siblings and len(names) == entry.n_fields
    return names <= entry.siblings or entry.siblings <= names


def _entries(source: object) -> Iterator[_Entry]:
    pending, seen = [source], set[int]()
    while pending:
        part = pending.pop()
        if id(part) in seen or not isinstance(part, Mapping | list | tuple):
            continue
        seen.add(id(part))
        if isinstance(part, Mapping):
            part = cast(Json, part)
            yield from _of_fields(_fields(part))
            yield from _of_class(part)
            pending.extend(part.values())
        else:
            pending.extend(cast("list[object]", part))


def _fields(part: Json) -> list[tuple[frozenset[str], object]]:
    """Names and extras of the fields that a part of a schema declares."""
    properties, fields = part.get("properties"), part.get("fields")
    if isinstance(properties, Mapping):
        of_json = cast("Mapping[str, object]", properties)
        return [(frozenset([name]), extra) for name, extra in of_json.items()]
    if isinstance(fields, Mapping):
        of_core = cast("Mapping[str, Json]", fields)
        return [(_names(name, field), _extra(field)) for name, field in of_core.items()]
    if isinstance(fields, list):
        arguments = [cast(Json, field) for field in fields if isinstance(field, Mapping)]
        return [(_names(str(field.get("name")), field), _extra(field)) for field in arguments]
    return []


def _names(name: str, field: Json) -> frozenset[str]:
    alias = field.get("validation_alias")
    if isinstance(alias, str):
        return frozenset([name, alias])
    paths = cast("list[object]", alias if isinstance(alias, list) else [])
    choices = [path[0] for path in paths if isinstance(path, list) and path]
    return frozenset([name, *(choice for choice in choices if isinstance(choice, str))])


def _extra(field: Json) -> object:
    metadata = field.get("metadata") or {}
    return metadata.get("pydantic_js_extra") if isinstance(metadata, Mapping) else None


def _of_fields(fields: list[tuple[frozenset[str], object]]) -> Iterator[_Entry]:
    siblings = frozenset[str]().union(*(names for names, _ in fields))
    for names, extra in fields:
        if isinstance(extra, Mapping) and KEY in extra:
            yield _Entry(names, siblings, _rules(cast(Json, extra)[KEY]))


def _of_class(part: Json) -> Iterator[_Entry]:
    """The entry of a model or dataclass that ignores rules by itself."""
    owner = part.get("cls")
    rules = _of_classes.get(owner) if isinstance(owner, type) else None
    inner = part.get("schema")
    while isinstance(inner, Mapping) and not _fields(cast(Json, inner)):
        inner = cast(Json, inner).get("schema")
    if rules and isinstance(inner, Mapping):
        fields = _fields(cast(Json, inner))
        names = frozenset[str]().union(*(names for names, _ in fields))
        yield _Entry(names, names, rules, len(fields))


def _rules(value: object) -> frozenset[str]:
    if isinstance(value, list | tuple):
        rules = cast("list[object]", value)
        if all(isinstance(rule, str) for rule in rules):
            return frozenset(cast("list[str]", rules))
    raise OptionError(f"{KEY}={value!r} must be a list of rule codes such as ['SG108']")
