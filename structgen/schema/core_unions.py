"""Unions, and kinds that only wrap or choose between other schemas."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from structgen.schema import nodes
from structgen.schema.core_checks import called, validator
from structgen.schema.core_containers import SCALAR
from structgen.schema.core_reader import Core, Reader, ReadType, strict, wrapped
from structgen.schema.nodes import Labels, Node


def _nullable(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path)
    return nodes.union((reader.node(core["schema"], path), Labels((b"null",))))


def _union(reader: Reader, core: Core, path: str) -> Node:
    """Any option: smart and left-to-right modes differ only in what an overlap is read as."""
    reader.check_keys(core, path, "choices")
    cores = (choice[0] if isinstance(choice, tuple) else choice for choice in core["choices"])
    return nodes.union([reader.node(choice, path) for choice in cores])


def _tagged_union(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "choices", "discriminator")
    tag = core["discriminator"]
    if callable(tag):
        reader.after_check(path, f"{called(tag) or 'a function'} picks the option")
        return nodes.union([reader.node(choice, path) for choice in core["choices"].values()])
    paths = [[tag]] if isinstance(tag, str) else tag
    if not isinstance(paths, list) or any(len(names) != 1 for names in paths):
        return reader.refuse(
            path, f"the discriminator {tag!r} is not a field name", "name a field of every option"
        )
    # Pydantic insists on the tag even where the field has a default, so it is always written.
    before, reader.forced = reader.forced, reader.forced | {names[0] for names in paths}
    node = nodes.union([reader.node(choice, path) for choice in core["choices"].values()])
    reader.forced = before
    return node


def _definitions(reader: Reader, core: Core, path: str) -> Node:
    reader.learn(core)
    return reader.node(core["schema"], path)


def _reference(reader: Reader, core: Core, path: str) -> Node:
    return reader.named(core["schema_ref"], path)


def _lax_or_strict(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "lax_schema", "strict_schema")
    side = "strict_schema" if strict(reader, core) else "lax_schema"
    return reader.node(core[side], path)


def _json_or_python(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "json_schema", "python_schema")
    return reader.node(core["json_schema"], path)


def _chain(reader: Reader, core: Core, path: str) -> Node:
    """The first step reads the JSON; what follows must be Python functions, which run after."""
    reader.check_keys(core, path, "steps")
    first, *others = core["steps"]
    if first["type"] == "any" and [other.get("cls") for other in others] == [Hashable]:
        return SCALAR
    for other in others:
        if not other["type"].startswith("function-"):
            return reader.refuse(
                path, f"a step of type {other['type']!r} behind another", "use one type"
            )
        reader.after_check(path, validator(other))
    return reader.node(first, path)


UNIONS: Mapping[str, ReadType] = {
    "nullable": _nullable,
    "union": _union,
    "tagged-union": _tagged_union,
    "default": wrapped,
    "definitions": _definitions,
    "definition-ref": _reference,
    "lax-or-strict": _lax_or_strict,
    "json-or-python": _json_or_python,
    "custom-error": wrapped,
    "missing-sentinel": wrapped,
    "chain": _chain,
}
