"""One tool: its name, what it does, and the schema of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from structgen.errors import Fault, LimitError, SchemaError, UnsatisfiableSchemaError
from structgen.schema.core_reader import plain_text
from structgen.schema.functions import Arguments, arguments_of
from structgen.schema.load import LoadedSchema, load_schema
from structgen.schema.nodes import Labels, Node, Object, Property, Ref, json_text
from structgen.toolset.closing import closed, is_object, opens_objects
from structgen.toolset.items import NoTool, described


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """Something that a model may call; immutable, made by `tools`.

    Example: `Tool(name="get_weather", description="Look up the weather.", ...)`
    """

    name: str
    description: str
    source: Any
    """What the tool was made of: a function, a model, a dictionary."""
    loaded: LoadedSchema = field(repr=False)
    """The schema of its arguments."""
    function: Callable[..., Any] | None = field(default=None, repr=False)
    """What a call calls; None of models and of tools that are known by their schema only."""

    def arguments(self, text: str) -> Any:
        """The arguments that a JSON text stands for: a dictionary, or the instance of a model.

        Raises:
            ValueError: a Python validator rejected them.
        """
        value: Any = self.loaded.adapter.validate_json(text)
        return arguments_of(value) if isinstance(value, Arguments) else value

    def call_node(self) -> Object:
        """What calls the tool: `{"name": "get_weather", "arguments": {...}}`."""
        name = Labels((json_text(self.name),))
        parts = Property("name", name), Property("arguments", self._arguments_node())
        return Object(parts, description=self.description)

    def _arguments_node(self) -> Node:
        """The root of the schema, without the description that the call has already."""
        node = self.loaded.schema.root
        while isinstance(node, Ref):
            node = self.loaded.schema.definitions[node.name]
        if isinstance(node, Object) and node.description.strip() == self.description:
            return replace(node, description="")
        return node


@dataclass(frozen=True, slots=True)
class Refused:
    """Why something is no tool."""

    faults: tuple[Fault, ...]
    impossible: bool = False
    """Nothing about it is unknown, but no arguments can match."""


def read_tool(item: Any, path: str, *, open_arguments: bool) -> Tool | Refused:
    """The tool that an item of the list stands for, or all that is wrong with it."""
    if isinstance(item, Tool):
        faults = tuple(_text_faults(item.name, item.description, path))
        return Refused(faults) if faults else item
    try:
        found = described(item)
    except NoTool as error:
        return Refused((Fault(path, str(error)),))
    except SchemaError as error:  # a function whose arguments are none of JSON
        return Refused(_moved(error.faults, path))
    faults = tuple(_text_faults(found.name, found.description, path + found.outer))
    loaded = _loaded(found.schema, path + found.path, open_arguments)
    if isinstance(loaded, Refused):
        return Refused((*faults, *loaded.faults), loaded.impossible and not faults)
    if faults:
        return Refused(faults)
    told = _description(loaded) if found.description is None else str(found.description)
    return Tool(str(found.name), plain_text(told).strip(), item, loaded, found.function)


def _text_faults(name: object, description: object, path: str) -> Iterator[Fault]:
    problem = _unusable(name)
    if problem:
        yield Fault(f"{path}.name", problem)
    if description is not None and not isinstance(description, str):
        yield Fault(f"{path}.description", f"a description is a text, got {description!r}")


def _loaded(source: Any, path: str, open_arguments: bool) -> LoadedSchema | Refused:
    """The schema of a tool's arguments, read and checked."""
    if not isinstance(source, dict | type):
        problem = f"the arguments of a tool are a JSON Schema, which is a dict, got {source!r}"
        return Refused((Fault(path, problem),))
    try:
        loaded = load_schema(source)
    except SchemaError as error:
        impossible = isinstance(error, UnsatisfiableSchemaError)
        return Refused(_moved(error.faults, path), impossible)
    except LimitError as error:
        return Refused((Fault(path, str(error)),))
    if not is_object(loaded.schema, loaded.schema.root):
        problem = "the arguments of a tool are a JSON object, and these can be something else"
        return Refused((Fault(path, problem, "use an object with a property for each argument"),))
    if isinstance(source, dict) and not open_arguments and not opens_objects(source):
        return replace(loaded, schema=closed(loaded.schema))
    return loaded


def _moved(faults: tuple[Fault, ...], path: str) -> tuple[Fault, ...]:
    return tuple(replace(fault, path=path + fault.path.removeprefix("$")) for fault in faults)


def _unusable(name: object) -> str:
    """What is wrong with a tool's name; empty if nothing is."""
    if not isinstance(name, str):
        return f"the name of a tool is a text, got {name!r}"
    if not name:
        return "the name of a tool is empty"
    if not name.isprintable() or any(char.isspace() for char in name):
        return f"the name {name!r} holds white space or characters that cannot be shown"
    if name == "<lambda>":
        return "a lambda has no name; define the function with def"
    return ""


def _description(loaded: LoadedSchema) -> str:
    node = loaded.schema.root
    while isinstance(node, Ref):
        node = loaded.schema.definitions[node.name]
    return node.description if isinstance(node, Object) else ""
