"""What of a Python object is no JSON: found before anybody reads it as a JSON Schema."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, cast

from structgen.errors import Fault
from structgen.schema.jsonschema.documents import child
from structgen.schema.jsonschema.values import kind_name

MOST_BITS = 13_280
"""Of a whole number: 4,000 digits. Python writes none with more than 4,300."""

Trail: TypeAlias = "tuple[Trail, str | int] | None"
"""How a part was reached, from the last step to the first."""

_SCALARS = frozenset({str, bool, float, type(None)})
_CONTAINERS = frozenset({dict, list})
_TYPES = _SCALARS | _CONTAINERS | {int}
_TEXT = frozenset({str})
MOST_PARTS, MOST_ITEMS = 100_000, 5_000_000
"""Dicts and lists, and what is in them, that are looked at without a trail; what stands in many
places is counted in each."""


def not_json(schema: object) -> tuple[Fault, ...]:
    """Keys that are no text, endless numbers and Python objects, each with its path.

    Values that are not finite are left to whoever reads them, and so are cycles.

    Example: `{"enum": [b"a"]}` gives `$.enum[0]: a bytes is not JSON`
    """
    if isinstance(schema, dict | list) and _is_json(schema):
        return ()
    faults: list[Fault] = []
    todo: deque[tuple[Any, Trail]] = deque([(schema, None)])
    seen: set[int] = set()
    while todo:
        part, trail = todo.popleft()
        if isinstance(part, dict | list):
            if id(part) not in seen:
                seen.add(id(part))
                todo.extend(_inner(cast("dict[Any, Any] | list[Any]", part), trail, faults))
        elif isinstance(part, int):
            if part.bit_length() > MOST_BITS:
                faults.append(Fault(_path(trail), "a number has more than 4000 digits"))
        elif not isinstance(part, str | float):
            faults.append(Fault(_path(trail), f"{kind_name(part)} is not JSON"))
    return tuple(faults)


def _is_json(schema: dict[Any, Any] | list[Any]) -> bool:
    """Whether there is nothing to say, found out several types at once; False where unsure."""
    parts: list[Any] = [schema]
    n_items = 0
    for part in parts:
        n_items += len(part)
        if len(parts) > MOST_PARTS or n_items > MOST_ITEMS:
            return False
        if type(part) is dict:
            if not _TEXT.issuperset(map(type, part)):
                return False
            part = part.values()
        kinds = set(map(type, part))
        if kinds <= _SCALARS:
            continue
        if not kinds <= _TYPES:
            return False
        if int in kinds and any(type(v) is int and v.bit_length() > MOST_BITS for v in part):
            return False
        parts += [value for value in part if type(value) in _CONTAINERS]
    return True


def _inner(
    part: dict[Any, Any] | list[Any], trail: Trail, faults: list[Fault]
) -> Iterator[tuple[Any, Trail]]:
    """The parts of a container that have to be looked at; keys that are no text become faults."""
    pairs: Iterable[tuple[Any, Any]] = part.items() if isinstance(part, dict) else enumerate(part)
    is_list = isinstance(part, list)
    if is_list and _SCALARS.issuperset(map(type, part)):
        return
    for key, value in pairs:
        if is_list or isinstance(key, str):
            if type(value) not in _SCALARS:
                yield value, (trail, key)
        else:
            faults.append(Fault(_path(trail), f"a key is not a string but {kind_name(key)}"))


def _path(trail: Trail) -> str:
    steps: list[str | int] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    path = "$"
    for step in reversed(steps):
        path = f"{path}[{step}]" if isinstance(step, int) else child(path, step)
    return path
