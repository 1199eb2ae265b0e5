"""Shapes with parts: arrays, mappings, unions, JSON in strings."""

# ruff: noqa: UP007, UP045  # users write types in the older spellings too

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin

from pydantic import Field, Json, TypeAdapter, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from tests.shapes import scalars
from tests.shapes.shape import Shape
from tests.shapes.values import text
from tests.shapes.world import World, json_of

A, F = Annotated, Field

Inner = Callable[[World, int], Shape]
"""Draws a shape for a part."""


def container(world: World, depth: int, inner: Inner) -> Shape:
    """A random container of random parts."""
    make = world.rng.choice(
        [_list, _list, _tuple, _open_tuple, _set, _set_of_choices, _dict, _dict, _counter,
         _dict_of_choices, _optional, _union, _union, _json, _decorated]
    )  # fmt: skip
    return make(world, depth, inner)


def _some(
    rng: Random, shape: Shape, depth: int, low: int = 0, high: int | None = None
) -> list[Any]:
    most = low + 2 if high is None else high
    n = rng.randint(low, most if depth > 0 else low)
    return [shape.make(rng, depth - 1) for _ in range(n)]


def _list(world: World, depth: int, inner: Inner) -> Shape:
    item = inner(world, depth - 1)
    low, high = world.rng.choice([(0, None), (0, None), (1, None), (0, 2), (2, 3)])
    kind = world.rng.choice([list, list, collections.deque, Sequence])[item.type]
    if low or high is not None:
        kind = A[kind, F(min_length=low, max_length=high)]
    return Shape(kind, lambda rng, d: _some(rng, item, d, low, high))


def _tuple(world: World, depth: int, inner: Inner) -> Shape:
    items = [inner(world, depth - 1) for _ in range(world.rng.randint(0, 3))]
    kind = tuple[tuple(item.type for item in items)] if items else tuple[()]
    return Shape(
        kind,
        lambda rng, d: tuple(item.make(rng, d - 1) for item in items),
        hashable=all(item.hashable for item in items),
    )


def _open_tuple(world: World, depth: int, inner: Inner) -> Shape:
    item = inner(world, depth - 1)
    low = world.rng.randint(0, 1)
    kind = A[tuple[item.type, ...], F(min_length=low, max_length=3)]
    return Shape(kind, lambda rng, d: tuple(_some(rng, item, d, low, 3)), item.hashable)


def _set(world: World, depth: int, inner: Inner) -> Shape:
    item = inner(world, depth - 1)
    item = item if item.hashable else scalars.hashable(world.rng)
    kind: Any = world.rng.choice([set, frozenset])
    # In a set every value has one spelling, and Pydantic's is another one for some numbers.
    low, high = (world.rng.randint(0, 1), 3) if item.spelled_once else (0, 0)
    annotated = A[kind[item.type], F(min_length=low, max_length=3)] if low else kind[item.type]
    return Shape(annotated, lambda rng, d: _some(rng, item, d, low, high), kind is frozenset)


def _set_of_choices(world: World, depth: int, inner: Inner) -> Shape:
    several = [shape for shape in scalars.CHOICES if len(shape.choices) > 1]
    item = world.rng.choice([shape for shape in several if shape.type is not scalars.Mixed])
    low = world.rng.randint(0, 2)

    def values(rng: Random, _: int) -> list[Any]:
        return rng.sample(item.choices, rng.randint(low, len(item.choices)))

    return Shape(A[set[item.type], F(min_length=low)], values)


def _dict(world: World, depth: int, inner: Inner) -> Shape:
    key = scalars.key(world.rng)
    value = inner(world, depth - 1)
    kind: Any = world.rng.choice(
        [dict, dict, dict, Mapping, collections.OrderedDict, collections.defaultdict]
    )
    if kind is collections.defaultdict:  # its factory must follow from the type
        part = value
        value = Shape(list[part.type], lambda rng, d: _some(rng, part, d))
    low, high = world.rng.choice([(0, None), (0, None), (1, 2), (0, 1)])
    annotated = kind[key.type, value.type]
    if kind is dict and high is not None:
        annotated = A[annotated, F(min_length=low, max_length=high)]
    else:
        low, high = 0, 2

    def values(rng: Random, d: int) -> dict[Any, Any]:
        n = rng.randint(low, high if d > 0 else low)
        return {key.make(rng, 0): value.make(rng, d - 1) for _ in range(n)}

    return Shape(annotated, values)


def _dict_of_choices(world: World, depth: int, inner: Inner) -> Shape:
    value = inner(world, depth - 1)
    low, high = world.rng.choice([(0, 3), (2, 3), (3, 3), (2, 2)])

    def values(rng: Random, d: int) -> dict[str, Any]:
        keys = rng.sample("abc", rng.randint(low, high))
        return {key: value.make(rng, d - 1) for key in sorted(keys)}

    kind = dict[Literal["a", "b", "c"], value.type]
    return Shape(A[kind, F(min_length=low, max_length=high)], values)


def _counter(world: World, depth: int, inner: Inner) -> Shape:
    def values(rng: Random, _: int) -> dict[str, int]:
        return {text(rng): rng.randrange(99) for _ in range(rng.randrange(3))}

    return Shape(collections.Counter[str], values)


def _optional(world: World, depth: int, inner: Inner) -> Shape:
    part = inner(world, depth)
    return Shape(
        Optional[part.type],
        lambda rng, d: part.make(rng, d) if rng.random() < 0.6 else None,
        hashable=part.hashable,
        numeric=part.numeric,
    )


def _union(world: World, depth: int, inner: Inner) -> Shape:
    parts = [inner(world, depth) for _ in range(world.rng.randint(2, 3))]
    first = next((part for part in parts if part.numeric), None)
    parts = [part for part in parts if part is first or not part.numeric]
    kind: Any = Union[tuple(part.type for part in parts)]
    several = len({*get_args(kind)} - {type(None)}) > 1  # else Pydantic makes no union of it
    if get_origin(kind) is Union and several and world.rng.random() < 0.5:
        kind = A[kind, F(union_mode="left_to_right")]
    return Shape(
        kind,
        lambda rng, d: rng.choice(parts).make(rng, d),
        hashable=all(part.hashable for part in parts),
        numeric=first is not None,
    )


def _json(world: World, depth: int, inner: Inner) -> Shape:
    apart = world.apart()
    part = inner(apart, min(depth - 1, 1))
    apart.finish()
    adapter: TypeAdapter[Any] = TypeAdapter(part.type)
    return Shape(
        Json[part.type],
        lambda rng, d: json_of(adapter, part.make(rng, min(d, 1))),
        numeric=True,  # Pydantic writes any number for it
    )


def _decorated(world: World, depth: int, inner: Inner) -> Shape:
    """What only changes the JSON Schema of a type."""
    part = inner(world, depth)
    kind = world.rng.choice(
        [A[part.type, WithJsonSchema({"type": "string"})], SkipJsonSchema[part.type],
         A[part.type, F(description="d", examples=[1], json_schema_extra={"minLength": 9})]]
    )  # fmt: skip
    return replace(part, type=kind)
