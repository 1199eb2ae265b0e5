"""Lists, tuples, sets and mappings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from structgen.schema import nodes
from structgen.schema.core_keys import key_node, unhashable
from structgen.schema.core_reader import Core, Reader, ReadType, inner
from structgen.schema.nodes import (
    Extra,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Property,
    String,
)

SCALAR = nodes.union((Labels((b"false", b"null", b"true")), Number(), String()))
"""Any JSON that Python can hash."""


def _list(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "items_schema", "min_length", "max_length")
    item = reader.node(inner(core, "items_schema"), f"{path}[*]")
    low, high = core.get("min_length") or 0, core.get("max_length")
    return reader.possible(nodes.array(item, low, high), path)


def _tuple(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "items_schema", "variadic_item_index", "min_length", "max_length")
    items: list[Core] = core["items_schema"]
    variadic = core.get("variadic_item_index")
    if variadic is not None and variadic != len(items) - 1:
        return reader.refuse(
            path, "items behind a part of any length are not supported", "put it at the end"
        )
    fixed = items if variadic is None else items[:variadic]
    prefix = [reader.node(item, f"{path}[{i}]") for i, item in enumerate(fixed)]
    low, high = max(len(fixed), core.get("min_length") or 0), core.get("max_length")
    if variadic is None:
        item: Node = Never("no more items")
        high = len(fixed) if high is None else min(high, len(fixed))
    else:
        item = reader.node(items[variadic], f"{path}[*]")
    return reader.possible(nodes.array(item, low, high, prefix), path)


def _set(reader: Reader, core: Core, path: str) -> Node:
    """Few choices are written once each; repeated items are accepted and forgotten by Pydantic."""
    reader.check_keys(core, path, "items_schema", "min_length", "max_length")
    item_core = inner(core, "items_schema")
    problem = unhashable(reader, item_core)
    if problem:
        advice = "use a tuple, a frozen model, or a list outside"
        return reader.refuse(f"{path}[*]", f"{problem} cannot be in a set", advice)
    low, high = core.get("min_length") or 0, core.get("max_length")
    free = reader.target(item_core)["type"] == "any"
    item = SCALAR if free else reader.node(item_core, f"{path}[*]")
    choices = reader.resolved(item)
    if low > 1 and not _all_differ(choices, reader.target(item_core)):
        problem = f"min_length={low} of a set whose items could be equal"
        advice = "use a set of str, int or float, a Literal or an Enum, or a list"
        return reader.refuse(path, problem, advice)
    return reader.possible(nodes.array(choices, low, high, unique=True), path)


def _all_differ(choices: Node, core: Core) -> bool:
    """Whether different texts are different values in Python, where 1 equals true."""
    match choices:
        case Labels():
            return len({json.loads(text) for text in choices.texts}) == len(choices.texts)
        case nodes.Integer() | Number():
            return core["type"] in ("int", "float")
        case String():
            changed = ("strip_whitespace", "to_lower", "to_upper")
            return core["type"] == "str" and not any(core.get(key) for key in changed)
        case _:
            return False


def _dict(reader: Reader, core: Core, path: str) -> Node:
    reader.check_keys(core, path, "keys_schema", "values_schema", "min_length", "max_length")
    low, high = core.get("min_length") or 0, core.get("max_length")
    key = key_node(reader, inner(core, "keys_schema"), f"{path}.<key>")
    value = reader.node(inner(core, "values_schema"), f"{path}.*")
    if low > 1 and not isinstance(key, Labels) and not _all_differ(key, inner(core, "keys_schema")):
        problem = f"min_length={low} of a dict whose keys could be equal"
        return reader.refuse(path, problem, "use str or a Literal or an Enum for its keys")
    return reader.possible(bounded_map(key, value, low, high), path)


def bounded_map(key: Node, value: Node, low: int, high: int | None) -> Node:
    """An object with free keys and so many entries."""
    if high is not None and low > high:
        return Never(f"min_length {low} is more than max_length {high}")
    if isinstance(key, Labels):
        if low > len(key.texts):
            return Never(f"min_length {low} is more than the {len(key.texts)} possible keys")
        high = None if high is not None and high >= len(key.texts) else high
    impossible = next((part for part in (key, value) if isinstance(part, Never)), None)
    if impossible is not None:
        return impossible if low else Labels((b"{}",))
    if high == 0:
        return Labels((b"{}",))
    if low > 1 and isinstance(key, Labels):
        # Declared properties, because a free key could be written twice and would count once.
        names = (json.loads(text) for text in key.declared or key.texts)
        every = low == len(key.texts)
        return Object(
            tuple(Property(name, value, every) for name in names),
            min_properties=0 if every else low,
            max_properties=high,
        )
    return Object(extras=(Extra(key, value),), min_properties=low, max_properties=high)


def with_length(node: Node, low: int, high: int | None) -> Node | None:
    """`node` with a bound on its length; None where its text does not show its length."""
    match node:
        case nodes.Array():
            most = _least(node.max_items, high)
            least = max(node.min_items, low)
            return nodes.array(
                node.item, least, most, node.prefix, node.contains, node.unique, node.antichain,
                node.separator, node.strict,
            )  # fmt: skip
        case nodes.String() if not node.name:
            most = _least(node.max_length, high)
            bounded = nodes.string(max(node.min_length, low), most)
            if isinstance(bounded, Never):
                return bounded
            return replace(node, min_length=bounded.min_length, max_length=most)
        case _:
            return None


def _least(one: int | None, other: int | None) -> int | None:
    known = [bound for bound in (one, other) if bound is not None]
    return min(known) if known else None


CONTAINERS: Mapping[str, ReadType] = {
    "list": _list,
    "generator": _list,
    "deque": _list,
    "tuple": _tuple,
    "set": _set,
    "frozenset": _set,
    "dict": _dict,
    "frozendict": _dict,
    "ordered-dict": _dict,
    "counter": _dict,
}
