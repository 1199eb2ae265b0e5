"""A part of a Pydantic core schema: what it may hold, and how a text is read by it alone."""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, cast

from pydantic_core import CoreConfig, CoreSchema, SchemaValidator, from_json

from structgen.schema.core_reader import Core
from structgen.schema.label_checks import LabelCheck


class Absent(enum.Enum):
    """The type of `ABSENT`."""

    absent = "absent"


ABSENT: Final = Absent.absent
"""Stands for a value of which nothing can be shown yet."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is in force at a place of a core schema."""

    definitions: Mapping[str, Core]
    config: Core
    """Settings of the innermost model around."""
    known: dict[int, Any] = field(default_factory=dict[int, Any])
    """What was made of classes, by the identity of their core schemas: recursion ends there."""

    def inside(self, core: Core) -> Scope:
        """Within a model, which brings settings of its own."""
        return replace(self, config=core.get("config") or {})

    def knowing(self, core: Core) -> Scope:
        """With the definitions that a core schema brings along."""
        known = {definition["ref"]: definition for definition in core["definitions"]}
        return replace(self, definitions={**self.definitions, **known})


@dataclass(frozen=True, slots=True)
class Option:
    """One of the kinds of value that a place may hold, without what is wrapped around it."""

    core: Core
    scope: Scope
    converted: bool
    """A function of Pydantic makes something else of it, for instance an address of a text."""

    @property
    def kind(self) -> str:
        return self.core["type"]


@dataclass(frozen=True, eq=False)
class Typed:
    """What stands at one place of a type."""

    core: Core
    scope: Scope
    name: str = ""
    """Where it is a field: its validators are told."""

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """What the value may be."""
        return tuple(_options(Option(self.core, self.scope, False), frozenset()))

    @cached_property
    def is_anything(self) -> bool:
        """Whether any JSON is taken as it is."""
        return self.core["type"] == "any"

    @cached_property
    def shows_text(self) -> bool:
        """Whether the value may be a `str`, so that a string can be shown while it is open."""
        return any(o.kind in ("str", "any") and not o.converted for o in self.options)

    def value(self, text: str) -> Any:
        """What Pydantic makes of a text.

        Raises:
            Exception: whatever a validator raises.
        """
        if self.is_anything:
            return from_json(text)
        if not self.name:
            return self._validator.validate_json(text)
        # Among fields, even if it is alone, for the sake of validators that ask for its name.
        return self._validator.validate_json(f'{{"value": {text}}}')[0][self.name]

    @cached_property
    def _validator(self) -> SchemaValidator:
        core = self.core
        if self.name:
            part = {"type": "model-field", "schema": core, "validation_alias": "value"}
            core = {"type": "model-fields", "fields": {self.name: part}}
        if self.scope.definitions:
            known = list(self.scope.definitions.values())
            core = {"type": "definitions", "schema": core, "definitions": known}
        return SchemaValidator(cast(CoreSchema, core), cast(CoreConfig, self.scope.config))


_WRAPPERS = frozenset(
    {
        "nullable",
        "default",
        "custom-error",
        "missing-sentinel",
        "function-before",
        "function-after",
        "function-wrap",
    }
)
"""Kinds that only add something around an inner schema."""


def _options(option: Option, seen: frozenset[str]) -> Iterator[Option]:
    """The options of an option; `seen` are the references that lead to it."""
    core, scope = option.core, option.scope
    match option.kind:
        case "definitions":
            inner = [replace(option, core=core["schema"], scope=scope.knowing(core))]
        case "definition-ref":
            ref = core["schema_ref"]
            inner = [] if ref in seen else [replace(option, core=scope.definitions[ref])]
            seen |= {ref}
        case "union":
            inner = [replace(option, core=c[0] if isinstance(c, tuple) else c)
                     for c in core["choices"]]  # fmt: skip
        case "lax-or-strict":
            strict = scope.config.get("strict") if core.get("strict") is None else core["strict"]
            inner = [replace(option, core=core["strict_schema" if strict else "lax_schema"])]
        case "json-or-python":
            inner = [replace(option, core=core["json_schema"])]
        case "chain":
            inner = [replace(option, core=core["steps"][0])]
        case kind if kind in _WRAPPERS and "schema" in core:
            converted = option.converted or _converts(core)
            inner = [replace(option, core=core["schema"], converted=converted)]
        case _:
            yield option
            return
    for part in inner:
        yield from _options(part, seen)


def _converts(core: Core) -> bool:
    """Whether a function of Pydantic or of the standard library makes a type out of the text.

    So is a label none before it is complete.
    """
    function = core.get("function")
    if isinstance(function, dict):
        function = cast(Any, function)["function"]
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    if isinstance(function, types.MethodType):
        function = function.__func__
    if isinstance(function, LabelCheck):
        return True
    return str(getattr(function, "__module__", "")).startswith(("pydantic.", "ipaddress"))
