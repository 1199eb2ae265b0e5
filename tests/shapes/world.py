"""The classes of one random type, some of which refer to themselves and to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from pydantic import BaseModel, TypeAdapter

from tests.shapes.shape import Make, Shape


@dataclass
class World:
    """Everything that is made for one example."""

    rng: Random
    classes: dict[str, type[BaseModel]] = field(default_factory=dict)
    makers: dict[str, Make] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    """Models that are being made, to which their parts may refer."""

    def new_name(self) -> str:
        name = f"M{len(self.makers)}"
        self.makers[name] = lambda rng, depth: None
        return name

    def apart(self) -> World:
        """A world for parts that must not refer to what is still being made."""
        return World(self.rng, makers=self.makers)

    def finish(self) -> None:
        """Resolve the references between the models."""
        for model in self.classes.values():
            model.model_rebuild(force=True, _types_namespace=dict(self.classes))


def validated(shape: Shape, value: Any) -> Any:
    return TypeAdapter(shape.type).validate_python(value, strict=False)


def json_of(adapter: TypeAdapter[Any], value: Any) -> str:
    """The text that Pydantic writes for a value."""
    instance = adapter.validate_python(value, strict=False)
    return adapter.dump_json(instance, by_alias=True, round_trip=True, warnings=False).decode()
