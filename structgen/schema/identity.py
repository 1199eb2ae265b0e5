"""The exact content of a model or JSON Schema as bytes, found without reading it into nodes.

Equal bytes mean equal nodes, so that what was compiled from one can be used for the other. Only
what the readers look at is written, and what cannot be written exactly has no identity: a schema
with a regular expression object, a function of Pydantic or a date as a bound is always read.

What is plain data goes through `marshal` in one call, since a walk in Python would cost as much as
reading. Its version 2 writes equal values equally, refuses subclasses, and is never read back.
"""

from __future__ import annotations

import enum
import marshal
import types
from typing import Any

from pydantic import BaseModel

from structgen.schema.core_functions import OWNERS
from structgen.schema.label_checks import DistinctLabels, LabelCheck

VERSION = 2
"""Of marshal's format: later ones write equal values differently."""

UNREAD = frozenset(
    {
        "metadata",
        "serialization",
        "default",
        "default_factory",
        "cls_repr",
        "computed_fields",
        "generic_origin",
        "missing",
        "return_schema",
        "json_schema_input_schema",
    }
)
"""Keys of core schemas that no reader looks at."""
CLASSES = frozenset({"model", "dataclass", "typed-dict", "enum"})
"""Types of core schemas of whose class the readers take nothing but what is written here."""

MOST_PARTS, MOST_ITEMS = 100_000, 5_000_000
"""Dicts and lists of a schema with an identity, and what is in them."""

_CONTAINERS = frozenset({dict, list})
_REFERENCES = ("ref", "schema_ref")
_PLAIN = frozenset({str, int, bool, float, bytes, type(None)})
_MARK = StopIteration
"""Begins what stands for an object; marshal knows it, and no core schema holds it."""


class _NoIdentity(Exception):
    """Something cannot be written exactly."""


def identity(source: Any) -> bytes | None:
    """The content of a Pydantic model or a JSON Schema, None for everything else.

    Example: `identity({"type": "integer"})` is `b"J"` and the dict as `marshal` writes it.
    """
    if type(source) is dict:
        return _written(b"J", source) if _is_small(source) else None
    if not (isinstance(source, type) and issubclass(source, BaseModel)):
        return None
    core: Any = source.__pydantic_core_schema__ if source.__pydantic_complete__ else None
    if type(core) is not dict:
        return None
    try:
        return _written(b"M", _Plain().core(core))
    except (_NoIdentity, RecursionError):
        return None


def copied(content: bytes) -> dict[str, Any]:
    """The JSON Schema that `identity` wrote, which its author cannot change any more."""
    return marshal.loads(content[1:])  # noqa: S302  # bytes of this process, never from a file


def _is_small(source: dict[str, Any]) -> bool:
    """Whether a JSON Schema has few enough parts, one in many places counted in each of them.

    Marshal would write it out in each of them: a few dicts that hold each other twice are enough
    to fill the memory.
    """
    pending: list[Any] = [source]
    count = n_items = 0
    while pending and count < MOST_PARTS and n_items < MOST_ITEMS:
        part = pending.pop()
        n_items += len(part)
        items = part.values() if type(part) is dict else part
        if not _CONTAINERS.isdisjoint(map(type, items)):
            pending += [item for item in items if type(item) in _CONTAINERS]
        count += 1
    return not pending


def _written(kind: bytes, plain: dict[str, Any]) -> bytes | None:
    try:
        return kind + marshal.dumps(plain, VERSION)
    except ValueError:  # it holds an object, or is nested too deeply
        return None


class _Plain:
    """Core schemas as plain data; everything else that they hold is left out or replaced."""

    def __init__(self) -> None:
        self._references: dict[str, int] = {}
        self._n_parts = 0

    def core(self, part: dict[str, Any]) -> dict[str, Any]:
        """A core schema says its type; other dicts hold fields, choices or settings by name."""
        self._n_parts += 1
        if self._n_parts > MOST_PARTS:
            raise _NoIdentity
        kind = part.get("type")
        if type(kind) is not str:
            return {key: self._value(value) for key, value in part.items()}
        found: dict[str, Any] = {}
        for key, value in part.items():
            if type(value) in _PLAIN:
                found[key] = self._reference(value) if key in _REFERENCES else value
            elif key == "cls":
                found[key] = _class(value, kind)
            elif key == "function" and type(value) is not dict:
                found[key] = _function(value)
            elif key not in UNREAD:
                found[key] = self._value(value)
        return found

    def _value(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return self.core(value)
        if kind is list or kind is tuple:
            if set(map(type, value)) <= _PLAIN:
                return value
            return kind(map(self._value, value))
        if isinstance(value, enum.Enum):
            return _MARK, isinstance(value, str | int), value.value
        return value

    def _reference(self, name: str) -> int:
        """References hold an address: what counts is which of them are the same."""
        return self._references.setdefault(name, len(self._references))


def _class(owner: Any, kind: str) -> tuple[Any, ...]:
    if kind not in CLASSES or not isinstance(owner, type):
        raise _NoIdentity
    hashable = owner.__hash__ is not None  # pyright: ignore[reportUnnecessaryComparison]  # None is how Python says no
    return _MARK, owner.__module__, owner.__qualname__, owner.__name__, hashable


def _function(function: Any) -> tuple[Any, ...]:
    """A validator of the user, of which the readers only note that there is one.

    Of the checks of labels it is known what they accept.
    """
    if type(function) is DistinctLabels:
        return _MARK, function.antichain, function.separator
    if type(function) is LabelCheck:
        return _MARK, function.texts
    if type(function) is types.MethodType:
        function = function.__func__
    if type(function) is not types.FunctionType or str(function.__module__).startswith(OWNERS):
        raise _NoIdentity
    return (_MARK,)
