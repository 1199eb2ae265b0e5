"""The arguments of a function as a model, for tools.

def weather(city: str, days: int = 3): ...   ->   {"city": "Rome", "days": 3}
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NoReturn,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_core import SchemaError as CoreSchemaError

from structgen.errors import Fault, OptionError, UnsupportedSchemaError
from structgen.schema.core import Core, read_core_schema
from structgen.schema.docstrings import split_docstring

REMEMBERED = 256
"""Functions whose models are kept."""

_ADVICE = {
    inspect.Parameter.POSITIONAL_ONLY: "remove the `/` or wrap it: arguments have names",
    inspect.Parameter.VAR_POSITIONAL: "replace it by an argument that is a list",
    inspect.Parameter.VAR_KEYWORD: "replace it by an argument that is a dict",
}
_TYPE_MODULES = ("typing", "types", "typing_extensions")
"""Where callable things come from that stand for types, such as `NewType`."""
_NO_SCHEMA = (
    PydanticUserError,
    CoreSchemaError,
    NameError,
    TypeError,
    AttributeError,
    RuntimeError,
)
"""What Pydantic raises for a type that it cannot validate."""


class Arguments(BaseModel):
    """What a function is to be called with; its subclasses are made by `arguments_model`."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), serialize_by_alias=True)

    # Not at run time: Pydantic reads the annotations of all bases whenever it makes a subclass.
    if TYPE_CHECKING:
        structgen_function: ClassVar[Callable[..., Any] | None]
        structgen_names: ClassVar[Mapping[str, str]]
        """The argument that each field stands for."""

    def call(self) -> Any:
        """Call the function with these arguments; of an async one, the result is to be awaited."""
        function = type(self).structgen_function
        assert function is not None, "arguments_model sets it"
        return function(**arguments_of(self))


Arguments.structgen_function, Arguments.structgen_names = None, {}


def is_function(source: Any) -> bool:
    """Whether something is called rather than validated: no class and no other type."""
    if isinstance(source, type) or get_origin(source) is not None:
        return False
    if inspect.isroutine(source) or isinstance(source, functools.partial):
        return True
    return callable(source) and type(source).__module__ not in _TYPE_MODULES


def arguments_model(function: Callable[..., Any]) -> type[Arguments]:
    """A model with a field for each argument, its type, default and description.

    The function's docstring without what it says about arguments describes the model; that
    describes the fields. What is bound (`self`, or by `functools.partial`) is no field. The model
    of a function is made once.

    Example: `arguments_model(weather)(city="Rome").call()` is `weather(city="Rome")`

    Raises:
        UnsupportedSchemaError: with every argument that has no type, a type that cannot be
            validated, or no name to be given by.
    """
    if isinstance(function, Hashable):  # pyright: ignore[reportUnnecessaryIsInstance]  # not all
        return _remembered(function)
    return _model(function)


def arguments_of(value: Arguments) -> dict[str, Any]:
    """The keyword arguments that an instance of an `arguments_model` stands for.

    Arguments that were left out have the function's own defaults, not copies of them.

    Raises:
        OptionError: it is an instance of something else.
    """
    if not isinstance(value, Arguments):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise OptionError(f"arguments_of takes an instance of an arguments_model, got {value!r}")
    found: dict[str, Any] = {}
    for name, info in type(value).model_fields.items():
        left_out = name not in value.model_fields_set and info.default is not PydanticUndefined
        found[type(value).structgen_names[name]] = (
            info.default if left_out else getattr(value, name)
        )
    return found


def forget_functions() -> None:
    """Forget all models of functions."""
    _remembered.cache_clear()


def _model(function: Callable[..., Any]) -> type[Arguments]:
    plain = _unwrapped(function)
    name = str(getattr(plain, "__name__", type(plain).__name__))
    parameters = _parameters(function, name)
    hints = _hints(plain, parameters, name)
    summary, described = split_docstring(_docstring(plain))
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for key, parameter in parameters.items():
        attribute = _attribute(key, parameters)
        default = ... if parameter.default is parameter.empty else parameter.default
        alias = None if attribute == key else key
        hint = _annotated(hints[key], default, described.get(key), alias)
        fields[attribute] = (hint, default)
        names[attribute] = key
    model = _made(name, summary, fields, hints)
    model.structgen_function, model.structgen_names = function, names
    return model


def _made(
    name: str, summary: str, fields: Mapping[str, Any], hints: Mapping[str, Any]
) -> type[Arguments]:
    """The model; each type is looked at alone only if Pydantic cannot make it."""
    try:
        model = create_model(name, __base__=Arguments, __doc__=summary or None, **fields)
        if not model.__pydantic_complete__:  # a name inside of a type is not known
            model.model_rebuild()
    except _NO_SCHEMA as error:
        faults, unreadable = _beyond(hints)
        whole = Fault("$", f"Pydantic cannot build a schema for it: {error}")
        _refuse(name, faults if unreadable else [whole], error)
    return model


_remembered = functools.lru_cache(REMEMBERED)(_model)


def _refuse(name: str, faults: list[Fault], cause: Exception | None = None) -> NoReturn:
    raise UnsupportedSchemaError(faults, schema=f"the arguments of {name}") from cause


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside of `functools.partial`."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


def _docstring(function: Callable[..., Any]) -> str:
    """Of a callable instance, what its `__call__` says, or else its class."""
    if inspect.isroutine(function):
        return inspect.getdoc(function) or ""
    return inspect.getdoc(type(function).__call__) or inspect.getdoc(type(function)) or ""


def _parameters(function: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    """What is still to be given; `functools.partial` may have given a part."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError) as error:
        advice = "wrap it in a function whose arguments have types"
        _refuse(name, [Fault("$", f"its signature cannot be read: {error}", advice)], error)
    given: set[str] = set()
    while isinstance(function, functools.partial):
        part = cast("functools.partial[Any]", function)
        given.update(part.keywords)
        function = part.func
    return {key: parameter for key, parameter in parameters.items() if key not in given}


def _hints(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], name: str
) -> dict[str, Any]:
    """The types of the arguments; refused with all that is wrong with any."""
    hints: dict[str, Any] = {}
    faults: dict[str, list[Fault]] = {}
    for key, parameter in parameters.items():
        try:
            hints[key] = _hint(function, parameter)
        except _NO_SCHEMA as error:
            problem = f"its type cannot be read: {_gist(error)}"
            faults[key] = [Fault(f"$.{key}", problem, "import the types it names")]
        else:
            faults[key] = list(_faults(parameter, hints[key]))
    if any(faults.values()):
        each = (found or _beyond({key: hints[key]})[0] for key, found in faults.items())
        _refuse(name, [fault for found in each for fault in found])
    return hints


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type of one argument, with names in quotes looked up where the function is defined."""
    if type(parameter.annotation) is type:
        return parameter.annotation  # most are classes
    target: Any = function if inspect.isroutine(function) else type(function).__call__
    target = inspect.unwrap(target)
    target = getattr(target, "__func__", target)
    scope = {kind.__name__: kind for kind in getattr(target, "__type_params__", ())}
    holder = types.SimpleNamespace(__annotations__={"it": parameter.annotation})
    names: dict[str, Any] = getattr(target, "__globals__", {})
    return get_type_hints(holder, names, scope, include_extras=True)["it"]


def _faults(parameter: inspect.Parameter, hint: Any) -> Iterator[Fault]:
    path, advice = f"$.{parameter.name}", _ADVICE.get(parameter.kind)
    if advice is not None:
        kind = parameter.kind.description
        yield Fault(path, f"a {kind} argument cannot be written as JSON", advice)
    elif hint is inspect.Parameter.empty and parameter.name in ("self", "cls"):
        advice = "pass the method of an instance, which is bound"
        yield Fault(path, "it belongs to a class and is no argument of a call", advice)
    elif hint is inspect.Parameter.empty:
        advice = f"annotate it, for instance `{parameter.name}: str`"
        yield Fault(path, "the argument has no type", advice)


def _beyond(hints: Mapping[str, Any]) -> tuple[list[Fault], bool]:
    """What is wrong with types, and whether Pydantic has no schema for one.

    Such as the context that a framework passes. What compiling says about the others is told with
    that, not found twice.
    """
    faults: list[Fault] = []
    unreadable = False
    for key, hint in hints.items():
        path = f"$.{key}"
        try:
            core = cast(Core, TypeAdapter(hint).core_schema)
        except _NO_SCHEMA as error:
            unreadable = True
            problem = f"Pydantic cannot build a schema for it: {_gist(error)}"
            advice = f"give it beforehand: functools.partial(..., {key}=...)"
            faults.append(Fault(path, problem, advice))
        else:
            found = read_core_schema(core, {}).faults
            faults += [replace(fault, path=path + fault.path.removeprefix("$")) for fault in found]
    return faults, unreadable


def _gist(error: Exception) -> str:
    """Without Pydantic's own advice."""
    return str(error).partition("\n")[0].partition(". Set ")[0]


def _attribute(key: str, parameters: Mapping[str, object]) -> str:
    """The argument's name, or another one where it is no good as the name of a field."""
    if not key.startswith("_") and not hasattr(Arguments, key):
        return key
    attribute = f"argument_{key}"
    while attribute in parameters:
        attribute += "_"
    return attribute


def _annotated(hint: Any, default: Any, described: str | None, alias: str | None) -> Any:
    """A type with what else is known; the author's own `Field` goes before the docstring."""
    own = [default, *(get_args(hint)[1:] if get_origin(hint) is Annotated else ())]
    if described and not any(isinstance(part, FieldInfo) and part.description for part in own):
        hint = Annotated[hint, Field(description=described)]
    return hint if alias is None else Annotated[hint, Field(alias=alias)]
