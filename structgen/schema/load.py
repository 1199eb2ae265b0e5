"""What a user passes becomes a checked `Schema`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from structgen.deadline import deadline
from structgen.errors import Fault, LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.options import Limits
from structgen.regex import PatternTooLarge
from structgen.schema.check import possible
from structgen.schema.core import AfterCheck, Core, CoreNodes, read_core_schema
from structgen.schema.enforce import unenforceable, with_fewer_sets
from structgen.schema.functions import arguments_model, is_function
from structgen.schema.jsonschema import JsonSchemaNodes, read_json_schema
from structgen.schema.nodes import Schema
from structgen.schema.plain import not_json
from structgen.schema.reading import Json, Reader
from structgen.schema.written import is_written, read_written

logger = logging.getLogger("structgen")

MAX_SECONDS = Limits().max_seconds


@dataclass(frozen=True, slots=True)
class LoadedSchema:
    """A schema with what is needed to validate its texts."""

    schema: Schema
    adapter: TypeAdapter[Any]
    checks: tuple[AfterCheck, ...]
    """Python validators and the like, which run after generation."""
    ignored: tuple[Fault, ...] = ()
    """What a JSON Schema says that nothing checks, such as formats that nobody has defined."""
    written: Reader | None = None
    """Reads the texts of a schema that is not JSON as a whole."""

    @property
    def reader(self) -> Reader:
        """What reads the values out of texts."""
        return self.written or Json(self.schema, self.adapter)

    @property
    def validators(self) -> tuple[str, ...]:
        """Paths of what is only checked after generation."""
        return tuple(check.path for check in self.checks)


def load_schema(source: Any, *, max_seconds: float = MAX_SECONDS) -> LoadedSchema:
    """Nodes of a model, a type that Pydantic can validate, a JSON Schema dict, or a signature.

    Raises:
        UnsupportedSchemaError: with every part that cannot be enforced.
        UnsatisfiableSchemaError: with every part that no finite value matches.
        LimitError: it is nested too deeply, too large, or takes longer than `max_seconds`.
    """
    try:
        with deadline(max_seconds):
            return _load(source)
    except RecursionError as error:
        raise LimitError("the schema is nested too deeply to be read; flatten it") from error


def _load(source: Any) -> LoadedSchema:
    if is_written(source):
        title = _title(source)
        root = read_written(source, title, _load_json)
        schema = _possible(root.schema, ())
        return LoadedSchema(schema, _ANY, root.checks, root.ignored, root.reader)
    return _load_json(source)


def _load_json(source: Any) -> LoadedSchema:
    """Of what is written as JSON, a bare `Literal` or enum in quotes included."""
    if isinstance(source, dict):
        return _json_schema(cast(dict[str, Any], source))
    if is_function(source):
        source = arguments_model(source)
    title = _title(source)
    adapter = _adapter(source, title)
    # The settings of a TypeAdapter are no part of its core schema and have no public name.
    config: Any = getattr(adapter, "_config", None) or {}
    try:
        core = read_core_schema(cast(Core, adapter.core_schema), config)
    except RecursionError as error:
        raise LimitError(f"{title} is nested too deeply to be read; flatten it") from error
    return LoadedSchema(_checked(core, title), adapter, core.checks)


def _json_schema(source: dict[str, Any]) -> LoadedSchema:
    named = source.get("title")
    title = named[:80] if isinstance(named, str) and named else "the JSON Schema"
    foreign = not_json(source)
    if foreign:
        raise UnsupportedSchemaError(foreign, schema=title)
    read = read_json_schema(source, title)
    schema = _checked(read, title)
    for fault in read.ignored:
        logger.warning("%s: %s", title, fault)
    return LoadedSchema(schema, _ANY, (), read.ignored)


_ANY = TypeAdapter[Any](Any)


def _checked(read: CoreNodes | JsonSchemaNodes, title: str) -> Schema:
    """The schema, where nothing in it was refused and some finite value matches it."""
    if read.faults:
        raise UnsupportedSchemaError(read.faults, schema=title)
    schema = Schema(read.root, read.definitions, title)
    beyond = unenforceable(schema)
    if beyond and isinstance(read, CoreNodes):
        schema, beyond = with_fewer_sets(schema, beyond)
    if beyond:
        raise UnsupportedSchemaError(beyond, schema=title)
    return _possible(schema, read.impossible)


def _possible(schema: Schema, known: Sequence[Fault]) -> Schema:
    """The schema, where some finite value matches it and nothing `known` says otherwise."""
    try:
        schema, impossible = (schema, tuple(known)) if known else possible(schema)
    except PatternTooLarge as error:
        raise LimitError(f"{schema.title}: {error}") from error
    if impossible:
        raise UnsatisfiableSchemaError(impossible, schema=schema.title)
    return schema


def _title(source: Any) -> str:
    """What error messages call it, e.g. `Triage` or `list[int]`."""
    if isinstance(source, type):
        return source.__name__
    if get_origin(source) is Annotated:
        return _title(get_args(source)[0])
    if get_origin(source) is Literal:
        source = Literal[get_args(source)[:40]]  # more do not fit
    try:
        return str(source).replace("typing.", "")[:80]
    except Exception:
        # A `__repr__` may raise anything, and so do nesting that is too deep and integers of too
        # many digits. Only the name is lost: what is wrong with such a source is found and reported
        # when it is read.
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
    except Exception as error:
        # A type's own `__get_pydantic_core_schema__` may raise anything, and Pydantic's errors for
        # what it does not know have no common class.
        is_json = isinstance(source, str) and source.lstrip().startswith("{")
        advice = "of a JSON Schema pass the dict: json.loads(...)" if is_json else ""
        fault = Fault("$", f"Pydantic cannot build a schema for it: {error}", advice)
        raise UnsupportedSchemaError([fault], schema=title) from error
