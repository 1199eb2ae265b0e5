"""Keywords that combine schemas for one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from structgen.schema import nodes
from structgen.schema.jsonschema.definitions import Unrepresentable
from structgen.schema.jsonschema.disjoint import are_disjoint, disjoint
from structgen.schema.jsonschema.documents import Json, Place, child
from structgen.schema.jsonschema.intersect import MOST_OPTIONS
from structgen.schema.jsonschema.kinds import ANY_OBJECT, PARTS
from structgen.schema.jsonschema.members import names_of
from structgen.schema.jsonschema.reader import Reader
from structgen.schema.nodes import AnyJson, Never, Node, Object, Property, Union


def apply_references(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """`$ref` and its relatives."""
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            where = child(path, keyword)
            place = place_of(reader, keyword, schema[keyword], where)
            if isinstance(place, Never):
                return place
            node = reader.meet(node, reader.target(place.schema, place.path, place.base))
    return node


def place_of(reader: Reader, keyword: str, reference: Any, path: str) -> Place | Never:
    """What a reference leads to, or the fault that it leads nowhere."""
    if not isinstance(reference, str):
        return reader.refuse(path, "a reference must be a string")
    if keyword == "$recursiveRef":
        reference = "#"
    document = reader.document
    place = document.find(reference, reader.base)
    if place is None:
        shown = repr(reference[:80])
        if document.is_inside(reference, reader.base):
            return reader.refuse(path, f"the reference {shown} leads to nothing in this schema")
        return reader.refuse(
            path,
            f"the reference {shown} leads out of this schema",
            "copy what it refers to into $defs",
        )
    name = reference.rpartition("#")[2]
    if keyword == "$dynamicRef" and name in document.dynamic:
        places = document.dynamic[name]
        if any(place.path == known.path for known in places) and len(places) > 1:
            return reader.refuse(
                path,
                f"which $dynamicAnchor {name!r} it means depends on the way that leads here",
                "use $ref",
            )
    return place


def subschemas(reader: Reader, schema: Json, keyword: str, path: str) -> list[tuple[Any, str]]:
    """The schemas in a list, with their paths."""
    parts = schema[keyword]
    where = child(path, keyword)
    if not isinstance(parts, list) or not parts:
        reader.refuse(where, f"{keyword} must be a list of schemas, and not empty")
        return []
    return [(part, f"{where}[{i}]") for i, part in enumerate(cast(list[Any], parts))]


def apply_all_of(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """Every one of several schemas."""
    for part, where in subschemas(reader, schema, "allOf", path):
        node = reader.meet(node, reader.read(part, where))
    return node


def apply_any_of(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """At least one of several schemas."""
    parts = subschemas(reader, schema, "anyOf", path)
    return nodes.union([reader.meet(node, reader.read(part, where)) for part, where in parts])


def apply_one_of(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """Exactly one of several schemas."""
    parts = subschemas(reader, schema, "oneOf", path)
    read = [reader.meet(node, reader.read(part, where)) for part, where in parts]
    return nodes.union(exactly_one(reader, read))


def exactly_one(reader: Reader, options: Sequence[Node]) -> list[Node]:
    """For each option what fits it and no other one.

    Raises:
        Unrepresentable: they overlap in a way that no node describes.
    """
    if are_disjoint(reader.definitions, options):
        return list(options)
    found: list[Node] = []
    for i, option in enumerate(options):
        for j, other in enumerate(options):
            if i != j and not disjoint(reader.definitions, option, other):
                option = reader.minus(option, other)
        found.append(option)
    return found


def apply_not(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """Not a schema."""
    return reader.minus(node, reader.read(schema["not"], child(path, "not")))


def apply_if(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """`then` where `if` holds, `else` where it does not."""
    if "if" not in schema or not {"then", "else"} & schema.keys():
        return node  # without the other, neither says anything
    test = reader.read(schema["if"], child(path, "if"))
    then, other = (
        reader.read(schema.get(keyword, True), child(path, keyword)) for keyword in ("then", "else")
    )
    if isinstance(then, AnyJson):
        return nodes.union([reader.meet(node, test), reader.meet(node, other)])
    passed = reader.meet(reader.meet(node, test), then)
    return nodes.union([passed, reader.meet(reader.minus(node, test), other)])


def apply_dependencies(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """What the presence of a property asks for."""
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        parts = schema.get(keyword, {})
        where = child(path, keyword)
        if not isinstance(parts, dict):
            reader.refuse(where, f"{keyword} must be an object")
            continue
        for name, part in cast(Json, parts).items():
            needed = _needed(reader, keyword, part, child(where, name))
            missing, present = presence(name)
            asked = reader.meet(reader.meet(node, present), needed)
            node = nodes.union([reader.meet(node, missing), asked])
            if isinstance(node, Union) and len(node.options) > MOST_OPTIONS:
                raise Unrepresentable(f"they lead to more than {MOST_OPTIONS} alternatives")
    return node


def _needed(reader: Reader, keyword: str, part: Any, path: str) -> Node:
    if keyword == "dependencies" and isinstance(part, str):
        part = [part]  # as draft 3 has it
    if keyword == "dependentRequired" or (keyword == "dependencies" and isinstance(part, list)):
        return _requiring(names_of(reader, part, path))
    return reader.read(part, path)


def _requiring(names: dict[str, None]) -> Node:
    properties = tuple(Property(name, AnyJson()) for name in names)
    return _objects(Object(properties, ANY_OBJECT.extras))


def _objects(node: Object) -> Node:
    """Objects of a kind, and all values that are no objects."""
    return nodes.union([*PARTS[:-1], node])


def presence(name: str) -> tuple[Node, Node]:
    """All values but objects with a property of this name, and objects with one."""
    missing = Object((Property(name, Never("it must be missing"), False),), ANY_OBJECT.extras)
    return _objects(missing), Object((Property(name, AnyJson()),), ANY_OBJECT.extras)
