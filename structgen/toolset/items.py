"""What people call a tool: functions, models, and the dictionaries of OpenAI, Anthropic and MCP."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import BaseModel
from typing_extensions import is_typeddict

from structgen.schema.functions import Arguments, arguments_model, is_function
from structgen.schema.jsonschema.values import kind_name

SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
"""Where OpenAI, Anthropic and MCP have the JSON Schema of the arguments."""
HARMLESS_KEYS = frozenset(
    {
        "_meta", "allowed_callers", "annotations", "cache_control", "defer_loading", "description",
        "eager_input_streaming", "execution", "icons", "input_examples", "meta", "name",
        "outputSchema", "output_schema", "response", "strict", "title", "type",
    }
)  # fmt: skip
"""What else a dictionary may hold; it says nothing about the arguments."""


@dataclass(frozen=True, slots=True)
class Described:
    """What an item of the list says about a tool."""

    name: object
    description: object
    """None where the schema of the arguments has one."""
    schema: object
    """Of the arguments: a JSON Schema or a class."""
    path: str = ""
    """What leads from the item to the schema, e.g. `.function.parameters`."""
    outer: str = ""
    """What leads to name and description."""
    function: Callable[..., Any] | None = None


_ADVICE = "pass functions, Pydantic models, or tools as dictionaries"


class NoTool(ValueError):
    """Something that is no tool; the message says what it is."""


def flat(items: object, path: str = "$") -> Iterator[tuple[str, Any]]:
    """(path, item) of all tools in a list, and in the lists of tools that it holds.

    Example: `[weather, ListToolsResult(tools=[mail])]` -> `("$[0]", weather)`,
    `("$[1].tools[0]", mail)`
    """
    if isinstance(items, list | tuple):
        for index, item in enumerate(cast("list[Any]", items)):
            yield from flat(item, f"{path}[{index}]")
        return
    inner = _inner(items)
    if inner is None:
        yield path, items
    else:
        yield from flat(inner, f"{path}.tools")


def _inner(item: Any) -> list[Any] | None:
    """The list of tools in what a server or a set of tools answers."""
    if isinstance(item, Mapping):
        answer = cast("Mapping[str, Any]", item)
        found = answer.get("tools") if "name" not in answer else None
    else:
        is_answer = not isinstance(item, type) and not is_function(item)
        found = getattr(item, "tools", None) if is_answer else None
    return list(cast("list[Any]", found)) if isinstance(found, list | tuple) else None


def described(item: Any) -> Described:
    """What an item says.

    Raises:
        NoTool: it is none.
        UnsupportedSchemaError: a function has arguments that no JSON can be.
    """
    if is_function(item):
        model = arguments_model(item)
        return Described(model.__name__, None, model, function=item)
    if isinstance(item, type):
        return _of_class(item)
    if isinstance(item, Mapping):
        return _of_dict(cast("Mapping[str, Any]", item))
    for key in ("inputSchema", "input_schema"):
        if hasattr(item, "name") and hasattr(item, key):
            schema, description = getattr(item, key), getattr(item, "description", None)
            return Described(item.name, description or "", _object_schema(schema), f".{key}")
    raise NoTool(f"{kind_name(item)} is no tool; {_ADVICE}")


def _of_class(item: type) -> Described:
    if issubclass(item, Arguments):
        return Described(item.__name__, None, item, function=item.structgen_function)
    if issubclass(item, BaseModel) or dataclasses.is_dataclass(item) or is_typeddict(item):
        return Described(item.__name__, None, item)
    raise NoTool(f"the class {item.__name__} has no fields to be written; {_ADVICE}")


def _of_dict(item: Mapping[str, Any]) -> Described:
    kind, inner = item.get("type", "function"), item.get("function")
    if kind == "function" and isinstance(inner, Mapping):
        found = _of_dict(cast("Mapping[str, Any]", inner))
        return replace(found, path=f".function{found.path}", outer=f".function{found.outer}")
    if "name" not in item:
        raise NoTool(f"a tool of type {kind!r} has no name; its keys are {sorted(map(str, item))}")
    given = [key for key in SCHEMA_KEYS if key in item]
    if len(given) > 1:
        raise NoTool(f"it has both {given[0]!r} and {given[1]!r}: which are its arguments?")
    unknown = sorted(str(key) for key in item.keys() - HARMLESS_KEYS - set(SCHEMA_KEYS))
    if not given and unknown:
        raise NoTool(
            f"it has no arguments but {unknown[0]!r}, which is not known: the JSON Schema of the "
            "arguments is its 'parameters', 'input_schema' or 'inputSchema'"
        )
    schema = _object_schema(item[given[0]] if given else None)
    description = item.get("description")
    return Described(
        item["name"],
        "" if description is None else description,
        schema,
        "".join(f".{key}" for key in given),
    )


def _object_schema(schema: Any) -> Any:
    """A JSON Schema that says that arguments are an object, where it says nothing about that."""
    if schema is None or schema == {}:
        return {"type": "object", "properties": {}}
    if isinstance(schema, dict) and "type" not in schema:
        return {"type": "object", **cast("dict[str, Any]", schema)}
    return schema
