"""The values of one node that another does not admit, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import assert_never

from structgen.schema import nodes
from structgen.schema.jsonschema.admits import admits_label
from structgen.schema.jsonschema.arrays import item_at, make_array
from structgen.schema.jsonschema.build import make_object, with_reserved
from structgen.schema.jsonschema.definitions import Definitions, Unrepresentable
from structgen.schema.jsonschema.disjoint import disjoint
from structgen.schema.jsonschema.intersect import MOST_OPTIONS, meet, undeclared
from structgen.schema.jsonschema.kinds import (
    ANY_ARRAY,
    ANY_OBJECT,
    NUMBER,
    PARTS,
    STRING,
    kinds,
    label_value,
    labels_of,
)
from structgen.schema.jsonschema.numbers import NUMERIC, exclude, without
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Choice,
    Contains,
    Embedded,
    Extra,
    Fixed,
    Integer,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Parts,
    Pattern,
    Property,
    Raw,
    Ref,
    Selection,
    String,
    Union,
    Verbatim,
)

NOTHING = Never("nothing is left of it")
MOST_EXCLUDED = 2000
"""Texts that a string may be forbidden to be."""


def complement(definitions: Definitions, node: Node) -> Node:
    """Every JSON value that a node does not admit.

    Raises:
        Unrepresentable: no node describes them.
    """
    return minus(definitions, AnyJson(), node)


def minus(definitions: Definitions, a: Node, b: Node) -> Node:
    """The values of `a` that `b` does not admit.

    Example: `Integer(0, 9)` without `Integer(5, None)` is `Integer(0, 4)`.

    Raises:
        Unrepresentable: no node describes them.
        InProgress: one of them is just being made.
    """
    definitions.count()
    if isinstance(a, Never) or isinstance(b, Never):
        return a
    if isinstance(b, AnyJson) or a == b:
        return NOTHING
    if isinstance(a, Ref) or isinstance(b, Ref):
        return _minus_refs(definitions, a, b)
    if isinstance(b, Union):
        for option in b.options:
            a = minus(definitions, a, option)
        return a
    if isinstance(a, AnyJson):
        return _minus_each(definitions, PARTS, b)
    if isinstance(a, Union):
        return _minus_each(definitions, a.options, b)
    if isinstance(a, Labels):
        kept = [t for t in a.declared or a.texts if not admits_label(definitions, b, t)]
        return nodes.labels(kept) if kept else NOTHING
    if not kinds(definitions, a) & kinds(definitions, b):
        return a
    return _bounded(_minus_same(definitions, a, b))


def _minus_each(definitions: Definitions, options: tuple[Node, ...], b: Node) -> Node:
    return _bounded((minus(definitions, option, b) for option in options), len(options))


def _bounded(options: Iterator[Node], least: int = 0) -> Node:
    kept: list[Node] = []
    for option in options:
        if not isinstance(option, Never):
            kept.append(option)
        if len(kept) > max(MOST_OPTIONS, least):
            raise Unrepresentable(f"its opposite has more than {MOST_OPTIONS} alternatives")
    node = nodes.union(kept or [NOTHING])
    if isinstance(node, Union) and len(node.options) > max(MOST_OPTIONS, least):
        raise Unrepresentable(f"its opposite has more than {MOST_OPTIONS} alternatives")
    return node


def _minus_refs(definitions: Definitions, a: Node, b: Node) -> Node:
    mine = definitions.parts(a)
    if (b, False) in mine:
        return a
    if (b, True) in mine:
        return NOTHING
    left = a.name if isinstance(a, Ref) else "any" if isinstance(a, AnyJson) else "it"
    hint = f"{left} without {b.name}" if isinstance(b, Ref) else f"part of {left}"

    def compute() -> Node:
        return minus(definitions, definitions.resolve(a), definitions.resolve(b))

    return definitions.combined((*mine, (b, False)), hint, compute)


def _minus_same(definitions: Definitions, a: Node, b: Node) -> Iterator[Node]:
    """Neither is of several types, and both have values of one type."""
    match a:
        case String():
            yield from _minus_string(definitions, a, b)
        case Integer() | Number() | Fixed():
            if isinstance(b, Labels):
                yield from exclude(a, [_fraction(text) for text in labels_of(b, NUMBER)])
            elif isinstance(b, NUMERIC):
                yield from without(a, b)
        case Array():
            if isinstance(b, Labels):
                yield meet(definitions, a, replace(ANY_ARRAY, min_items=1))
            elif isinstance(b, Array):
                yield from _minus_array(definitions, a, b)
        case Object():
            if isinstance(b, Labels):
                yield meet(definitions, a, replace(ANY_OBJECT, min_properties=1))
            elif isinstance(b, Object):
                yield from _minus_object(definitions, a, b)
        case Embedded():
            raise Unrepresentable("texts that hold JSON cannot be excluded")
        case Labels() | AnyJson() | Never() | Ref() | Union():
            raise AssertionError("these are handled before")
        case Choice() | Selection() | Verbatim() | Raw() | Parts():
            raise AssertionError("no JSON Schema has such parts")
        case _:
            assert_never(a)


def _fraction(text: bytes) -> Fraction:
    return Fraction(text.decode())


def _minus_string(definitions: Definitions, a: String, b: Node) -> Iterator[Node]:
    if isinstance(b, Labels):
        texts = tuple(label_value(text) for text in labels_of(b, STRING))
        if len(texts) > MOST_EXCLUDED:
            raise Unrepresentable(f"more than {MOST_EXCLUDED} texts are excluded")
        yield meet(definitions, a, String(excluded=tuple(sorted(texts))))
        return
    if not isinstance(b, String):
        raise Unrepresentable("texts that hold JSON cannot be excluded")
    if b.min_length:
        yield meet(definitions, a, String(0, b.min_length - 1))
    if b.max_length is not None:
        yield meet(definitions, a, String(b.max_length + 1))
    for pattern in b.patterns:
        if pattern not in a.patterns:
            opposite = Pattern(pattern.source, pattern.dialect, not pattern.negated)
            yield meet(definitions, a, String(patterns=(opposite,)))
    if b.excluded:
        texts = [nodes.json_text(text) for text in b.excluded]
        yield meet(definitions, nodes.labels(texts), a)


def _minus_object(definitions: Definitions, a: Object, b: Object) -> Iterator[Node]:
    a, b = with_reserved(a), with_reserved(b)
    if disjoint(definitions, a, b):
        yield a
        return
    mine = {part.name: part for part in a.properties}
    theirs = {part.name for part in b.properties}
    for part in b.properties:
        own = mine.get(part.name)
        if part.required and not (own and own.required):
            yield with_property(a, part.name, Never("it must be missing"), required=False)
        value = own.node if own else undeclared(a, part.name)
        yield _required(a, part.name, minus(definitions, value, part.node))
    for name, part in mine.items():
        if name not in theirs:
            wrong = minus(definitions, part.node, undeclared(b, name))
            yield _required(a, name, wrong)
    if b.min_properties:
        yield _sized(definitions, a, Object(max_properties=b.min_properties - 1))
    if b.max_properties is not None:
        yield _sized(definitions, a, Object(min_properties=b.max_properties + 1))
    yield from _wrong_extras(definitions, a, b, {*mine, *theirs})


def _sized(definitions: Definitions, a: Object, size: Object) -> Node:
    return meet(definitions, a, replace(size, extras=ANY_OBJECT.extras))


def _required(node: Object, name: str, value: Node) -> Node:
    return value if isinstance(value, Never) else with_property(node, name, value, required=True)


def with_property(node: Object, name: str, value: Node, *, required: bool) -> Node:
    """An object that declares one more property, or declares it otherwise."""
    made = Property(name, value, required)
    parts = [made if part.name == name else part for part in node.properties]
    if made not in parts:
        parts.append(made)
    return make_object(
        parts, node.extras, node.min_properties, node.max_properties, node.description
    )


def _wrong_extras(
    definitions: Definitions, a: Object, b: Object, declared: set[str]
) -> Iterator[Node]:
    """Objects of `a` with a property that neither declares and that `b` does not allow."""
    for extra in a.extras:
        if any(_covers(definitions, other, extra) for other in b.extras):
            continue
        if not isinstance(extra.key, Labels) and not b.extras:
            yield from _with_any_extra(definitions, a, b)
            return
        for name in _wrong_names(definitions, extra, b):
            if name not in declared:
                wrong = minus(definitions, extra.value, undeclared(b, name))
                yield _required(a, name, wrong)


def _wrong_names(definitions: Definitions, extra: Extra, b: Object) -> Iterator[str]:
    """Names of an `Extra` whose values `b` may not allow, if they can be listed."""
    left = extra.key
    for other in b.extras:
        if not isinstance(minus(definitions, extra.value, other.value), Never):
            yield from _listed(meet(definitions, extra.key, other.key))
        left = minus(definitions, left, other.key)
    yield from _listed(left)


def _listed(keys: Node) -> Iterator[str]:
    if isinstance(keys, Labels):
        yield from (label_value(text) for text in labels_of(keys, STRING))
    elif not isinstance(keys, Never):
        raise Unrepresentable(
            "objects in which some undeclared property is not as described cannot be told apart"
        )


def _covers(definitions: Definitions, other: Extra, extra: Extra) -> bool:
    if other.key not in (extra.key, String()):
        return False
    return isinstance(minus(definitions, extra.value, other.value), Never)


def _with_any_extra(definitions: Definitions, a: Object, b: Object) -> Iterator[Node]:
    """Objects with more properties than there are declared ones have one that is not declared."""
    required = sum(part.required for part in b.properties)
    optional = [part.name for part in b.properties if not part.required]
    if len(optional) > 3:
        raise Unrepresentable(
            "objects with some undeclared property cannot be told from those without"
        )
    for chosen in product((False, True), repeat=len(optional)):
        node: Node = a
        for name, present in zip(optional, chosen, strict=True):
            if isinstance(node, Object):
                own = {part.name: part for part in node.properties}.get(name)
                value = own.node if own else undeclared(node, name)
                value = value if present else Never("it must be missing")
                must = present or bool(own and own.required)
                node = with_property(node, name, value, required=must)
        if isinstance(node, Object):
            count = required + sum(chosen) + 1
            yield _sized(definitions, node, Object(min_properties=count))


def _minus_array(definitions: Definitions, a: Array, b: Array) -> Iterator[Node]:
    if disjoint(definitions, a, b):
        yield a
        return
    if b.min_items:
        yield meet(definitions, a, Array(AnyJson(), 0, b.min_items - 1))
    if b.max_items is not None:
        yield meet(definitions, a, Array(AnyJson(), b.max_items + 1))
    yield from _wrong_items(definitions, a, b)
    for part in b.contains:
        yield from _wrong_count(definitions, a, part)
    if b.unique and not a.unique and (a.max_items is None or a.max_items > 1):
        raise Unrepresentable("arrays in which two items are equal cannot be described")


def _wrong_items(definitions: Definitions, a: Array, b: Array) -> Iterator[Node]:
    start = max(len(a.prefix), len(b.prefix))
    end = start
    if a.max_items is not None and a.max_items <= start + 16:
        end = a.max_items
    for i in range(end if b.max_items is None else min(end, b.max_items)):
        yield _with_item(definitions, a, i, minus(definitions, item_at(a, i), item_at(b, i)))
    if (a.max_items is not None and a.max_items <= end) or isinstance(b.item, Never):
        return
    wrong = minus(definitions, a.item, b.item)
    if isinstance(wrong, Never):
        return
    if not all(disjoint(definitions, wrong, item_at(a, i)) for i in range(start)):
        raise Unrepresentable("arrays with a wrong item behind the first ones cannot be described")
    definitions.contains = True
    yield meet(definitions, a, Array(AnyJson(), contains=(Contains(wrong, AnyJson()),)))


def _with_item(definitions: Definitions, node: Array, index: int, value: Node) -> Node:
    if isinstance(value, Never):
        return value
    length = max(len(node.prefix), index + 1)
    prefix = [value if i == index else item_at(node, i) for i in range(length)]
    low = max(node.min_items, index + 1)
    made = replace(node, min_items=low, prefix=tuple(prefix))
    return make_array(made, partial(meet, definitions))


def _wrong_count(definitions: Definitions, a: Array, part: Contains) -> Iterator[Node]:
    definitions.contains = True
    if part.minimum == 1:
        prefix = tuple(minus(definitions, node, part.item) for node in a.prefix)
        none = Array(minus(definitions, a.item, part.item), prefix=prefix)
        yield meet(definitions, a, nodes.array(none.item, 0, None, none.prefix))
    elif part.minimum:
        rest = minus(definitions, AnyJson(), part.item)
        few = Contains(part.item, rest, 0, part.minimum - 1)
        yield meet(definitions, a, Array(AnyJson(), contains=(few,)))
    if part.maximum is not None:
        many = Contains(part.item, AnyJson(), part.maximum + 1)
        yield meet(definitions, a, Array(AnyJson(), contains=(many,)))
