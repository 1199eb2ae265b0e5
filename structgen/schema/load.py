"""What a user passes becomes a checked `Schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic_core import SchemaError as CoreSchemaError

from structgen.errors import Fault, LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.schema.check import unsatisfiable
from structgen.schema.core import Core, read_core_schema
from structgen.schema.nodes import Schema


@dataclass(frozen=True, slots=True)
class LoadedSchema:
    """A schema with what is needed to validate its texts."""

    schema: Schema
    adapter: TypeAdapter[Any]
    validators: tuple[str, ...]
    """Paths of Python validators, which run after generation."""


def load_schema(source: Any) -> LoadedSchema:
    """Nodes of a Pydantic model or of any type that Pydantic can validate.

    Raises:
        UnsupportedSchemaError: with every part that cannot be enforced.
        UnsatisfiableSchemaError: with every part that no finite value matches.
    """
    title = _title(source)
    if isinstance(source, dict):
        raise UnsupportedSchemaError(
            [Fault("$", "JSON Schema dicts are not supported yet", "pass a Pydantic model")],
            schema="the JSON Schema",
        )
    adapter = _adapter(source, title)
    # The settings of a TypeAdapter are no part of its core schema and have no public name.
    config: Any = getattr(adapter, "_config", None) or {}
    try:
        core = read_core_schema(cast(Core, adapter.core_schema), config)
    except RecursionError as error:
        raise LimitError(f"{title} is nested too deeply to be read; flatten it") from error
    if core.faults:
        raise UnsupportedSchemaError(core.faults, schema=title)
    schema = Schema(core.root, core.definitions, title)
    impossible = core.impossible or unsatisfiable(schema)
    if impossible:
        raise UnsatisfiableSchemaError(impossible, schema=title)
    return LoadedSchema(schema, adapter, core.validators)


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
