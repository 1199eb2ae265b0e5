"""Random types with all that is supported, mixed and nested, and JSON of their values."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from pydantic import TypeAdapter

from tests.shapes.containers import container
from tests.shapes.models import model, record
from tests.shapes.scalars import scalar
from tests.shapes.shape import Shape
from tests.shapes.world import World, json_of


@dataclass(frozen=True)
class Sample:
    """A type, and the JSON of some of its values as Pydantic writes it."""

    type: Any
    adapter: TypeAdapter[Any]
    texts: tuple[str, ...]


def part(world: World, depth: int) -> Shape:
    """A shape for a field or an item."""
    kind = world.rng.randrange(10 if depth > 0 else 5)
    if kind < 5:
        return scalar(world.rng)
    return container(world, depth, part) if kind < 8 else record(world, depth, part)


def sample(seed: int, depth: int, count: int = 3) -> Sample:
    """A random type, mostly a model, of about so many levels."""
    world = World(Random(seed))
    shape = (record if world.rng.random() < 0.3 else model)(world, depth, part)
    world.finish()
    adapter: TypeAdapter[Any] = TypeAdapter(shape.type)
    texts = (json_of(adapter, shape.make(world.rng, depth)) for _ in range(count))
    return Sample(shape.type, adapter, tuple(texts))
