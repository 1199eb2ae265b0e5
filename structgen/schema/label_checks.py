"""Checks of labels and of lists of them, for Pydantic, which the reader makes part of the nodes.

Pydantic takes 0.3 s to build a `Literal` of 100,000 texts, and an error of it lists them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic_core import PydanticCustomError

from structgen.schema import nodes
from structgen.schema.nodes import Array, Node

MOST_LISTED = 20
"""Labels that a validation error lists."""


class LabelCheck:
    """Refuses what is none of some texts.

    Example: `LabelCheck(("a", "b"), "letters")("a")` -> `"a"`
    """

    __slots__ = ("_known", "name", "texts")

    def __init__(self, texts: tuple[str, ...], name: str) -> None:
        self.texts = texts
        """In declared order, unique."""
        self.name = name
        self._known = frozenset(texts)

    def __call__(self, value: object) -> str:
        if isinstance(value, str) and value in self._known:
            return str.__str__(value)
        if len(self.texts) > MOST_LISTED:
            context = {"count": len(self.texts), "name": self.name}
            message = "Input should be one of the {count} labels of {name}"
            raise PydanticCustomError("label", message, context)
        listed = {"expected": ", ".join(map(repr, self.texts))}
        raise PydanticCustomError("label", "Input should be one of {expected}", listed)

    def __repr__(self) -> str:  # as errors of Pydantic call it
        return self.name

    def node(self, around: Node, resolved: Callable[[Node], Node]) -> Node:  # noqa: ARG002
        """The labels' node, whatever the node of the schema inside is."""
        return nodes.labels(nodes.json_texts(list(self.texts)))


@dataclass(frozen=True, slots=True)
class DistinctLabels:
    """Refuses a list that holds a label twice, for Pydantic's core schema.

    Example: `DistinctLabels()(["a", "b"])` -> `["a", "b"]`
    """

    antichain: bool = False
    """Also refuse a label together with one that extends it by the separator."""
    separator: str = ""

    def __call__(self, items: list[str]) -> list[str]:
        seen: set[str] = set()
        for item in items:
            if item in seen:
                raise ValueError(f"the label {item!r} is there twice")
            seen.add(item)
        if self.antichain:
            self._check_levels(items, seen)
        return items

    def _check_levels(self, items: Sequence[str], seen: set[str]) -> None:
        for item in items:
            for level in levels_above(item, self.separator):
                if level in seen:
                    raise ValueError(f"{item!r} stands below {level!r}, which is there too")

    def node(self, around: Node, resolved: Callable[[Node], Node]) -> Node:
        """The list's node, which forbids what this check refuses.

        Args:
            around: the node of the list, as if there were no check.
            resolved: follows references.
        """
        if not isinstance(around, Array):
            return around  # it has no items, or no value at all
        return nodes.array(
            resolved(around.item),
            around.min_items,
            around.max_items,
            unique=True,
            antichain=self.antichain,
            separator=self.separator,
            strict=True,
        )


def levels_above(label: str, separator: str) -> list[str]:
    """The levels above a path, the root first: `a > b > c` -> `["a", "a > b"]`."""
    found: list[str] = []
    at = label.find(separator)
    while at >= 0:
        found.append(label[:at])
        at = label.find(separator, at + len(separator))
    return found


def most_together(texts: Iterable[bytes], separator: str) -> int:
    """How many labels at most, none of which extends another: those that none extends.

    Example: `most_together([b'"a"', b'"a/b"', b'"a/c"'], "/")` -> 2

    Args:
        texts: strings in JSON.
    """
    labels: set[str] = {json.loads(text) for text in texts}
    extended = {level for label in labels for level in levels_above(label, separator)}
    return len(labels - extended)
