"""The values that two nodes have in common, exactly."""

from __future__ import annotations

from functools import partial

from structgen.schema import nodes
from structgen.schema.jsonschema.admits import admits_label, extras_for, fits_string
from structgen.schema.jsonschema.arrays import meet_arrays
from structgen.schema.jsonschema.build import make_object, make_string, with_reserved
from structgen.schema.jsonschema.definitions import Definitions, Unrepresentable
from structgen.schema.jsonschema.kinds import PARTS, STRING, kinds, label_value, of_kinds
from structgen.schema.jsonschema.languages import is_impossible
from structgen.schema.jsonschema.numbers import NUMERIC, meet_numbers
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Embedded,
    Extra,
    Labels,
    Never,
    Node,
    Object,
    Property,
    Ref,
    String,
    Union,
)

MOST_OPTIONS = 200
"""Alternatives that a combination of alternatives may expand to."""


def meet(definitions: Definitions, a: Node, b: Node) -> Node:
    """The values that both nodes admit; properties keep the order of `a`, then of `b`.

    Example: `Integer(0, None)` and `Number(maximum=9.5)` have `Integer(0, 9)` in common.

    Raises:
        Unrepresentable: it would take too many alternatives.
    """
    if a is b or isinstance(b, AnyJson):
        return a
    if isinstance(a, AnyJson):
        return b
    if isinstance(a, Never):
        return a
    if isinstance(b, Never):
        return b
    definitions.count()
    if isinstance(a, Labels) and isinstance(b, Labels):
        return _meet_labels(a, b)
    if isinstance(a, Ref) or isinstance(b, Ref):
        return _meet_refs(definitions, a, b)
    if isinstance(a, Labels):
        return _filter(definitions, a, b)
    if isinstance(b, Labels):
        return _filter(definitions, b, a)
    if isinstance(a, Union) or isinstance(b, Union):
        return _distribute(definitions, a, b)
    return _meet_same(definitions, a, b)


def _meet_same(definitions: Definitions, a: Node, b: Node) -> Node:
    """Both are of one type each."""
    match a, b:
        case String(), String():
            return meet_strings(a, b)
        case Array(), Array():
            return meet_arrays(a, b, partial(meet, definitions))
        case Object(), Object():
            return _meet_objects(definitions, a, b)
        case Embedded(), _ if a == b:
            return a
        case (Embedded(), Embedded() | String()) | (String(), Embedded()):
            raise Unrepresentable("texts that hold JSON cannot be combined with other texts")
        case _ if isinstance(a, NUMERIC) and isinstance(b, NUMERIC):
            return meet_numbers(a, b)
        case _:
            return Never(f"no value is both {_kind(a)} and {_kind(b)}")


def _kind(node: Node) -> str:
    name = type(node).__name__.lower()
    return {"fixed": "a number", "embedded": "a string"}.get(
        name, f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    )


def _meet_labels(a: Labels, b: Labels) -> Node:
    both = set(b.texts)
    kept = [text for text in a.declared or a.texts if text in both]
    return nodes.labels(kept) if kept else Never("the choices have none in common")


def _filter(definitions: Definitions, choices: Labels, other: Node) -> Node:
    declared = choices.declared or choices.texts
    texts = of_kinds(definitions, other, STRING)
    strings = [part for part in texts if isinstance(part, String)]
    plain = len(strings) == len(texts)

    def is_kept(text: bytes) -> bool:
        if plain and text[0] == 0x22:  # a quotation mark: only strings can admit it
            return String() in strings or any(fits_string(s, label_value(text)) for s in strings)
        return admits_label(definitions, other, text)

    kept = [text for text in declared if is_kept(text)]
    if len(kept) == len(declared):
        return choices
    return nodes.labels(kept) if kept else Never("none of the choices is allowed here")


def _meet_refs(definitions: Definitions, a: Node, b: Node) -> Node:
    mine, theirs = definitions.parts(a), definitions.parts(b)
    if set(theirs) <= set(mine):
        return a
    if set(mine) <= set(theirs):
        return b
    parts = tuple(dict.fromkeys(mine + theirs))
    if any((node, not must) in parts for node, must in parts):
        return Never("it must and must not match one definition")
    hint = " & ".join(node.name for node in (a, b) if isinstance(node, Ref))

    def compute() -> Node:
        return meet(definitions, definitions.resolve(a), definitions.resolve(b))

    return definitions.combined(parts, hint, compute, lazy=True)


def _distribute(definitions: Definitions, a: Node, b: Node) -> Node:
    left = a.options if isinstance(a, Union) else (a,)
    right = b.options if isinstance(b, Union) else (b,)
    if _is_anything(right):
        return a
    if _is_anything(left):
        return b
    bits = [kinds(definitions, option) for option in right]
    options: list[Node] = []
    for option in left:
        kind = kinds(definitions, option)
        for other, other_kind in zip(right, bits, strict=True):
            if kind & other_kind:
                met = meet(definitions, option, other)
                if not isinstance(met, Never) or not options:
                    options.append(met)
    if len(options) > max(MOST_OPTIONS, len(left), len(right)):
        raise Unrepresentable(f"combined, the alternatives are more than {MOST_OPTIONS}")
    return nodes.union(options or [Never("the alternatives have no type in common")])


def _is_anything(options: tuple[Node, ...]) -> bool:
    """Whether some options are all of `PARTS`, of which fewer cannot be: hashing them is slow."""
    return len(options) >= len(PARTS) and set(options) >= set(PARTS)


def meet_strings(a: String, b: String) -> Node:
    """The strings that both nodes admit."""
    highs = [high for high in (a.max_length, b.max_length) if high is not None]
    both = String(
        max(a.min_length, b.min_length),
        min(highs) if highs else None,
        tuple(dict.fromkeys(a.patterns + b.patterns)),
        tuple({*a.excluded, *b.excluded}),
        a.name or b.name,
    )
    return make_string(both)


def _meet_objects(definitions: Definitions, a: Object, b: Object) -> Node:
    a, b = with_reserved(a), with_reserved(b)
    mine = {part.name: part for part in a.properties}
    theirs = {part.name: part for part in b.properties}
    definitions.count(len(mine) + len(theirs))
    left, right = (a, _any_undeclared(a)), (b, _any_undeclared(b))
    # What only one declares, and the other leaves open, stays as it is: most properties of most.
    kept: dict[str, Property] = {} if not isinstance(right[1], AnyJson) else mine.copy()
    kept.update(theirs if isinstance(left[1], AnyJson) else {})
    both = mine.keys() & theirs.keys()
    properties = [
        kept[name]
        if name in kept and name not in both
        else _meet_property(definitions, name, (*left, mine.get(name)), (*right, theirs.get(name)))
        for name in (mine | theirs)
    ]
    highs = [high for high in (a.max_properties, b.max_properties) if high is not None]
    return make_object(
        properties,
        _meet_extras(definitions, a, b),
        max(a.min_properties, b.min_properties),
        min(highs) if highs else None,
        a.description or b.description,
    )


def _meet_property(
    definitions: Definitions,
    name: str,
    a: tuple[Object, Node | None, Property | None],
    b: tuple[Object, Node | None, Property | None],
) -> Property:
    """The property of two objects, from (object, what is known of others, its own if any)."""
    values: list[Node] = []
    for owner, other, part in (a, b):
        node = other if part is None else part.node
        values.append(undeclared(owner, name) if node is None else node)
    node = meet(definitions, *values)
    mine, theirs = a[2], b[2]
    if mine and theirs:
        required, said = mine.required or theirs.required, mine.description or theirs.description
        return Property(name, node, required, said)
    only = mine or theirs
    assert only is not None, "one of the objects declares it"
    return only if node is only.node else Property(name, node, only.required, only.description)


def _any_undeclared(owner: Object) -> Node | None:
    """What an undeclared property may be, where that is the same for every name."""
    if len(owner.extras) == 1 and owner.extras[0].key == String():
        return owner.extras[0].value
    return None


def undeclared(owner: Object, name: str) -> Node:
    """What a property that is not declared may be."""
    values = [extra.value for extra in extras_for(owner, name)]
    if len(values) == 1:
        return values[0]
    return nodes.union(values) if values else Never(f"no property {name!r} is allowed")


def _meet_extras(definitions: Definitions, a: Object, b: Object) -> list[Extra]:
    extras: list[Extra] = []
    for left in a.extras:
        for right in b.extras:
            key = meet_keys(left.key, right.key)
            if not isinstance(key, Never):
                value = meet(definitions, left.value, right.value)
                extras.append(Extra(key, value))
    if len(extras) > MOST_OPTIONS:
        raise Unrepresentable(f"property names fall into more than {MOST_OPTIONS} kinds")
    return extras


def meet_keys(a: Node, b: Node) -> Node:
    """The keys that fit both; kinds of keys that no text fits are `Never`."""
    if a == b:
        return a
    both = meet(Definitions(), a, b)
    if isinstance(both, String) and len(both.patterns) > 1 and is_impossible(both):
        return Never("no property name fits both patterns")
    return both
