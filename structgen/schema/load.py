"""What a user passes becomes a checked `Schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic_core import SchemaError as CoreSchemaError

from structgen.errors import Fault, LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.regex import PatternTooLarge
from structgen.schema.check import unsatisfiable
from structgen.schema.core import Core, CoreNodes, read_core_schema
from structgen.schema.enforce import unenforceable
from structgen.schema.jsonschema import JsonSchemaNodes, read_json_schema
from structgen.schema.nodes import Schema


@dataclass(frozen=True, slots=True)
class LoadedSchema:
    """A schema with what is needed to validate its texts."""

    schema: Schema
    adapter: TypeAdapter[Any]
    validators: tuple[str, ...]
    """Paths of Python validators, which run after generation."""


def load_schema(source: Any) -> LoadedSchema:
    """Nodes of a Pydantic model, of any type that Pydantic can validate, or of a JSON Schema dict.

    Raises:
        UnsupportedSchemaError: with every part that cannot be enforced.
        UnsatisfiableSchemaError: with every part that no finite value matches.
    """
    if isinstance(source, dict):
        return _json_schema(cast(dict[str, Any], source))
    title = _title(source)
    adapter = _adapter(source, title)
    # The settings of a TypeAdapter are no part of its core schema and have no public name.
    config: Any = getattr(adapter, "_config", None) or {}
    try:
        core = read_core_schema(cast(Core, adapter.core_schema), config)
    except RecursionError as error:
        raise LimitError(f"{title} is nested too deeply to be read; flatten it") from error
    return LoadedSchema(_checked(core, title), adapter, core.validators)


def _json_schema(source: dict[str, Any]) -> LoadedSchema:
    title = str(source.get("title") or "the JSON Schema")[:80]
    return LoadedSchema(_checked(read_json_schema(source, title), title), _ANY, ())


_ANY = TypeAdapter[Any](Any)


def _checked(read: CoreNodes | JsonSchemaNodes, title: str) -> Schema:
    """The schema, where nothing in it was refused and some finite value matches it."""
    if read.faults:
        raise UnsupportedSchemaError(read.faults, schema=title)
    schema = Schema(read.root, read.definitions, title)
    beyond = unenforceable(schema)
    if beyond:
        raise UnsupportedSchemaError(beyond, schema=title)
    try:
        impossible = read.impossible or unsatisfiable(schema)
    except PatternTooLarge as error:
        raise LimitError(f"{title}: {error}") from error
    if impossible:
        raise UnsatisfiableSchemaError(impossible, schema=title)
    return schema


def _title(source: Any) -> str:
    """What error messages call it, e.g. `Triage` or `list[int]`."""
    if isinstance(source, type):
        return source.__name__
    if get_origin(source) is Annotated:
        return _title(get_args(source)[0])
    try:
        return str(source).replace("typing.", "")[:80]
    except (RecursionError, ValueError):  # too deep, or an integer of too many digits
        return "the type"


def _adapter(source: Any, title: str) -> TypeAdapter[Any]:
    try:
        if isinstance(source, type) and issubclass(source, BaseModel):
            source.model_rebuild()
        adapter = source if isinstance(source, TypeAdapter) else TypeAdapter(source)
        adapter.rebuild(raise_errors=True)
        return adapter
    except RecursionError as error:
        raise LimitError(f"{title} is nested too deeply to be read; flatten it") from error
    except (PydanticUserError, CoreSchemaError, NameError, TypeError, AttributeError) as error:
        fault = Fault("$", f"Pydantic cannot build a schema for it: {error}")
        raise UnsupportedSchemaError([fault], schema=title) from error
