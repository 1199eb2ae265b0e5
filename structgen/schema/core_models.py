"""Models, dataclasses, TypedDicts, named tuples and signatures."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from structgen.schema import nodes
from structgen.schema.core_checks import called, construction
from structgen.schema.core_keys import key_node
from structgen.schema.core_names import field_key, lookups
from structgen.schema.core_reader import Core, Reader, ReadType, plain_text
from structgen.schema.nodes import AnyJson, Extra, Never, Node, Object, Property, String

_FIELD_KEYS = frozenset(
    {
        "type",
        "name",
        "schema",
        "metadata",
        "frozen",
        "required",
        "mode",
        "alias",
        "kw_only",
        "init",
        "init_only",
        "validation_alias",
        "serialization_alias",
        "validation_exclude",
        "serialization_exclude",
        "serialization_exclude_if",
    }
)


@dataclass(slots=True)
class _Fields:
    """Properties read so far, and every name by which one is found."""

    properties: dict[str, Property] = field(default_factory=dict[str, Property])
    taken: dict[str, str] = field(default_factory=dict[str, str])


def _model(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "fields", "extra_behavior")
    for what in construction(core):
        reader.after_check(path, what)
    reader.config.append(core.get("config") or {})
    reader.owners.append(core["cls"])
    node = reader.node(core["schema"], path)
    reader.config.pop()
    reader.owners.pop()
    return node


def _model_fields(reader: Reader, core: Core, path: str) -> Node:
    known = ("fields", "extra_behavior", "extras_schema", "extras_keys_schema")
    reader.check_keys(core, path, *known)
    return _object(reader, core, path, core["fields"].items())


def _dataclass_args(reader: Reader, core: Core, path: str) -> Node:
    known = ("fields", "extra_behavior", "collect_init_only", "dataclass_name")
    reader.check_keys(core, path, *known)
    fields = ((part["name"], part) for part in core["fields"] if part.get("init", True))
    return _object(reader, core, path, fields)


def _typed_dict(reader: Reader, core: Core, path: str) -> Node:
    known = ("fields", "extra_behavior", "extras_schema", "extras_keys_schema", "total")
    reader.check_keys(core, path, *known, "cls_name")
    reader.config.append(core.get("config") or reader.config[-1])
    if "cls" in core:
        reader.owners.append(core["cls"])
    total = core.get("total", reader.setting("typed_dict_total"))
    fields = (
        (name, part if "required" in part else {**part, "required": total is not False})
        for name, part in core["fields"].items()
    )
    node = _object(reader, core, path, fields)
    reader.config.pop()
    if "cls" in core:
        reader.owners.pop()
    return node


def _object(reader: Reader, core: Core, path: str, fields: Iterable[tuple[str, Core]]) -> Node:
    # Discriminators count for the object right here, not for those inside of it.
    forced, reader.forced = reader.forced, frozenset()
    found = _Fields()
    for name, part in fields:
        _add_field(reader, found, name, part, path, forced)
    node = Object(
        tuple(found.properties.values()),
        _extras(reader, core, path),
        tuple(sorted(found.taken)),
        description=_docstring(reader),
    )
    reader.forced = forced
    return node


def _add_field(
    reader: Reader, found: _Fields, name: str, part: Core, path: str, forced: frozenset[str]
) -> None:
    for key in part:
        if key not in _FIELD_KEYS:
            reader.refuse(f"{path}.{name}", f"{key}={part[key]!r} of a field cannot be enforced")
    key = field_key(reader, name, part, f"{path}.{name}")
    for lookup in sorted({key} | lookups(reader, name, part)):
        other = found.taken.setdefault(lookup, name)
        if other != name:
            problem = f"the alias or name {lookup!r} also stands for the field {other!r}"
            reader.refuse(f"{path}.{name}", problem, "give every field names of its own")
    node = reader.node(part["schema"], f"{path}.{key}")
    required = _must_be_written(reader, part) or name in forced or key in forced
    found.properties[key] = Property(key, node, required, _field_description(reader, name))


def _must_be_written(reader: Reader, part: Core) -> bool:
    """No default, or one that Pydantic would only check (and maybe reject) when it is used."""
    required = part.get("required")
    core = part["schema"]
    if core["type"] != "default":
        return required is not False
    checked = core.get("validate_default")
    return bool(reader.setting("validate_default") if checked is None else checked)


def _extras(reader: Reader, core: Core, path: str) -> tuple[Extra, ...]:
    behavior = core.get("extra_behavior") or reader.setting("extra_fields_behavior")
    if behavior != "allow":
        return ()
    keys, values = core.get("extras_keys_schema"), core.get("extras_schema")
    key = key_node(reader, keys, f"{path}.<key>") if keys else String()
    value = reader.node(values, f"{path}.*") if values else AnyJson()
    return () if isinstance(key, Never) or isinstance(value, Never) else (Extra(key, value),)


def _field_description(reader: Reader, name: str) -> str:
    owner = reader.owners[-1] if reader.owners else None
    fields: Any = getattr(owner, "__pydantic_fields__", None) or {}
    return plain_text(getattr(fields.get(name), "description", None))


def _docstring(reader: Reader) -> str:
    """The class's own docstring, not one it inherits or that a decorator wrote."""
    if not reader.owners:
        return ""
    owner = reader.owners[-1]
    doc: str | None = vars(owner).get("__doc__")
    if not doc or doc.startswith(f"{owner.__name__}("):
        return ""
    return plain_text(inspect.cleandoc(doc))


def _named_tuple(reader: Reader, core: Core, path: str) -> Node:
    """An array, as Pydantic writes it; fields with a default may be left out at the end."""
    reader.check_keys(core, path, "fields", "cls_name")
    return _positional(reader, core["fields"], path)


def _positional(reader: Reader, parts: list[Core], path: str) -> Node:
    prefix = [reader.node(part["schema"], f"{path}[{i}]") for i, part in enumerate(parts)]
    required = [i for i, part in enumerate(parts) if _must_be_written(reader, part)]
    least = required[-1] + 1 if required else 0
    node = nodes.array(Never("no more items"), least, len(prefix), prefix)
    return reader.possible(node, path)


def _call(reader: Reader, core: Core, path: str) -> Node:
    """Older releases call the class of a named tuple; other functions run on the finished value."""
    reader.check_keys(core, path, "arguments_schema", "function_name")
    arguments, function = core["arguments_schema"], core["function"]
    if isinstance(function, type) and issubclass(function, tuple):
        return _positional(reader, arguments["arguments_schema"], path)
    reader.after_check(path, f"{called(function) or 'the function'} is called")
    return reader.node(arguments, path)


def _arguments(reader: Reader, core: Core, path: str) -> Node:
    """The arguments of a function by name."""
    known = ("arguments_schema", "validate_by_name", "validate_by_alias", "var_kwargs_mode")
    reader.check_keys(core, path, *known, "var_args_schema", "var_kwargs_schema", "extra_behavior")
    if core.get("var_kwargs_mode") == "unpacked-typed-dict":
        return reader.refuse(path, "**kwargs of a TypedDict are not supported", "name them")
    found = _Fields()
    for part in core["arguments_schema"]:
        mode = part.get("mode") or "positional_or_keyword"
        if mode not in ("positional_or_keyword", "keyword_only"):
            problem = f"the argument {part['name']!r} is {mode.replace('_', ' ')}"
            reader.refuse(path, problem, "only arguments with a name can be written")
            continue
        _add_field(reader, found, part["name"], part, path, frozenset())
    extras: tuple[Extra, ...] = ()
    if core.get("var_kwargs_schema"):
        extras = (Extra(String(), reader.node(core["var_kwargs_schema"], f"{path}.*")),)
    return Object(tuple(found.properties.values()), extras, tuple(sorted(found.taken)))


MODELS: Mapping[str, ReadType] = {
    "model": _model,
    "model-fields": _model_fields,
    "dataclass": _model,
    "dataclass-args": _dataclass_args,
    "typed-dict": _typed_dict,
    "named-tuple": _named_tuple,
    "call": _call,
    "arguments": _arguments,
    "arguments-v3": _arguments,
}
