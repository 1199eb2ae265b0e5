"""Pydantic core schemas become nodes.

Reading the core schema rather than the JSON Schema keeps what the latter drops: strictness,
Python validators, settings of the model. Every type and every key is looked up in a table:
implemented, harmless, or refused with its path. Unknown means refused.
"""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from structgen.errors import Fault, LimitError
from structgen.schema import nodes
from structgen.schema.keywords import CONFIG_REFUSED, HARMLESS, STRING_SETTINGS, advice
from structgen.schema.nodes import AnyJson, Labels, Map, Never, Node, Object, Property, Ref, String

Core: TypeAlias = Mapping[str, Any]

MOST_LEVELS = 64
"""Nesting of the schema as it is written; a recursive type may go deeper while generating."""


_Use: TypeAlias = tuple[str, frozenset[str], tuple[object, ...]]
"""A definition's reference, the tags it must write, the settings that reach into it."""


@dataclass(slots=True)
class _Reader:
    """State of one conversion: where it is, what is wrong, what is defined."""

    faults: list[Fault] = field(default_factory=list[Fault])
    impossible: list[Fault] = field(default_factory=list[Fault])
    definitions: dict[str, Node] = field(default_factory=dict[str, Node])
    validators: list[str] = field(default_factory=list[str])
    config: list[Core] = field(default_factory=lambda: list[Core]([{}]))
    owners: list[type] = field(default_factory=list[type])
    cores: dict[str, Core] = field(default_factory=dict[str, Core])
    """Definitions that are not read yet, by reference."""
    names: dict[_Use, str] = field(default_factory=lambda: dict[_Use, str]())
    """Names of the definitions read so far, by reference and by the tags they must write."""
    forced: frozenset[str] = frozenset()
    """Names of discriminators, which a tagged union's objects must always write."""
    depth: int = 0

    def refuse(self, path: str, problem: str, advice: str = "") -> Never:
        self.faults.append(Fault(path, problem, advice))
        return Never(problem, path)

    def setting(self, name: str) -> Any:
        """A setting of the innermost model around, None where it is not set."""
        return self.config[-1].get(name)


@dataclass(frozen=True, slots=True)
class CoreNodes:
    """What a core schema says."""

    root: Node
    definitions: Mapping[str, Node]
    faults: tuple[Fault, ...]
    """Everything that cannot be enforced."""
    impossible: tuple[Fault, ...]
    """Everything that contradicts itself, optional parts included."""
    validators: tuple[str, ...]
    """Paths of Python validators, which run after generation."""


def read_core_schema(core: Core, config: Core) -> CoreNodes:
    """Nodes of a Pydantic core schema; faults are collected, not raised.

    Args:
        config: settings that apply outside of any model.
    """
    reader = _Reader(config=[config])
    root = _node(reader, core, "$")
    return CoreNodes(
        root,
        reader.definitions,
        tuple(reader.faults),
        tuple(reader.impossible),
        tuple(reader.validators),
    )


def _node(reader: _Reader, core: Core, path: str) -> Node:
    name = core.get("ref")
    if name is None:
        return _read(reader, core, path)
    reader.cores[name] = core
    return _named(reader, name, path)


def _read(reader: _Reader, core: Core, path: str) -> Node:
    read = _READERS.get(core["type"])
    if read is None:
        return reader.refuse(
            path, f"type {_type_name(core)} is not supported", advice(core["type"])
        )
    level = core["type"] in ("list", "dict", "model-fields")
    reader.depth += level
    if reader.depth > MOST_LEVELS:
        raise LimitError(
            f"the schema is nested more than {MOST_LEVELS} levels deep, at {path[:60]}...; flatten "
            "it, or write the nesting as a recursive type"
        )
    node = read(reader, core, path)
    reader.depth -= level
    return node


def _named(reader: _Reader, ref: str, path: str) -> Node:
    """A reference to a definition, which is read at its first use.

    As an option of a tagged union it is another definition: there the tag must be written. So is
    an alias of a type in a model with other settings.
    """
    core = reader.cores[ref]
    key = (ref, reader.forced, _settings(reader, core))
    name = reader.names.get(key)
    if name is None:
        # Counted, because the reference holds an address that differs from run to run.
        same = sum(known.split("#")[0] == _title(core) for known in reader.names.values())
        name = reader.names[key] = _title(core) + (f"#{same + 1}" if same else "")
        reader.definitions[name] = Never("under construction")
        reader.definitions[name] = _read(reader, core, path)
    return Ref(name)


def _settings(reader: _Reader, core: Core) -> tuple[object, ...]:
    """The settings around that change what `core` means; a model has its own."""
    while core["type"].startswith("function-") and "schema" in core:
        core = core["schema"]
    if core["type"] == "model":
        return ()
    return tuple(reader.setting(name) for name in STRING_SETTINGS)


def _title(core: Core) -> str:
    """The class's name, or the kind of schema where there is no class."""
    while "cls" not in core and "schema" in core:
        core = core["schema"]
    owner = core.get("cls")
    return owner.__name__ if owner is not None else str(core["type"])


def _type_name(core: Core) -> str:
    owner = core.get("cls")
    return f"{core['type']!r}" + (f" ({owner.__name__})" if owner is not None else "")


def _check_keys(reader: _Reader, core: Core, path: str, known: Iterable[str] = ()) -> None:
    """Refuse keys that are neither implemented by the caller nor harmless."""
    known = {*known}
    for key, value in core.items():
        if key not in HARMLESS and key not in known and value is not None and value is not False:
            reader.refuse(path, f"{key}={value!r} of type {core['type']!r} cannot be enforced yet")


def _string(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("min_length", "max_length"))
    for setting, why in CONFIG_REFUSED.items():
        if reader.setting(setting):
            reader.refuse(path, f"the model setting {setting} cannot be enforced: {why}")
    low = core.get("min_length", reader.setting("str_min_length")) or 0
    high = core.get("max_length", reader.setting("str_max_length"))
    return _possible(reader, nodes.string(low, high), path)


def _integer(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("ge", "gt", "le", "lt"))
    low = _extreme(max, [(core.get("ge"), math.ceil), (core.get("gt"), _above)])
    high = _extreme(min, [(core.get("le"), math.floor), (core.get("lt"), _below)])
    return _possible(reader, nodes.integer(low, high), path)


def _extreme(
    pick: Callable[[list[int]], int], bounds: list[tuple[Any, Callable[[Any], int]]]
) -> int | None:
    """The strongest of the bounds that are set, as an inclusive one."""
    known = [inclusive(bound) for bound, inclusive in bounds if bound is not None]
    return pick(known) if known else None


def _above(bound: Any) -> int:
    return math.floor(bound) + 1


def _below(bound: Any) -> int:
    return math.ceil(bound) - 1


def _number(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("ge", "gt", "le", "lt", "allow_inf_nan"))
    low, above = _tighter(core.get("ge"), core.get("gt"), 1)
    high, below = _tighter(core.get("le"), core.get("lt"), -1)
    return _possible(reader, nodes.number(low, high, above, below), path)


def _tighter(inclusive: Any, exclusive: Any, sign: int) -> tuple[float | None, bool]:
    """The stronger of two bounds on one side, and whether it is exclusive."""
    if exclusive is None:
        return (None if inclusive is None else float(inclusive)), False
    if inclusive is None or sign * exclusive >= sign * inclusive:
        return float(exclusive), True
    return float(inclusive), False


def _bool(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path)
    return Labels((b"false", b"true"))


def _none(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path)
    return Labels((b"null",))


def _any(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path)
    return AnyJson()


def _literal(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("expected",))
    return _possible(reader, nodes.labels(_texts(reader, core["expected"], path)), path)


def _enum(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("members",))
    return _possible(
        reader, nodes.labels(_texts(reader, (m.value for m in core["members"]), path)), path
    )


def _texts(reader: _Reader, values: Iterable[Any], path: str) -> Iterator[bytes]:
    for value in values:
        plain = value
        if isinstance(value, enum.Enum):
            # A Literal of members accepts their JSON only where they are strings or integers.
            plain = value.value if isinstance(value, str | int) else object()
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = object()
        if plain is not None and not isinstance(plain, str | int | float):
            reader.refuse(path, f"the choice {value!r} has no JSON form", "use a str or an int")
            continue
        try:
            yield nodes.json_text(plain)
        except UnicodeEncodeError:
            reader.refuse(path, f"the choice {value!r} holds a lone surrogate and is not text")


def _list(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("items_schema", "min_length", "max_length"))
    item = _node(reader, core.get("items_schema") or {"type": "any"}, f"{path}[*]")
    low, high = core.get("min_length") or 0, core.get("max_length")
    return _possible(reader, nodes.array(item, low, high), path)


def _dict(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("keys_schema", "values_schema"))
    key_core = core.get("keys_schema") or {"type": "any"}
    key: Node | None = None
    if key_core["type"] == "any":
        key = String()  # all keys of a JSON object are strings
    elif key_core["type"] == "str":
        key = _node(reader, key_core, f"{path}.<key>")
    if isinstance(key, Never):
        return key
    if not isinstance(key, String):
        return reader.refuse(
            f"{path}.<key>", f"keys of type {_type_name(key_core)} are not supported", "use str"
        )
    value = _node(reader, core.get("values_schema") or {"type": "any"}, f"{path}.*")
    return Labels((b"{}",)) if isinstance(value, Never) else Map(key, value)


def _nullable(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path)
    return nodes.union((_node(reader, core["schema"], path), Labels((b"null",))))


def _union(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("choices",))
    cores = (choice[0] if isinstance(choice, tuple) else choice for choice in core["choices"])
    return nodes.union([_node(reader, choice, path) for choice in cores])


def _tagged_union(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("choices", "discriminator"))
    tag = core["discriminator"]
    paths = [[tag]] if isinstance(tag, str) else tag
    if not isinstance(paths, list) or any(len(names) != 1 for names in paths):
        return reader.refuse(
            path, f"the discriminator {tag!r} is not a field name", "name a field of every option"
        )
    # Pydantic insists on the tag even where the field has a default, so it is always written.
    before, reader.forced = reader.forced, reader.forced | {names[0] for names in paths}
    node = nodes.union([_node(reader, choice, path) for choice in core["choices"].values()])
    reader.forced = before
    return node


def _wrapped(reader: _Reader, core: Core, path: str) -> Node:
    """Kinds that only add something around an inner schema."""
    _check_keys(reader, core, path)
    return _node(reader, core["schema"], path)


def _validated(reader: _Reader, core: Core, path: str) -> Node:
    reader.validators.append(path)
    return _wrapped(reader, core, path)


def _definitions(reader: _Reader, core: Core, path: str) -> Node:
    for definition in core["definitions"]:
        reader.cores[definition["ref"]] = definition
    return _node(reader, core["schema"], path)


def _reference(reader: _Reader, core: Core, path: str) -> Node:
    return _named(reader, core["schema_ref"], path)


def _model(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path)
    reader.config.append(core.get("config") or {})
    reader.owners.append(core["cls"])
    node = _node(reader, core["schema"], path)
    reader.config.pop()
    reader.owners.pop()
    return node


def _model_fields(reader: _Reader, core: Core, path: str) -> Node:
    _check_keys(reader, core, path, ("fields", "extra_behavior", "extras_schema"))
    # Discriminators count for the object right here, not for those inside of it.
    forced, reader.forced = reader.forced, frozenset()
    properties: dict[str, Property] = {}
    taken: dict[str, str] = {}
    for name, model_field in core["fields"].items():
        key = _key(reader, name, model_field, f"{path}.{name}")
        for lookup in sorted({key} | _lookups(reader, name, model_field)):
            other = taken.setdefault(lookup, name)
            if other != name:
                problem = f"the alias or name {lookup!r} also stands for the field {other!r}"
                reader.refuse(f"{path}.{name}", problem, "give every field names of its own")
        inner = model_field["schema"]
        node = _node(reader, inner, f"{path}.{key}")
        required = _must_be_written(reader, inner) or name in forced or key in forced
        properties[key] = Property(key, node, required, _field_description(reader, name))
    node = Object(
        tuple(properties.values()),
        _extra(reader, core, path),
        tuple(sorted(taken)),
        _docstring(reader),
    )
    reader.forced = forced
    return node


def _field_description(reader: _Reader, name: str) -> str:
    described = getattr(reader.owners[-1], "model_fields", {}).get(name) if reader.owners else None
    text = (described.description or "") if described is not None else ""
    return text.encode(errors="replace").decode()  # a lone surrogate would spoil the prompt


def _docstring(reader: _Reader) -> str:
    """The model's own docstring, not one it inherits from Pydantic."""
    doc = vars(reader.owners[-1]).get("__doc__") if reader.owners else None
    return inspect.cleandoc(doc).encode(errors="replace").decode() if doc else ""


def _key(reader: _Reader, name: str, model_field: Core, path: str) -> str:
    """The property name that validation looks up: the alias where there is one."""
    known = (
        "validation_alias",
        "serialization_alias",
        "validation_exclude",
        "serialization_exclude",
    )
    for key in model_field:
        if key not in HARMLESS and key not in known:
            reader.refuse(path, f"{key}={model_field[key]!r} of a field cannot be enforced yet")
    alias = model_field.get("validation_alias")
    if alias is None or reader.setting("validate_by_alias") is False:
        return _text_key(reader, name, path)
    if isinstance(alias, list):
        choices: list[list[str | int]] = alias if isinstance(alias[0], list) else [alias]
        first = choices[0]
        if len(first) != 1 or not isinstance(first[0], str):
            reader.refuse(path, f"the alias path {first!r} is not supported", "use a plain alias")
            return name
        alias = first[0]
    return _text_key(reader, alias, path)


def _text_key(reader: _Reader, key: str, path: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError:
        reader.refuse(path, f"the name {key!r} holds a lone surrogate and is not text")
        return "?"
    return key


def _extra(reader: _Reader, core: Core, path: str) -> Node | None:
    behavior = core.get("extra_behavior") or reader.setting("extra_fields_behavior")
    if behavior != "allow":
        return None
    schema = core.get("extras_schema")
    return _node(reader, schema, f"{path}.<extra>") if schema else AnyJson()


def _must_be_written(reader: _Reader, core: Core) -> bool:
    """No default, or one that Pydantic would only check (and maybe reject) when it is used."""
    if core["type"] != "default":
        return True
    checked = core.get("validate_default")
    return bool(reader.setting("validate_default") if checked is None else checked)


def _lookups(reader: _Reader, name: str, model_field: Core) -> set[str]:
    """Every name by which validation looks up a field."""
    if reader.setting("validate_by_alias") is False:
        return {name}
    alias = model_field.get("validation_alias")
    by_name = reader.setting("validate_by_name") or reader.setting("populate_by_name")
    names = {name} if by_name or alias is None else set[str]()
    if isinstance(alias, list):
        paths: list[list[str | int]] = alias if isinstance(alias[0], list) else [alias]
        return names | {str(path[0]) for path in paths}
    return names if alias is None else names | {alias}


def _possible(reader: _Reader, node: Node, path: str) -> Node:
    """`node`, with a fault noted if its own bounds contradict each other."""
    if isinstance(node, Never):
        reader.impossible.append(Fault(path, node.reason))
    return node


_READERS: dict[str, Callable[[_Reader, Core, str], Node]] = {
    "str": _string,
    "int": _integer,
    "float": _number,
    "bool": _bool,
    "none": _none,
    "any": _any,
    "literal": _literal,
    "enum": _enum,
    "list": _list,
    "dict": _dict,
    "nullable": _nullable,
    "union": _union,
    "tagged-union": _tagged_union,
    "default": _wrapped,
    "function-after": _validated,
    "function-before": _validated,
    "function-wrap": _validated,
    "definitions": _definitions,
    "definition-ref": _reference,
    "model": _model,
    "model-fields": _model_fields,
}
