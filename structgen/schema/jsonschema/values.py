"""`enum` and `const`: the nodes of given values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from structgen.schema import nodes
from structgen.schema.jsonschema.build import make_object
from structgen.schema.jsonschema.numbers import MOST_DIGITS
from structgen.schema.nodes import Never, Node, Property


class NoJson(ValueError):
    """A value that no JSON text stands for."""


def value_nodes(values: Iterable[Any]) -> Node:
    """Exactly these values; scalars become labels.

    Example: `[1.0, "a", []]` gives the labels `1`, `"a"` and `[]`.

    Raises:
        NoJson: one of them cannot be written as JSON.
    """
    values = list(values)
    if set(map(type, values)) == {str}:
        return nodes.labels(_texts(values))
    texts: list[bytes] = []
    others: list[Node] = []
    for value in values:
        if type(value) is str:
            texts.append(_text(value))
        elif isinstance(value, list | dict):
            others.append(_composite(value))
        else:
            texts.append(_scalar(value))
    if not others:
        return nodes.labels(texts)
    return nodes.union([*others, nodes.labels(texts)] if texts else others)


def _texts(values: list[str]) -> list[bytes]:
    try:
        return nodes.json_texts(values)
    except UnicodeEncodeError:
        return list(map(_text, values))


def _text(value: str) -> bytes:
    try:
        return nodes.json_text(value)
    except UnicodeEncodeError as error:
        raise NoJson(f"{value!r} holds a lone surrogate and is not text") from error


def _scalar(value: Any) -> bytes:
    if value is None:
        return b"null"
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoJson(f"{value!r} is not a JSON number")
        if value.is_integer():
            value = int(value)  # 1.0 and 1 are one number in JSON Schema
    if isinstance(value, int):
        if value.bit_length() > MOST_DIGITS * 3.32:
            raise NoJson(f"a number has more than {MOST_DIGITS} digits")
        return str(value).encode()
    if isinstance(value, float):
        return repr(value).encode()
    raise NoJson(f"{kind_name(value)} has no JSON form")


def _composite(value: Any) -> Node:
    if isinstance(value, list):
        items = tuple(value_nodes([item]) for item in value)
        return nodes.array(Never("no more items"), len(items), len(items), items)
    for key in value:
        if not isinstance(key, str):
            raise NoJson(f"the key {key!r} is not a string")
        _text(key)
    return make_object([Property(key, value_nodes([part])) for key, part in value.items()], ())


def kind_name(value: object) -> str:
    """What a value is: `an int`, `a set`."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
