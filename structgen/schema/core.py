"""Pydantic core schemas become nodes.

Reading the core schema rather than the JSON Schema keeps what the latter drops: strictness,
Python validators, settings of the model. What only decorates the JSON Schema (`json_schema_extra`,
`WithJsonSchema`, `SkipJsonSchema`) changes no validation and is therefore ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from structgen.errors import Fault
from structgen.schema.core_checks import AfterCheck
from structgen.schema.core_containers import CONTAINERS
from structgen.schema.core_functions import FUNCTIONS
from structgen.schema.core_models import MODELS
from structgen.schema.core_numbers import NUMBERS
from structgen.schema.core_reader import Core, Reader
from structgen.schema.core_scalars import SCALARS
from structgen.schema.core_strings import STRINGS
from structgen.schema.core_unions import UNIONS
from structgen.schema.nodes import Node

__all__ = ["AfterCheck", "Core", "CoreNodes", "read_core_schema"]

READERS = {**SCALARS, **NUMBERS, **STRINGS, **CONTAINERS, **UNIONS, **FUNCTIONS, **MODELS}


@dataclass(frozen=True, slots=True)
class CoreNodes:
    """What a core schema says."""

    root: Node
    definitions: Mapping[str, Node]
    faults: tuple[Fault, ...]
    """Everything that cannot be enforced."""
    impossible: tuple[Fault, ...]
    """Everything that contradicts itself, optional parts included."""
    checks: tuple[AfterCheck, ...]
    """What is only checked after generation, in the order of the schema."""


def read_core_schema(core: Core, config: Core) -> CoreNodes:
    """Nodes of a Pydantic core schema; faults are collected, not raised.

    Args:
        config: settings that apply outside of any model.
    """
    reader = Reader(READERS, config=[config])
    root = reader.node(core, "$")
    return CoreNodes(
        root,
        reader.definitions,
        tuple(reader.faults),
        tuple(reader.impossible),
        tuple(reader.checks),
    )
