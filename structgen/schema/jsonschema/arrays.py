"""Arrays in their simplest form, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from structgen.schema import nodes
from structgen.schema.nodes import AnyJson, Array, Contains, Labels, Never, Node

Meet: TypeAlias = Callable[[Node, Node], Node]

NO_SUCH_ITEM = "no item is of the kind that it must contain: "


def item_at(node: Array, index: int) -> Node:
    """What the item at an index may be, if there is one."""
    return node.prefix[index] if index < len(node.prefix) else node.item


def meet_arrays(a: Array, b: Array, meet: Meet) -> Node:
    """The arrays that both nodes admit."""
    length = max(len(a.prefix), len(b.prefix))
    highs = [high for high in (a.max_items, b.max_items) if high is not None]
    low, high = max(a.min_items, b.min_items), min(highs) if highs else None
    if high is not None and low > high:
        return Never(f"at least {low} items, but at most {high}")
    return make_array(
        Array(
            meet(a.item, b.item),
            low,
            high,
            tuple(meet(item_at(a, i), item_at(b, i)) for i in range(length)),
            tuple(dict.fromkeys(a.contains + b.contains)),
            a.unique or b.unique,
        ),
        meet,
    )


def make_array(node: Array, meet: Meet) -> Array | Labels | Never:
    """An array whose parts do not contradict each other; one that can only be empty is `[]`.

    What it must contain is narrowed to what its items may be.
    """
    low, high, kept = node.min_items, node.max_items, list[Contains]()
    for part in node.contains:
        narrowed = part if node.prefix else _narrowed(part, node.item, meet)
        if isinstance(narrowed.item, AnyJson) or (narrowed.item == node.item and not node.prefix):
            low = max(low, part.minimum)
            if part.maximum is not None:
                high = part.maximum if high is None else min(high, part.maximum)
        elif isinstance(narrowed.item, Never) and part.minimum:
            reason = narrowed.item.reason.removeprefix(NO_SUCH_ITEM)
            return Never(NO_SUCH_ITEM + reason)
        elif not isinstance(narrowed.item, Never):
            kept.append(narrowed)
    made = nodes.array(node.item, low, high, node.prefix, kept, node.unique)
    if isinstance(made, Array) and made.unique and made.max_items == 1:
        return replace(made, unique=False)
    return made


def _narrowed(part: Contains, item: Node, meet: Meet) -> Contains:
    if isinstance(item, AnyJson):
        return part
    rest = AnyJson() if part.maximum is None else meet(item, part.rest)
    return Contains(meet(item, part.item), rest, part.minimum, part.maximum)
