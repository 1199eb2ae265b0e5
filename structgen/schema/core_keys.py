"""What may be a key of a mapping or a member of a set."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.schema import nodes
from structgen.schema.core_numbers import INTEGER_DIGITS
from structgen.schema.core_reader import Core, Reader, inner, type_name
from structgen.schema.digits import integers
from structgen.schema.formats import whole
from structgen.schema.nodes import AnyJson, Integer, Labels, Never, Node, Number, String

FREE_NUMBER = whole(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?")

_UNHASHABLE = {
    "list": "a list",
    "dict": "a dict",
    "set": "a set",
    "ordered-dict": "a dict",
    "counter": "a Counter",
    "deque": "a deque",
    "typed-dict": "a TypedDict",
}


def key_node(reader: Reader, core: Core, path: str) -> Node:
    """The strings that are read as a key: JSON has no other keys.

    Example: the keys of `dict[int, T]` are `"0"`, `"-1"`, ...
    """
    kind = reader.target(core)
    if kind["type"] == "union":
        choices = (part[0] if isinstance(part, tuple) else part for part in kind["choices"])
        return _any_key([key_node(reader, part, path) for part in choices])
    node = reader.resolved(reader.node(core, path))
    options = node.options if isinstance(node, nodes.Union) else (node,)
    found = [_as_key(reader, option, _unwrapped(reader, kind), path) for option in options]
    if any(option is None for option in found):
        problem = f"keys of type {type_name(kind)} are not supported"
        return reader.refuse(path, problem, "use str, int, an Enum or a Literal")
    return _any_key([option for option in found if option is not None])


def _any_key(options: list[Node]) -> Node:
    key = nodes.union(options)
    return String() if isinstance(key, nodes.Union) and String() in key.options else key


def _unwrapped(reader: Reader, core: Core) -> Core:
    """What functions are called with, such as those of `use_enum_values`."""
    while core["type"] in ("function-after", "function-before", "function-wrap", "nullable"):
        core = reader.target(core["schema"])
    return core


def _as_key(reader: Reader, node: Node, kind: Core, path: str) -> Node | None:
    match node:
        case Never() | String():
            return node
        case AnyJson():
            return String()
        case Labels():
            return _label_keys(node, kind)
        case Integer():
            source = integers(node.minimum, node.maximum, INTEGER_DIGITS)
            return String(patterns=(whole(source),), name="integer")
        case Number() if node == Number():
            return String(patterns=(FREE_NUMBER,), name="number")
        case nodes.Ref():
            return _as_key(reader, reader.resolved(node), kind, path)
        case _:
            return None


def _label_keys(node: Labels, kind: Core) -> Node:
    """Labels that are strings; true, false and the members of an IntEnum are read from strings."""
    lax = kind["type"] == "bool" or kind.get("sub_type") == "int"
    texts = node.declared or node.texts
    quoted = (b'"' + text + b'"' if lax and text[:1] != b'"' else text for text in texts)
    return nodes.labels(text for text in quoted if text[:1] == b'"')


def unhashable(reader: Reader, core: Core, seen: frozenset[str] = frozenset()) -> str:
    """What a set cannot hold because Python cannot hash it; empty if it can hold everything."""
    core = reader.target(core)
    kind = core["type"]
    if kind in _UNHASHABLE:
        return _UNHASHABLE[kind]
    ref = core.get("ref", "")
    if ref and ref in seen:
        return ""
    if ref:
        reader.cores[ref] = core
    owner = core.get("cls")
    if kind in ("model", "dataclass") and getattr(owner, "__hash__", None) is None:
        return f"an unhashable {getattr(owner, '__name__', 'object')}"
    problems = (unhashable(reader, part, seen | {ref}) for part in _parts(core))
    return next((problem for problem in problems if problem), "")


def _parts(core: Core) -> Iterator[Core]:
    """The schemas of what is kept inside of a value."""
    match core["type"]:
        case "tuple":
            for item in core["items_schema"]:
                yield {"type": "list"} if item["type"] == "any" else item
        case "union":
            for choice in core["choices"]:
                yield choice[0] if isinstance(choice, tuple) else choice
        case "tagged-union":
            yield from core["choices"].values()
        case "model-fields" | "typed-dict":
            yield from (part["schema"] for part in core["fields"].values())
        case "dataclass-args" | "named-tuple":
            yield from (part["schema"] for part in core["fields"])
        case "lax-or-strict":
            yield core["lax_schema"]
        case "json-or-python":
            yield core["json_schema"]
        case "json":
            yield {"type": "list"} if inner(core, "schema")["type"] == "any" else core["schema"]
        case "frozenset":
            return
        case _ if "schema" in core:
            yield core["schema"]
        case _:
            return
