"""A set of tools as a schema: which names there are, and which of them may be called now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeVar, cast, overload

from structgen.errors import Fault, OptionError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.schema import nodes
from structgen.schema.core import AfterCheck
from structgen.schema.nodes import Labels, Node, Object, Property, Ref, Schema, Union
from structgen.schema.rewrite import rewritten
from structgen.schema.written import Composed, Composition
from structgen.toolset.calls import CallReader, ToolCall
from structgen.toolset.items import flat
from structgen.toolset.tool import Refused, Tool, read_tool

T_co = TypeVar("T_co", covariant=True)

MAX_CALLS = 8
SHOWN = 8
"""Names in a message."""
REMEMBERED = 256
"""Choices out of sets of tools, so that the same choice is compiled once."""

_NO_TOOL = Object((Property("name", Labels((b"null",))),), description="No tool fits.")


class Tools(Composed[T_co]):
    """Some tools, of which the model calls one, or several; immutable, made by `tools`.

    Example: `Generator(tools([forecast, remind]), lm)("Rain in Porto?") -> ToolCall(...)`
    """

    __slots__ = ("_all", "_composition", "max_calls", "named", "none", "parallel")

    def __init__(
        self,
        named: Mapping[str, Tool],
        *,
        none: bool,
        parallel: bool,
        max_calls: int,
        of: Tools[Any] | None = None,
    ) -> None:
        self.named: Mapping[str, Tool] = MappingProxyType({**named})
        """The tools by name, in the order in which they were given."""
        self.none = none
        """Whether the model may call nothing."""
        self.parallel = parallel
        self.max_calls = max_calls
        self._all: Tools[Any] = self if of is None else of
        """What was made before any choice for a turn."""
        self._composition: Composition | None = None

    def __repr__(self) -> str:
        shown = ", ".join([*self.names[:SHOWN]]) + ", ..." * (len(self) > SHOWN)
        return f"Tools({shown})"

    def __len__(self) -> int:
        return len(self.named)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.named.values())

    def __contains__(self, name: object) -> bool:
        return name in self.named

    def __getitem__(self, name: str) -> Tool:
        return self.named[name]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The same as iterating, under the name that answers of MCP servers have for it."""
        return tuple(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that may be written."""
        return tuple(self.named)

    def only(self, *names: str) -> Tools[T_co]:
        """These tools alone, for a turn in which no other may be called.

        Example: `tools.only("search", "open")`

        Raises:
            OptionError: there is no tool of such a name.
        """
        self._check(names)
        wanted = set(names)
        return _chosen(self._all, tuple(n for n in self.named if n in wanted), self.none)

    def without(self, *names: str) -> Tools[T_co]:
        """All tools but these.

        Raises:
            OptionError: there is no tool of such a name.
        """
        self._check(names)
        unwanted = set(names)
        return _chosen(self._all, tuple(n for n in self.named if n not in unwanted), self.none)

    def with_choice(self, tool_choice: str | Mapping[str, Any]) -> Tools[Any]:
        """What the `tool_choice` of OpenAI's interface says.

        Args:
            tool_choice: "auto": a tool or none; "required": some tool; "none": no tool; or a
                tool's name, also as `{"type": "function", "function": {"name": ...}}`.

        Raises:
            OptionError: it is something else.
        """
        match tool_choice:
            case "auto":
                return _chosen(self._all, self.names, True)
            case "required":
                return _chosen(self._all, self.names, False)
            case "none":
                return _chosen(self._all, (), True)
            case str():
                self._check([tool_choice])
                return _chosen(self._all, (tool_choice,), False)
            case {"function": {"name": str(name)}} | {"name": str(name)}:
                self._check([name])  # here "none" and the like are names
                return _chosen(self._all, (name,), False)
            case _:
                raise OptionError(
                    f"tool_choice={tool_choice!r} must be 'auto', 'required', 'none' or the name "
                    "of a tool"
                )

    def composition(self) -> Composition:
        """The nodes of all calls together, and what reads them."""
        if self._composition is None:
            self._composition = _composed(self)
        return self._composition

    def _check(self, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self.named]
        if unknown:
            known = ", ".join(self.names[:SHOWN]) + ", ..." * (len(self) > SHOWN)
            raise OptionError(f"there is no tool {unknown[0]!r}; there are {known}")


@lru_cache(REMEMBERED)
def _chosen(tools: Tools[Any], names: tuple[str, ...], none: bool) -> Tools[Any]:
    if not names and not none:
        raise OptionError("no tool is left to be called; leave one, or allow none=True")
    if names == tools.names and none == tools.none:
        return tools
    named = {name: tools.named[name] for name in names}
    return Tools(named, none=none, parallel=tools.parallel, max_calls=tools.max_calls, of=tools)


def _composed(tools: Tools[Any]) -> Composition:
    definitions: dict[str, Node] = {}
    options: list[Node] = [_joined(tool, definitions) for tool in tools]
    checks: list[AfterCheck] = []
    ignored: list[Fault] = []
    step = "$[*].arguments" if tools.parallel else "$.arguments"
    for tool in tools:
        checks += [replace(part, path=step + part.path[1:]) for part in tool.loaded.checks]
        ignored += [replace(part, path=step + part.path[1:]) for part in tool.loaded.ignored]
    if tools.none and not tools.parallel:
        options.append(_NO_TOOL)
    root: Node = options[0] if len(options) == 1 else Union(tuple(options))
    if tools.parallel:
        if not options:
            root = nodes.Never("no tool may be called")
        root = nodes.array(root, 0 if tools.none else 1, tools.max_calls if options else 0)
    schema = Schema(root, definitions, str(tools))
    reader = CallReader(schema, tools.named, parallel=tools.parallel, none=tools.none)
    return Composition(schema, reader, tuple(checks), tuple(ignored))


def _joined(tool: Tool, definitions: dict[str, Node]) -> Node:
    """What calls a tool; its definitions join those of the others, under other names if need be."""
    own = tool.loaded.schema.definitions
    taken = {name for name, node in own.items() if definitions.get(name, node) != node}
    if not taken:
        definitions.update(own)
        return tool.call_node()

    def renamed(node: Node) -> Node:
        return Ref(new[node.name]) if isinstance(node, Ref) else node

    new = {name: f"{name} of {tool.name}" for name in own}
    definitions.update({new[name]: rewritten(node, renamed) for name, node in own.items()})
    return rewritten(tool.call_node(), renamed)


@overload
def tools(
    items: Iterable[Any],
    *,
    none: Literal[False] = False,
    parallel: Literal[False] = False,
    open_arguments: bool = False,
) -> Tools[ToolCall]: ...
@overload
def tools(
    items: Iterable[Any],
    *,
    none: Literal[True],
    parallel: Literal[False] = False,
    open_arguments: bool = False,
) -> Tools[ToolCall | None]: ...
@overload
def tools(
    items: Iterable[Any],
    *,
    none: bool = False,
    parallel: Literal[True],
    max_calls: int = MAX_CALLS,
    open_arguments: bool = False,
) -> Tools[list[ToolCall]]: ...
@overload
def tools(
    items: Iterable[Any],
    *,
    none: bool = False,
    parallel: bool = False,
    max_calls: int = MAX_CALLS,
    open_arguments: bool = False,
) -> Tools[Any]: ...
def tools(
    items: Iterable[Any],
    *,
    none: bool = False,
    parallel: bool = False,
    max_calls: int = MAX_CALLS,
    open_arguments: bool = False,
) -> Tools[Any]:
    """Tools of which the model calls one: its name cannot be wrong, and its arguments fit.

    A call is written as `{"name": "get_weather", "arguments": {"city": "Porto"}}`, and its value is
    a `ToolCall`. The result may stand wherever a Pydantic model may.

    Example: `Generator(tools([forecast, remind]), lm)("Rain in Porto?").call()`

    Args:
        items: functions, Pydantic models, and tools as OpenAI, Anthropic or MCP describe them:
            dictionaries, objects with the same attributes, and lists of these.
        none: the model may also call nothing: then the value is None, and is written as
            `{"name": null}`. With `parallel` it is an empty list.
        parallel: the value is a list of calls, of which there are at most `max_calls`.
        open_arguments: a JSON Schema allows the keys that it does not mention, as it says by
            itself; without this it has to say `"additionalProperties": true`.

    Raises:
        SchemaError: with everything that is wrong with any of the tools.
        OptionError: there are no tools.
    """
    if isinstance(items, str | bytes):
        raise OptionError(f"tools takes a list of tools, got {items!r}")
    if isinstance(max_calls, bool) or not isinstance(max_calls, int) or max_calls < 1:  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise OptionError(f"max_calls={max_calls!r} must be a whole number above 0")
    listed = list(flat(_listed(items)))
    if not listed:
        raise OptionError("tools([]) leaves nothing to call; pass at least one tool")
    read = [(path, read_tool(item, path, open_arguments=open_arguments)) for path, item in listed]
    refused = [tool for _, tool in read if isinstance(tool, Refused)]
    named = [(path, tool) for path, tool in read if isinstance(tool, Tool)]
    repeated = list(_repeated(named))
    if refused or repeated:
        _refuse(refused, repeated)
    return Tools(
        {tool.name: tool for _, tool in named}, none=none, parallel=parallel, max_calls=max_calls
    )


def _listed(items: Any) -> Any:
    """The items as a list, where they are neither one nor an answer that holds one."""
    is_answer = isinstance(items, Mapping) or isinstance(
        getattr(items, "tools", None), list | tuple
    )
    if is_answer or isinstance(items, list | tuple):
        return items
    if isinstance(items, Iterable):
        return list(cast("Iterable[Any]", items))
    raise OptionError(f"tools takes a list of tools, got {type(items).__name__}")


def _repeated(named: list[tuple[str, Tool]]) -> Iterator[Fault]:
    count = Counter(tool.name for _, tool in named)
    first: dict[str, str] = {}
    for path, tool in named:
        if tool.name in first:
            problem = f"the name {tool.name!r} is that of {first[tool.name]} too"
            yield Fault(path, problem, "rename one: dataclasses.replace(tool, name=...)")
        elif count[tool.name] > 1:
            first[tool.name] = path


def _refuse(refused: list[Refused], repeated: list[Fault]) -> NoReturn:
    faults = [fault for part in refused for fault in part.faults] + repeated
    if not repeated and all(part.impossible for part in refused):
        raise UnsatisfiableSchemaError(faults, schema="the tools")
    raise UnsupportedSchemaError(faults, schema="the tools")
