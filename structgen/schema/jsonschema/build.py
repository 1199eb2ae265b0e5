"""Objects, arrays and strings in their simplest form: contradictions become `Never`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from structgen.schema import nodes
from structgen.schema.nodes import (
    AnyJson,
    Extra,
    Labels,
    Never,
    Object,
    Property,
    String,
    Union,
)

EMPTY_OBJECT = Labels((b"{}",))


def make_object(
    properties: Iterable[Property],
    extras: Iterable[Extra],
    low: int = 0,
    high: int | None = None,
    description: str = "",
) -> Object | Labels | Never:
    """An object; one that can only be empty is the label `{}`."""
    kinds = tuple(extra for part in extras for extra in _plain(part))
    kept = [p for p in properties if p.required or kinds or not isinstance(p.node, Never)]
    impossible = [part for part in kept if isinstance(part.node, Never)]
    for part in impossible:
        if part.required and isinstance(part.node, Never):
            path = part.node.path
            return Never(f"the property {part.name!r} is required: {part.node.reason}", path)
    required = [part.required for part in kept].count(True)
    if high is not None and max(low, required) > high:
        return Never(f"at least {max(low, required)} properties, but at most {high}")
    possible = len(kept) - len(impossible)
    if not kinds:
        if possible < low:
            return Never(f"at least {low} properties, but only {possible} are allowed")
        high = None if high is None or high >= possible else high
        if possible == 0:
            return EMPTY_OBJECT
    if high == 0:
        return EMPTY_OBJECT
    if high == required:
        kept, kinds = [part for part in kept if part.required], ()
        high = None
    low = 0 if low <= required else low
    return Object(tuple(kept), kinds, (), low, high, description)


def with_reserved(node: Object) -> Object:
    """The object with an impossible property in place of each reserved name.

    Rewriting leaves impossible properties out and reserves their names; the algebra knows
    properties only.
    """
    if not node.reserved:
        return node
    never = Never("no value is possible")
    lost = tuple(Property(name, never, required=False) for name in node.reserved)
    return replace(node, properties=(*node.properties, *lost), reserved=())


def _plain(extra: Extra) -> Iterator[Extra]:
    """Extra properties whose key is a string or labels and whose value is possible."""
    if isinstance(extra.value, Never) or isinstance(extra.key, Never):
        return
    if isinstance(extra.key, Union):
        for option in extra.key.options:
            yield Extra(option, extra.value)
    else:
        yield Extra(String() if isinstance(extra.key, AnyJson) else extra.key, extra.value)


def make_string(node: String) -> String | Never:
    """A string whose bounds do not contradict each other."""
    possible = nodes.string(node.min_length, node.max_length)
    return possible if isinstance(possible, Never) else replace(node, excluded=_reachable(node))


def _reachable(node: String) -> tuple[str, ...]:
    """Excluded texts that the lengths would allow, sorted."""
    if not node.excluded:
        return ()
    high = node.max_length
    texts = {
        text
        for text in node.excluded
        if len(text) >= node.min_length and (high is None or len(text) <= high)
    }
    return tuple(sorted(texts))
