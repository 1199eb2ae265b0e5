"""The two public collections of schemas with instances, and what the engine makes of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from structgen import Limits
from structgen.compiler import CompiledSchema, compile, forget_schemas  # noqa: A004
from structgen.errors import LimitError, SchemaError
from structgen.testing import byte_vocabulary
from tests.conformance.instances import accepts


@dataclass(frozen=True)
class Case:
    """A schema with instances: (description, instance, whether it is valid)."""

    name: str
    schema: Any
    instances: tuple[tuple[str, Any, bool], ...]


@dataclass
class Outcome:
    """What became of a case."""

    refused: str = ""
    """The error, empty where the schema was compiled."""
    wrong: list[str] = field(default_factory=list)
    """Instances that were wrongly accepted or rejected."""


def test_suite(data: Path) -> Iterator[Case]:
    """JSON-Schema-Test-Suite, draft 2020-12, optional parts included."""
    root = data / "jsonschema_test_suite" / "tests" / "draft2020-12"
    for file in sorted(root.rglob("*.json")):
        for index, group in enumerate(json.loads(file.read_text(encoding="utf-8"))):
            name = f"{file.relative_to(root).with_suffix('')}#{index}"
            tests = [(t["description"], t["data"], t["valid"]) for t in group["tests"]]
            yield Case(name, group["schema"], tuple(tests))


def maskbench(data: Path) -> Iterator[Case]:
    """The development sample of MaskBench."""
    with gzip.open(data / "maskbench-dev" / "schemas.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            tests = [(str(i), t["data"], t["valid"]) for i, t in enumerate(row["tests"])]
            yield Case(row["id"], row["schema"], tuple(tests))


def compiled(schema: Any) -> CompiledSchema[Any]:
    """The schema over the 256 bytes; `true` and `false` are schemas too."""
    found = compile({} if schema is True else schema, byte_vocabulary(), limits=Limits())
    forget_schemas()
    return found


def outcome(case: Case) -> Outcome:
    """Compile a case and look at each of its instances."""
    try:
        automaton = compiled({"not": {}} if case.schema is False else case.schema)
    except (SchemaError, LimitError) as error:
        return Outcome(refused=_reason(case, error))
    wrong: list[str] = []
    for description, instance, valid in case.instances:
        if accepts(automaton, instance) != valid:
            wrong.append(("rejected: " if valid else "accepted: ") + description)
    return Outcome(wrong=wrong)


def _reason(case: Case, error: Exception) -> str:
    """One line of why a schema was refused; an unsatisfiable one is right if nothing is valid."""
    kind = type(error).__name__
    if kind == "UnsatisfiableSchemaError" and not any(valid for _, _, valid in case.instances):
        return ""
    lines = str(error).splitlines()
    return f"{kind}: {(lines[1] if len(lines) > 1 else lines[0]).strip()[:160]}"
