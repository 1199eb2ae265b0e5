"""Shapes with named fields: models, dataclasses, TypedDicts, named tuples, tagged unions."""

# ruff: noqa: UP007, UP035, UP045  # users write types in the older spellings too

from __future__ import annotations

import collections
import dataclasses
from random import Random
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    create_model,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import NotRequired, Required, TypedDict

from tests.shapes.containers import Inner
from tests.shapes.shape import Shape
from tests.shapes.values import data
from tests.shapes.world import World, validated

T = TypeVar("T")
ALIASES = ("{} x", 'é"{}', "{}-1", "_{}")
NAMES = "abcdefg"


@dataclasses.dataclass
class Part:
    """One field: how it is written and what it holds."""

    name: str
    key: str
    shape: Shape
    required: bool
    info: Any
    """What stands behind the `=`."""


def record(world: World, depth: int, inner: Inner) -> Shape:
    """Something with named fields."""
    make = world.rng.choice(
        [model, model, model, _dataclass, _typed_dict, _named_tuple, _box, _root_model,
         tagged_union, tagged_union]
    )  # fmt: skip
    return make(world, depth, inner)


# Fields.


def _parts(world: World, depth: int, inner: Inner, most: int = 4) -> list[Part]:
    names = world.rng.sample(NAMES, world.rng.randint(0, most))
    return [_part(world, name, inner(world, depth - 1)) for name in names]


def _part(world: World, name: str, shape: Shape) -> Part:
    rng = world.rng
    alias = rng.choice([None, None, *ALIASES])
    key = name if alias is None else alias.format(name)
    names: dict[str, Any] = {}
    if alias is not None:
        names = rng.choice([
            {"alias": key},
            {"validation_alias": key, "serialization_alias": key},
            {"validation_alias": AliasChoices(key, f"other {name}"), "serialization_alias": key},
        ])  # fmt: skip
    default = {} if rng.random() < 0.5 else _default(world, shape)
    return Part(name, key, shape, not default, Field(**names, **default))


def _default(world: World, shape: Shape) -> dict[str, Any]:
    """A default that Pydantic itself would write."""
    if world.open:  # it may refer to what is still being made
        return {}
    value = shape.make(world.rng, 0)
    match world.rng.choice(["default", "factory", "validated"]):
        case "default":
            return {"default": validated(shape, value)}
        case "factory":
            return {"default_factory": lambda: validated(shape, value)}
        case _:
            return {"default": value, "validate_default": True}


def _members(rng: Random, parts: list[Part], depth: int) -> dict[str, Any]:
    return {
        part.key: part.shape.make(rng, depth - 1)
        for part in parts
        if part.required or rng.random() < 0.5
    }


# Models.

SETTINGS: list[Any] = [
    {}, {}, {"extra": "allow"}, {"extra": "forbid"}, {"extra": "ignore"}, {"strict": True},
    {"populate_by_name": True}, {"frozen": True}, {"use_enum_values": True},
    {"str_max_length": 24},
    {"allow_inf_nan": False}, {"extra": "allow", "populate_by_name": True},
]  # fmt: skip


def model(world: World, depth: int, inner: Inner, tag: Part | None = None) -> Shape:
    """A model, to which its own fields may refer."""
    name = world.new_name()
    world.open.append(name)
    parts = _parts(world, depth, inner)
    if world.rng.random() < 0.3:
        parts.append(_recursive(world))
    world.open.pop()
    if tag is not None:
        parts.insert(world.rng.randint(0, len(parts)), tag)
    settings = world.rng.choice(SETTINGS)
    fields: dict[str, Any] = {part.name: (part.shape.type, part.info) for part in parts}
    world.classes[name] = create_model(name, __config__=ConfigDict(**settings), **fields)

    def make(rng: Random, d: int) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if settings.get("extra") == "allow" and d > 0:
            keys = rng.sample(["more", 'é"\n', "aa", ""], rng.randrange(3))
            more = {key: data(rng) for key in keys}
        return {**_members(rng, parts, d), **more}

    world.makers[name] = make
    hashable = bool(settings.get("frozen")) and all(part.shape.hashable for part in parts)
    return Shape(world.classes[name], make, hashable=hashable)


def _recursive(world: World) -> Part:
    """A field that refers to a model around it."""
    name = world.rng.choice(world.open)

    def one(rng: Random, d: int) -> Any:
        return world.makers[name](rng, d)

    def optional(rng: Random, d: int) -> Any:
        return one(rng, d) if d > 0 and rng.random() < 0.7 else None

    def several(rng: Random, d: int) -> list[Any]:
        return [one(rng, d) for _ in range(rng.randint(0, 2) if d > 0 else 0)]

    def keyed(rng: Random, d: int) -> dict[str, Any]:
        return {f"k{i}": value for i, value in enumerate(several(rng, d))}

    shape = world.rng.choice([
        Shape(Optional[name], optional),
        Shape(list[name], several),
        Shape(dict[str, name], keyed),
        Shape(tuple[name, ...], several),
        Shape(Union[int, list[name], None], optional_of(several)),
    ])  # fmt: skip
    return Part("again", "again", shape, True, Field())


def optional_of(make: Any) -> Any:
    return lambda rng, d: make(rng, d) if rng.random() < 0.5 else None


class Box(BaseModel, Generic[T]):
    item: T
    more: list[T] = []


def _box(world: World, depth: int, inner: Inner) -> Shape:
    item = inner(world, depth - 1)
    if world.open:
        return item  # the parameter of a generic class must be known
    return Shape(
        Box[item.type],
        lambda rng, d: {"item": item.make(rng, d - 1), "more": [item.make(rng, 0)]},
    )


def _root_model(world: World, depth: int, inner: Inner) -> Shape:
    item = inner(world, depth - 1)
    if world.open:
        return item
    return Shape(RootModel[list[item.type]], lambda rng, d: [item.make(rng, d - 1)])


# Others with fields: without references to what is still being made.


def _alone(world: World, depth: int, inner: Inner) -> list[Part]:
    apart = world.apart()
    parts = _parts(apart, depth, inner, most=3)
    apart.finish()
    return parts


def _dataclass(world: World, depth: int, inner: Inner) -> Shape:
    parts = sorted(_alone(world, depth, inner), key=lambda part: not part.required)
    fields = [(part.name, part.shape.type, part.info) for part in parts]
    kind: Any = dataclasses.make_dataclass("D", fields, kw_only=True)
    if world.rng.random() < 0.5:
        kind = pydantic_dataclass(kind)
    return Shape(kind, lambda rng, d: _members(rng, parts, d))


def _typed_dict(world: World, depth: int, inner: Inner) -> Shape:
    parts = _alone(world, depth, inner)
    for part in parts:
        part.required = world.rng.random() < 0.5
    fields = {part.name: _keyed(part) for part in parts}
    total = world.rng.random() < 0.5
    kind: Any = TypedDict("TD", fields, total=total)  # type: ignore[operator]
    return Shape(kind, lambda rng, d: _members(rng, parts, d))


def _keyed(part: Part) -> Any:
    """The type of a TypedDict's field, which has no default."""
    kind = part.shape.type
    if part.key != part.name:
        kind = Annotated[kind, Field(alias=part.key)]
    return Required[kind] if part.required else NotRequired[kind]


def _named_tuple(world: World, depth: int, inner: Inner) -> Shape:
    items = [part.shape for part in _alone(world, depth, inner)]
    names = [f"f{i}" for i in range(len(items))]
    kind: Any = collections.namedtuple("N", names)
    kind.__annotations__ = {name: item.type for name, item in zip(names, items, strict=True)}
    return Shape(
        kind,
        lambda rng, d: [item.make(rng, d - 1) for item in items],
        hashable=all(item.hashable for item in items),
    )


# Unions with a tag.


def tag_of(value: Any) -> Any:
    return value.get("kind", "a") if isinstance(value, dict) else getattr(value, "kind", None)


def tagged_union(world: World, depth: int, inner: Inner) -> Shape:
    tags = world.rng.choice([("a", "b"), ("a", "ab", "b"), (1, 2), ("x",)])
    # A function is called with what was written, in which the tag may be missing.
    # Pydantic itself fails on one that is alone, if its model occurs elsewhere too.
    called = tags != (1, 2) and world.rng.random() < 0.3 and len(tags) > 1
    options = [model(world, depth, inner, _tag(world, tag, called)) for tag in tags]
    if called:
        tagged = [Annotated[o.type, Tag(t)] for o, t in zip(options, tags, strict=True)]
        kind: Any = Annotated[Union[tuple(tagged)], Discriminator(tag_of)]
    elif len(options) == 1:
        kind = options[0].type
    else:
        kind = Annotated[Union[tuple(o.type for o in options)], Field(discriminator="kind")]
        if world.rng.random() < 0.5:
            last = model(world, depth, inner, _tag(world, "last", False))
            kind = Annotated[Union[kind, last.type], Field(discriminator="kind")]
            options.append(last)
    return Shape(
        kind,
        lambda rng, d: rng.choice(options).make(rng, d),
        hashable=all(option.hashable for option in options),
    )


def _tag(world: World, tag: Any, called: bool) -> Part:
    shape = Shape(Literal[tag], lambda rng, d: tag, hashable=True)
    with_default = not called and world.rng.random() < 0.5
    # It is written always, default or not: otherwise Pydantic could not choose.
    return Part("kind", "kind", shape, True, Field(tag) if with_default else Field())
