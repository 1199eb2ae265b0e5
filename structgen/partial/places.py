"""Places in a type, and what an object or an array looks like there while it is open.

Where that is not certain, as in a union of several models, it is plain data until it closes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_json

from structgen.partial.typed import ABSENT, Absent, Option, Scope, Typed
from structgen.schema.core_reader import Core

logger = logging.getLogger("structgen")


class Place(Typed):
    """A place in a type."""

    @cached_property
    def members(self) -> Members:
        """What an object is here, as far as that is certain."""
        found = [option for option in map(_members_of, self.options) if option is not None]
        return found[0] if len(found) == 1 else PlainMembers()

    @cached_property
    def items(self) -> Items:
        """What an array is here, as far as that is certain."""
        found = [option for option in map(_items_of, self.options) if option is not None]
        return found[0] if len(found) == 1 else Items()


ANYTHING = Place({"type": "any"}, Scope({}, {}))
"""Where nothing is known of the type."""


class Members(Protocol):
    """The entries of an object that is open."""

    def name(self, key: str) -> Any:
        """Under which name or key an entry is found; ABSENT where it is ignored."""
        ...

    def place(self, key: str) -> Place:
        """Where the value of an entry stands."""
        ...

    def made(self, values: dict[Any, Any]) -> Any:
        """What is shown of an object with these values, by name; the dict is handed over."""
        ...

    def chosen(self, key: str, value: Any) -> Members | None:
        """What the object turns out to be, where an entry that has closed tells."""
        ...


class PlainMembers:
    """Of an object of which nothing is known."""

    def name(self, key: str) -> Any:
        return key

    def place(self, key: str) -> Place:  # noqa: ARG002  # they are all alike
        return ANYTHING

    def made(self, values: dict[Any, Any]) -> Any:
        return values

    def chosen(self, key: str, value: Any) -> Members | None:  # noqa: ARG002  # nothing to choose
        return None


@dataclass(frozen=True)
class Tagged(PlainMembers):
    """Of a tagged union: plain data until the tag is read."""

    option: Option

    def chosen(self, key: str, value: Any) -> Members | None:
        if key not in self._tags or not isinstance(value, str | int | None):
            return None
        core = self._choices.get((type(value), value))
        return None if core is None else Place(core, self.option.scope).members

    @cached_property
    def _tags(self) -> set[Any]:
        """The keys that may hold the tag."""
        tag = self.option.core["discriminator"]
        if callable(tag):
            return set()
        return {tag} if isinstance(tag, str) else {path[0] for path in tag if len(path) == 1}

    @cached_property
    def _choices(self) -> dict[tuple[type, Any], Core]:
        """By tag and its type, since 1 and True are equal."""
        choices: dict[Any, Core] = self.option.core["choices"]
        plain = {getattr(tag, "value", tag): core for tag, core in choices.items()}
        return {(type(tag), tag): core for tag, core in plain.items()}


class Mapped(PlainMembers):
    """Of a dict."""

    def __init__(self, option: Option) -> None:
        core = option.core
        keys = core.get("keys_schema") or ANYTHING.core
        self._keys = Place({"type": "dict", "keys_schema": keys}, option.scope)
        self._place = Place(core.get("values_schema") or ANYTHING.core, option.scope)

    def name(self, key: str) -> Any:
        try:
            # As a dict, because there numbers may be written as text.
            return next(iter(self._keys.value(to_json({key: None}).decode())))
        except Exception as error:
            # Validators of keys are the user's and may raise anything. Nothing is lost: the value
            # is validated as a whole when it is finished, and then the error is raised.
            logger.debug("shown without validation: the key %r: %s", key, error)
            return key

    def place(self, key: str) -> Place:  # noqa: ARG002  # they are all alike
        return self._place


class Fields:
    """Of something with named fields."""

    def __init__(
        self,
        fields: Iterable[tuple[str, Core]],
        core: Core,
        scope: Scope,
        make: Callable[[dict[str, Any], frozenset[str]], Any],
    ) -> None:
        cores = dict(fields)
        self._names = {
            key: name for name, part in cores.items() for key in _keys(name, part, scope)
        }
        self._places = {name: Place(part["schema"], scope, name) for name, part in cores.items()}
        self._make = make
        behavior = core.get("extra_behavior") or scope.config.get("extra_fields_behavior")
        extras = Place(core.get("extras_schema") or ANYTHING.core, scope)
        self._extras = extras if behavior == "allow" else None

    def name(self, key: str) -> str | Absent:
        return self._names.get(key, ABSENT if self._extras is None else key)

    def place(self, key: str) -> Place:
        name = self._names.get(key)
        return self._extras or ANYTHING if name is None else self._places[name]

    def made(self, values: dict[Any, Any]) -> Any:
        return self._make(values, frozenset(self._places))

    def chosen(self, key: str, value: Any) -> Members | None:  # noqa: ARG002  # nothing to choose
        return None


def _keys(name: str, part: Core, scope: Scope) -> set[str]:
    """The keys under which a field may be written."""
    alias = part.get("validation_alias")
    if alias is None or scope.config.get("validate_by_alias") is False:
        return {name}
    choices: list[Any] = [alias] if isinstance(alias, str) else alias
    paths: list[list[Any]] = choices if isinstance(choices[0], list) else [choices]
    by_name = scope.config.get("validate_by_name") or scope.config.get("populate_by_name")
    return {path[0] for path in paths if len(path) == 1} | ({name} if by_name else set[str]())


@dataclass(frozen=True)
class Rooted:
    """Of the root of a `RootModel`."""

    inner: Members
    make: Callable[[Any], Any]

    def name(self, key: str) -> Any:
        return self.inner.name(key)

    def place(self, key: str) -> Place:
        return self.inner.place(key)

    def made(self, values: dict[Any, Any]) -> Any:
        return self.make(self.inner.made(values))

    def chosen(self, key: str, value: Any) -> Members | None:
        found = self.inner.chosen(key, value)
        return None if found is None else Rooted(found, self.make)


@dataclass(frozen=True)
class Items:
    """The items of an array that is open."""

    first: tuple[Place, ...] = ()
    rest: Place = ANYTHING
    make: Callable[[list[Any]], Any] = field(default=list[Any])
    """What is shown of the items."""

    def place(self, index: int) -> Place:
        """Where an item stands."""
        return self.first[index] if index < len(self.first) else self.rest


# From an option to what may be open there.


def _members_of(option: Option) -> Members | None:
    """None where an option is no object."""
    core, scope = option.core, option.scope
    match option.kind:
        case "model" if core.get("root_model"):
            inner = Place(core["schema"], scope.inside(core))
            is_object = any(_members_of(part) is not None for part in inner.options)
            return Rooted(inner.members, partial(_rooted, core["cls"])) if is_object else None
        case "model" | "dataclass":
            return scope.known.get(id(core)) or scope.known.setdefault(id(core), _inside(option))
        case "typed-dict":
            inside = scope.inside(core) if core.get("config") else scope
            return Fields(core["fields"].items(), core, inside, _plain)
        case "dict" | "frozendict" | "ordered-dict" | "counter":
            return Mapped(option)
        case "tagged-union":
            return Tagged(option)
        case "any" | "arguments" | "arguments-v3" | "function-plain":
            return PlainMembers()
        case _:
            return None


def _inside(option: Option) -> Members:
    """Of a class: its fields stand in an inner schema."""
    inner = Place(option.core["schema"], option.scope.inside(option.core))
    for part in inner.options:
        fields = part.core.get("fields")
        if part.kind == "model-fields":
            make = partial(_unvalidated, option.core["cls"])
            return Fields(part.core["fields"].items(), part.core, part.scope, make)
        if part.kind == "dataclass-args" and fields is not None:
            named = ((field["name"], field) for field in fields if field.get("init", True))
            return Fields(named, part.core, part.scope, _plain)
    return PlainMembers()


def _items_of(option: Option) -> Items | None:
    """None where an option is no array."""
    core, scope = option.core, option.scope
    match option.kind:
        case "list" | "generator" | "deque" | "set" | "frozenset":
            return Items(rest=Place(core.get("items_schema") or ANYTHING.core, scope))
        case "tuple":
            every = [Place(item, scope) for item in core["items_schema"]]
            variadic = core.get("variadic_item_index")
            if variadic is None:
                return Items(tuple(every))
            return Items(tuple(every[:variadic]), every[variadic])
        case "model" if core.get("root_model"):
            inner = Place(core["schema"], scope.inside(core))
            if all(_items_of(part) is None for part in inner.options):
                return None
            found = inner.items
            return Items(found.first, found.rest, partial(_rooted, core["cls"]))
        case "named-tuple":
            return Items(tuple(Place(part["schema"], scope) for part in core["fields"]))
        case "any" | "call" | "function-plain":
            return Items()
        case _:
            return None


# What is shown.


def _plain(values: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:  # noqa: ARG001
    return values


def _rooted(cls: type[BaseModel], root: Any) -> BaseModel:
    private = _private(cls)
    held = {} if private is None else {"__pydantic_private__": private}
    return _instance(cls, __dict__={"root": root}, __pydantic_fields_set__={"root"}, **held)


def _unvalidated(cls: type[BaseModel], values: dict[str, Any], fields: frozenset[str]) -> BaseModel:
    """An instance with these attributes and no others.

    `model_construct` would add the defaults of fields that may still be written.
    """
    extra = {name: value for name, value in values.items() if name not in fields}
    own = {name: value for name, value in values.items() if name in fields}
    return _instance(
        cls,
        __dict__=own,
        __pydantic_fields_set__=set(values),
        __pydantic_extra__=extra if cls.model_config.get("extra") == "allow" else None,
        __pydantic_private__=_private(cls),
    )


def _private(cls: type[BaseModel]) -> dict[str, Any] | None:
    """Private attributes as far as they have a plain default.

    Those that a factory or `model_post_init` makes are absent until the value is validated: that is
    code of the user's, and what it needs may not be written yet.
    """
    attributes = cls.__private_attributes__
    if not attributes:
        return None
    plain = {name: attribute.default for name, attribute in attributes.items()}
    return {name: deepcopy(v) for name, v in plain.items() if v is not PydanticUndefined}


def _instance(cls: type[BaseModel], **state: object) -> BaseModel:
    made = cls.__new__(cls)
    for name, value in state.items():
        object.__setattr__(made, name, value)
    return made
