"""The arguments of a function as a model, for tools.

def weather(city: str, days: int = 3): ...   ->   {"city": "Rome", "days": 3}
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic.fields import FieldInfo

from structgen.errors import Fault, UnsupportedSchemaError
from structgen.schema.core_reader import plain_text

_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_ANY_SECTION = re.compile(r"^[A-Z][A-Za-z ]*:\s*$")
_ARGUMENT = re.compile(r"^\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)$")

_ADVICE = {
    inspect.Parameter.POSITIONAL_ONLY: "remove the `/` from the signature: arguments have names",
    inspect.Parameter.VAR_POSITIONAL: "replace it by an argument that is a list",
    inspect.Parameter.VAR_KEYWORD: "replace it by an argument that is a dict",
}


def arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    """A model with a field for each argument, its type, default and description.

    The function's docstring without its `Args` section describes the model; entries of that section
    describe the fields. A first argument that is bound (`self`) is no field.

    Raises:
        UnsupportedSchemaError: with every argument that has no type or no name to be given by.
    """
    name = getattr(function, "__name__", type(function).__name__)
    parameters = inspect.signature(function).parameters
    hints = _hints(function, name)
    faults = list(_faults(parameters, hints))
    if faults:
        raise UnsupportedSchemaError(faults, schema=f"the arguments of {name}")
    summary, described = split_docstring(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for key, parameter in parameters.items():
        attribute, hint = _attribute(key), hints[key]
        if attribute != key:
            hint = Annotated[hint, Field(alias=key)]
        fields[attribute] = (hint, _field(parameter, described.get(key)))
    config = ConfigDict(extra="forbid", protected_namespaces=())
    try:
        return create_model(name, __config__=config, __doc__=summary or None, **fields)
    except PydanticUserError as error:
        fault = Fault("$", f"Pydantic cannot build a schema for it: {error}")
        raise UnsupportedSchemaError([fault], schema=f"the arguments of {name}") from error


def arguments_of(value: BaseModel) -> dict[str, Any]:
    """The keyword arguments that an instance of an `arguments_model` stands for."""
    fields = type(value).model_fields
    return {info.alias or name: getattr(value, name) for name, info in fields.items()}


def _attribute(key: str) -> str:
    """The argument's name, or another one where it is no good as the name of a field."""
    return f"argument_{key}" if key.startswith("_") or hasattr(BaseModel, key) else key


def _field(parameter: inspect.Parameter, described: str | None) -> FieldInfo:
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        return default
    return cast(FieldInfo, Field(default, description=described))


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        fault = Fault("$", f"its annotations cannot be read: {error}", "import the types it names")
        raise UnsupportedSchemaError([fault], schema=f"the arguments of {name}") from error


def _faults(parameters: Mapping[str, inspect.Parameter], hints: dict[str, Any]) -> Iterator[Fault]:
    for key, parameter in parameters.items():
        advice = _ADVICE.get(parameter.kind)
        if advice is not None:
            kind = parameter.kind.description
            yield Fault(f"$.{key}", f"a {kind} argument cannot be written as JSON", advice)
        elif key not in hints:
            problem = "the argument has no type"
            yield Fault(f"$.{key}", problem, f"annotate it, for instance `{key}: str`")


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what the `Args` section of a Google-style docstring says."""
    kept: list[str] = []
    described: dict[str, str] = {}
    inside, current, indent = False, "", 0
    for line in plain_text(text).splitlines():
        if _ANY_SECTION.match(line):
            inside = bool(_SECTION.match(line))
            if inside:
                continue
        if not inside:
            kept.append(line)
            continue
        found = _ARGUMENT.match(line.strip())
        depth = len(line) - len(line.lstrip())
        if found and (not current or depth <= indent):
            current, indent = found[1], depth
            described[current] = found[2]
        elif current and line.strip():
            described[current] = f"{described[current]} {line.strip()}".strip()
    return "\n".join(kept).strip(), described
