"""JSON Schema becomes nodes that admit exactly the valid instances, or is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from structgen.errors import Fault, LimitError
from structgen.schema.jsonschema import applicators as parts
from structgen.schema.jsonschema.definitions import Definitions, Unrepresentable
from structgen.schema.jsonschema.disjoint import is_empty
from structgen.schema.jsonschema.documents import Document, too_deep
from structgen.schema.jsonschema.kinds import ARRAY, NUMBER, OBJECT, STRING
from structgen.schema.jsonschema.lists import ARRAY_KEYWORDS, read_array
from structgen.schema.jsonschema.members import OBJECT_KEYWORDS, read_object
from structgen.schema.jsonschema.reader import Reader
from structgen.schema.jsonschema.scalars import (
    NUMBER_KEYWORDS,
    STRING_KEYWORDS,
    read_number,
    read_string,
)
from structgen.schema.jsonschema.unevaluated import apply_unevaluated
from structgen.schema.jsonschema.walk import references
from structgen.schema.jsonschema.ways import add_ways
from structgen.schema.nodes import Never, Node

_KINDS = {
    STRING: (STRING_KEYWORDS, read_string),
    NUMBER: (NUMBER_KEYWORDS, read_number),
    ARRAY: (ARRAY_KEYWORDS, read_array),
    OBJECT: (OBJECT_KEYWORDS, read_object),
}
_IN_PLACE = (
    (frozenset({"$ref", "$dynamicRef", "$recursiveRef"}), parts.apply_references),
    (frozenset({"allOf"}), parts.apply_all_of),
    (frozenset({"if"}), parts.apply_if),
    (
        frozenset({"dependentRequired", "dependentSchemas", "dependencies"}),
        parts.apply_dependencies,
    ),
    (frozenset({"anyOf"}), parts.apply_any_of),
    (frozenset({"oneOf"}), parts.apply_one_of),
    (frozenset({"not"}), parts.apply_not),
    (frozenset({"unevaluatedProperties", "unevaluatedItems"}), apply_unevaluated),
)
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


@dataclass(frozen=True, slots=True)
class JsonSchemaNodes:
    """What a JSON Schema says."""

    root: Node
    definitions: Mapping[str, Node]
    faults: tuple[Fault, ...]
    """Everything that cannot be enforced."""
    impossible: tuple[Fault, ...]
    """Why no value is valid, if none is."""
    ignored: tuple[Fault, ...] = ()
    """What looks like an assertion and is none, such as formats that nobody has defined."""


def read_json_schema(schema: Any, title: str = "schema") -> JsonSchemaNodes:
    """Nodes of a JSON Schema; faults are collected, not raised.

    Example: `{"type": "integer", "minimum": 0}` gives `Integer(0, None)`.

    Args:
        schema: a dict or a bool: draft 2020-12, or what older drafts say otherwise.
        title: how error messages call it.

    Raises:
        LimitError: it is nested too deeply, or expands to too many nodes.
    """
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    dialect = dialect if isinstance(dialect, str) else ""
    old = any(draft in dialect for draft in _OLD_DRAFTS)
    document = Document(schema, old, "2019-09" in dialect)
    reader = Reader(document, _KINDS, _IN_PLACE)
    definitions = reader.definitions
    if dialect and "json-schema.org/" not in dialect:
        problem = f"the dialect {dialect[:80]!r} is not known, so nor is what its keywords mean"
        definitions.refuse("$.$schema", problem, "leave $schema out to use draft 2020-12")
    try:
        root = definitions.resolve(reader.target(schema, "$", ""))
        definitions.settle()
        if definitions.contains:
            root = _with_ways(definitions, root)
        impossible = _impossible(definitions, root)
    except RecursionError as error:
        raise LimitError(f"{title}: {too_deep(definitions.path)}") from error
    used = {name: definitions.nodes[name] for name in _reachable(definitions.nodes, root)}
    return JsonSchemaNodes(
        root, used, tuple(definitions.faults), impossible, tuple(definitions.ignored)
    )


def _with_ways(definitions: Definitions, root: Node) -> Node:
    try:
        return add_ways(definitions, root)
    except Unrepresentable as error:
        return definitions.refuse("$", str(error))


def _impossible(definitions: Definitions, root: Node) -> tuple[Fault, ...]:
    if definitions.faults:
        return ()
    if isinstance(root, Never):
        return (Fault(root.path, root.reason),)
    if is_empty(definitions, root):
        return (Fault("$", "no value is valid: its parts contradict each other"),)
    return ()


def _reachable(nodes: Mapping[str, Node], root: Node) -> Iterator[str]:
    """Names of the definitions that a root needs, in the order of first use."""
    seen: set[str] = set()
    todo = [root]
    while todo:
        for name in references(todo.pop()):
            if name not in seen:
                seen.add(name)
                yield name
                todo.append(nodes[name])
