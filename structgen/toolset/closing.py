"""Objects of a JSON Schema without the free keys that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from structgen.schema.check import unsatisfiable
from structgen.schema.nodes import AnyJson, Extra, Labels, Node, Object, Ref, Schema, String, Union
from structgen.schema.rewrite import rewritten_schema

_ANYTHING = Extra(String(), AnyJson())


def closed(schema: Schema) -> Schema:
    """The schema of a tool's arguments in which declared objects have no other keys.

    A JSON Schema that says nothing about other keys allows them, and models fill them with what
    nobody reads. What is left is valid still. An object that declares no property is meant to be
    free and stays so, but for the arguments themselves: there it means that there are none.
    """
    made = rewritten_schema(schema, _without_free_keys)
    root = _resolved(made, made.root)
    if isinstance(root, Object) and root.extras == (_ANYTHING,) and not root.min_properties:
        made = replace(made, root=replace(root, extras=()))
    return schema if unsatisfiable(made) else made


def opens_objects(schema: Any) -> bool:
    """Whether a JSON Schema itself allows other keys beside declared ones, in so many words."""
    return any(
        "properties" in part and part.get("additionalProperties") in (True, {})
        for part in _dicts(schema)
    )


def is_object(schema: Schema, node: Node) -> bool:
    """Whether every value of a node is a JSON object."""
    match _resolved(schema, node):
        case Object():
            return True
        case Labels(texts):
            return all(text.startswith(b"{") for text in texts)
        case Union(options):
            return all(is_object(schema, option) for option in options)
        case _:
            return False


def _without_free_keys(node: Node) -> Node:
    if not isinstance(node, Object) or not node.properties:
        return node
    if _ANYTHING not in node.extras or node.min_properties > len(node.properties):
        return node
    return replace(node, extras=tuple(extra for extra in node.extras if extra != _ANYTHING))


def _resolved(schema: Schema, node: Node) -> Node:
    seen: set[str] = set()
    while isinstance(node, Ref) and node.name not in seen:
        seen.add(node.name)
        node = schema.definitions[node.name]
    return node


def _dicts(schema: Any) -> Iterator[dict[str, Any]]:
    """All dicts in a JSON Schema, each once."""
    pending: list[Any] = [schema]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if not isinstance(part, dict | list) or id(cast(object, part)) in seen:
            continue
        seen.add(id(cast(object, part)))
        if isinstance(part, dict):
            found = cast("dict[str, Any]", part)
            yield found
            pending.extend(found.values())
        else:
            pending.extend(cast("list[Any]", part))
