"""Quick and certain answers: that two nodes share no value, that a node has none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from structgen.schema.jsonschema.admits import admits_label
from structgen.schema.jsonschema.arrays import item_at
from structgen.schema.jsonschema.definitions import Definitions
from structgen.schema.jsonschema.intersect import meet_strings, undeclared
from structgen.schema.jsonschema.kinds import kinds
from structgen.schema.jsonschema.languages import is_impossible
from structgen.schema.jsonschema.numbers import NUMERIC, meet_numbers
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Labels,
    Never,
    Node,
    Object,
    Ref,
    String,
    Union,
)


def are_disjoint(definitions: Definitions, options: Sequence[Node]) -> bool:
    """Whether no value fits two of several nodes, as far as can be told quickly."""
    if len(options) > 4 and _are_tagged(definitions, options):
        return True
    return all(disjoint(definitions, a, b) for a, b in combinations(options, 2))


def _are_tagged(definitions: Definitions, options: Sequence[Node]) -> bool:
    """Whether a property that all options require tells them apart."""
    plain = [definitions.resolve(option) for option in options]
    if not isinstance(plain[0], Object):
        return False
    return any(
        _is_tag(definitions, plain, part.name) for part in plain[0].properties if part.required
    )


def _is_tag(definitions: Definitions, options: list[Node], name: str) -> bool:
    seen: set[bytes] = set()
    for option in options:
        if not isinstance(option, Object):
            return False
        found = [definitions.resolve(p.node) for p in option.properties if p.name == name]
        if not found or not isinstance(found[0], Labels) or not seen.isdisjoint(found[0].texts):
            return False
        seen.update(found[0].texts)
    return True


def disjoint(
    definitions: Definitions, a: Node, b: Node, seen: frozenset[tuple[Node, Node]] = frozenset()
) -> bool:
    """Whether two nodes certainly have no value in common.

    Raises:
        InProgress: one of them is just being made.
    """
    if isinstance(a, Ref) or isinstance(b, Ref):
        if (a, b) in seen:
            return False
        seen |= {(a, b)}
        a, b = definitions.resolve(a), definitions.resolve(b)
    if not kinds(definitions, a) & kinds(definitions, b):
        return True
    if isinstance(a, Union):
        return all(disjoint(definitions, option, b, seen) for option in a.options)
    if isinstance(b, Union):
        return all(disjoint(definitions, a, option, seen) for option in b.options)
    match a, b:
        case (AnyJson(), _) | (_, AnyJson()):
            return False
        case Labels(), Labels():
            return set(a.texts).isdisjoint(b.texts)
        case (Labels() as choices, other) | (other, Labels() as choices):
            return not any(admits_label(definitions, other, text) for text in choices.texts)
        case String(), String():
            met = meet_strings(a, b)
            return not isinstance(met, String) or (len(met.patterns) > 1 and is_impossible(met))
        case Array(), Array():
            return _disjoint_arrays(definitions, a, b, seen)
        case Object(), Object():
            return _disjoint_objects(definitions, a, b, seen)
        case _ if isinstance(a, NUMERIC) and isinstance(b, NUMERIC):
            return isinstance(meet_numbers(a, b), Never)
        case _:
            return False


def _disjoint_arrays(
    definitions: Definitions, a: Array, b: Array, seen: frozenset[tuple[Node, Node]]
) -> bool:
    low = max(a.min_items, b.min_items)
    if any(node.max_items is not None and node.max_items < low for node in (a, b)):
        return True
    certain = range(min(low, max(len(a.prefix), len(b.prefix)) + 1))
    return any(disjoint(definitions, item_at(a, i), item_at(b, i), seen) for i in certain)


def _disjoint_objects(
    definitions: Definitions, a: Object, b: Object, seen: frozenset[tuple[Node, Node]]
) -> bool:
    mine = {part.name: part for part in a.properties}
    theirs = {part.name: part for part in b.properties}
    low = max(a.min_properties, b.min_properties)
    if any(node.max_properties is not None and node.max_properties < low for node in (a, b)):
        return True
    for name in dict.fromkeys((*mine, *theirs)):
        left, right = mine.get(name), theirs.get(name)
        if (left and left.required) or (right and right.required):
            ours = left.node if left else undeclared(a, name)
            other = right.node if right else undeclared(b, name)
            if disjoint(definitions, ours, other, seen):
                return True
    return False


def is_empty(definitions: Definitions, node: Node, known: dict[str, bool] | None = None) -> bool:
    """Whether a node certainly has no value; a recursive part counts as one that has.

    Args:
        known: the answers so far, by the name of the definition. What a definition says of itself
            meanwhile is False, so that True is certain wherever it was found.
    """
    known = {} if known is None else known
    match node:
        case Never():
            return True
        case Ref():
            if node.name not in known:
                known[node.name] = False
                known[node.name] = is_empty(definitions, definitions.resolve(node), known)
            return known[node.name]
        case Union():
            return all(is_empty(definitions, option, known) for option in node.options)
        case String():
            return is_impossible(node)
        case Array():
            certain = range(min(node.min_items, len(node.prefix) + 1))
            return any(is_empty(definitions, item_at(node, i), known) for i in certain)
        case Object():
            needed = (part.node for part in node.properties if part.required)
            return any(is_empty(definitions, part, known) for part in needed)
        case _:
            return False
