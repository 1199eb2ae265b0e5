"""Keywords about arrays."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from structgen.schema import nodes
from structgen.schema.jsonschema.arrays import make_array
from structgen.schema.jsonschema.definitions import Unrepresentable
from structgen.schema.jsonschema.documents import Json, child
from structgen.schema.jsonschema.intersect import meet
from structgen.schema.jsonschema.reader import Reader
from structgen.schema.jsonschema.scalars import size
from structgen.schema.nodes import AnyJson, Array, Contains, Never, Node

ARRAY_KEYWORDS = frozenset(
    {
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "minItems",
        "maxItems",
        "uniqueItems",
    }
)


def read_array(reader: Reader, schema: Json, path: str) -> Node:
    """The arrays of a schema."""
    low = size(reader, schema, "minItems", path) or 0
    high = size(reader, schema, "maxItems", path)
    prefix, item = _items(reader, schema, path)
    contains = _contains(reader, schema, path, (*prefix, item))
    unique = schema.get("uniqueItems", False)
    if not isinstance(unique, bool):
        reader.refuse(child(path, "uniqueItems"), "uniqueItems must be true or false")
    if high is not None and low > high:
        return Never(f"minItems {low} is more than maxItems {high}", path)
    node = Array(item, low, high, prefix, contains, unique is True)
    made = make_array(node, partial(meet, reader.definitions))
    return Never(made.reason, path) if isinstance(made, Never) and made.path == "$" else made


def _items(reader: Reader, schema: Json, path: str) -> tuple[tuple[Node, ...], Node]:
    """What the first items may be, and what the others may be."""
    first, rest = "prefixItems", "items"
    if isinstance(schema.get("items"), list):  # as drafts before 2020-12 have it
        first, rest = "items", "additionalItems"
    parts = schema.get(first, [])
    where = child(path, first)
    if not isinstance(parts, list):
        reader.refuse(where, f"{first} must be a list of schemas")
        parts = []
    prefix = tuple(
        reader.part(part, f"{where}[{i}]") for i, part in enumerate(cast(list[Any], parts))
    )
    item = reader.part(schema[rest], child(path, rest)) if rest in schema else AnyJson()
    return prefix, item


def _contains(
    reader: Reader, schema: Json, path: str, items: tuple[Node, ...]
) -> tuple[Contains, ...]:
    if "contains" not in schema:
        return ()
    reader.definitions.contains = True
    low = size(reader, schema, "minContains", path)
    low = 1 if low is None else low
    high = size(reader, schema, "maxContains", path)
    where = child(path, "contains")
    kind = reader.part(schema["contains"], where)
    if high is not None and low > high:
        return (Contains(Never(f"minContains {low} is more than maxContains {high}"), AnyJson()),)
    if high is None:
        return (Contains(kind, AnyJson(), low),) if low else ()
    try:
        rest = reader.minus(nodes.union(items), kind)
    except Unrepresentable as error:
        reader.refuse(child(path, "maxContains"), f"{error}")
        return ()
    return (Contains(kind, rest, low, high),)
