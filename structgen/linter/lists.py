"""Rules about lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from structgen.linter.design import Design, Problem
from structgen.schema.label_checks import LabelCheck
from structgen.schema.nodes import Array, Labels, json_texts


def repeated_labels(design: Design) -> Iterator[Problem]:
    """A list of a taxonomy's labels, in which one may stand several times."""
    known = {frozenset(json_texts(list(check.texts))) for check in _checks(design.core_schemas)}
    for site in design.sites if known else ():
        node = site.node
        if not isinstance(node, Array) or node.unique or node.max_items == 1:
            continue
        items = design.options(node.item)
        if any(
            isinstance(item, Labels) and frozenset(item.texts) - {b"null"} in known
            for item in items
        ):
            yield design.at(
                site,
                "a label may stand in the list several times",
                "write `set[...]`, or `taxonomy.Labels()` for a list without repeats",
            )


def _checks(source: object) -> Iterator[LabelCheck]:
    """The checks of taxonomies in core schemas."""
    pending, seen = [source], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, LabelCheck):
            yield part
        if id(part) in seen or not isinstance(part, Mapping | list | tuple):
            continue
        seen.add(id(part))
        parts = part.values() if isinstance(part, Mapping) else part
        pending.extend(cast("list[object]", list(parts)))
