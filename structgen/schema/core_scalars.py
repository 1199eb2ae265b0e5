"""Booleans, null, anything, and finite sets of choices."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from structgen.schema import nodes
from structgen.schema.core_reader import Core, Reader, ReadType
from structgen.schema.nodes import AnyJson, Labels, Node


def _bool(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path)
    return Labels((b"false", b"true"))


def _none(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path)
    return Labels((b"null",))


def _any(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path)
    return AnyJson()


def _literal(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "expected")
    return _labels(reader, core["expected"], path)


def _enum(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "members")
    return _labels(reader, [member.value for member in core["members"]], path)


def _labels(reader: Reader, values: list[Any], path: str) -> Node:
    if set(map(type, values)) == {str}:
        with suppress(UnicodeEncodeError):
            return reader.possible(nodes.labels(nodes.json_texts(values)), path)
    return reader.possible(nodes.labels(_texts(reader, values, path)), path)


def _texts(reader: Reader, values: Iterable[Any], path: str) -> Iterator[bytes]:
    for value in values:
        plain = value
        if isinstance(value, enum.Enum):
            # A Literal of members accepts their JSON only where they are strings or integers.
            plain = value.value if isinstance(value, str | int) else object()
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = object()
        if plain is not None and not isinstance(plain, str | int | float):
            reader.refuse(path, f"the choice {value!r} has no JSON form", "use a str or an int")
            continue
        try:
            yield nodes.json_text(plain)
        except UnicodeEncodeError:
            reader.refuse(path, f"the choice {value!r} holds a lone surrogate and is not text")


SCALARS: Mapping[str, ReadType] = {
    "bool": _bool,
    "none": _none,
    "any": _any,
    "literal": _literal,
    "enum": _enum,
}
