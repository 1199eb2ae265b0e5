"""Arrays and objects whose parts must differ, and where that cannot be enforced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from structgen.errors import Fault
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Embedded,
    Labels,
    Node,
    Object,
    Parts,
    Ref,
    Union,
)
from structgen.schema.sizes import Sizes

MOST_DISTINCT = 8
"""Labels of which each subset has a place of its own in an array's automaton."""
MOST_NEEDED = 10_000
"""Parts that can be demanded to differ."""
MOST_POSITIONS = 20_000
PLENTY = 1_000
"""So many texts are not used up."""
ANYTHING = AnyJson()


def scoped(node: Array) -> bool:
    """Whether a session has to remember the items of an array, because they must differ.

    A few labels have a state for each set of them instead.
    """
    if not node.unique or node.max_items == 1:
        return False
    few = isinstance(node.item, Labels) and len(node.item.texts) <= MOST_DISTINCT
    return not few or bool(node.prefix or node.contains)


def few_distinct(node: Array) -> bool:
    """Whether each set of the labels written so far has a place of its own instead."""
    return node.unique and node.max_items != 1 and not scoped(node)


def free_keys_differ(node: Object) -> bool:
    """Whether the free keys of an object must differ: one written twice would count once."""
    if not node.extras or node.min_properties < 2:
        return False
    return node.min_properties > sum(prop.required for prop in node.properties) + 1


def different_items(node: Array) -> Iterator[tuple[Node, int]]:
    """What items may be, and how many different values of each an array may ask for."""
    return ((item, needed) for _, item, needed in _needs(node))


def _needs(node: Array) -> Iterator[tuple[str, Node, int]]:
    """(place, item, how many values it must have) so that no choice leads to a dead end."""
    if node.contains:
        yield from _needs_of_kinds(node)
        return
    for index, item in enumerate(node.prefix[: node.min_items]):
        yield str(index), item, index + 1
    if node.min_items > len(node.prefix):
        yield "*", node.item, node.min_items


def _needs_of_kinds(node: Array) -> Iterator[tuple[str, Node, int]]:
    """The same where items of some kinds must be there.

    While an item of a kind is missing, fewer values of that kind than its minimum are written, and
    no others are used up. Items of any kind are missing only up to `min_items`: an alternative of
    no kind, which may always be taken, needs so many values; where there is none, all do.
    """
    for index, ways in enumerate(node.ways):
        is_prefix = index < len(node.prefix)
        some_free = any(not way.kinds for way in ways)
        for way in ways:
            needed = max((node.contains[kind].minimum for kind in way.kinds), default=0)
            if not way.kinds or not some_free:
                needed = max(needed, node.min_items)
            if is_prefix:
                # What is missing may only be allowed further on, so no place may lead nowhere.
                yield str(index), way.item, index + 1
            else:
                yield "*", way.item, needed


class Distinct:
    """What is wrong with the arrays and objects of a schema whose parts must differ."""

    def __init__(self, definitions: Mapping[str, Node]) -> None:
        self._definitions = definitions
        self._sizes = Sizes(definitions)

    def array_faults(self, node: Array, path: str) -> Iterator[Fault]:
        """Of one array, apart from its items' own faults."""
        if node.antichain and (not isinstance(node.item, Labels) or node.prefix or node.contains):
            yield Fault(path, "antichain=True is for lists of labels")
            return
        if not scoped(node):
            return
        if node.min_items > MOST_NEEDED:
            advice = f"lower min_items, {MOST_NEEDED} different items can be demanded"
            problem = f"min_items={node.min_items} of different items is too many"
            yield Fault(path, problem, advice)
            return
        for place, item, needed in _needs(node):
            if needed and self._sizes.nth_length(item, needed) is None:
                yield Fault(
                    f"{path}[{place}]",
                    f"at least {needed} different items are needed, but there may be fewer values",
                    "lower min_items, or allow more values",
                )
        for item in (node.item, *node.prefix):
            problem = self._problem_inside(item, set())
            if problem:
                yield Fault(path, f"items without repeats cannot be enforced: {problem}")
                return

    def object_faults(self, node: Object, path: str) -> Iterator[Fault]:
        """Of one object, apart from its properties' own faults."""
        if not free_keys_differ(node):
            return
        needed = node.min_properties - sum(prop.required for prop in node.properties)
        if needed > MOST_NEEDED:
            advice = f"lower the minimum, {MOST_NEEDED} free keys can be demanded"
            yield Fault(path, f"min_properties={node.min_properties} is too many", advice)
            return
        # Names of declared properties are no free keys: so many more must be left.
        declared = len(node.properties) + len(node.reserved)
        lengths = (self._sizes.nth_length(e.key, needed + declared) for e in node.extras)
        if all(length is None for length in lengths):
            yield Fault(
                path,
                f"at least {node.min_properties} properties are needed, but there may be fewer "
                "different keys",
                "declare the properties, or lower the minimum",
            )

    def _problem_inside(self, node: Node, seen: set[str]) -> str:
        """Why values of a node cannot be told apart while they are written."""
        match node:
            case Ref():
                if node.name in seen:
                    return ""
                seen.add(node.name)
                return self._problem_inside(self._definitions[node.name], seen)
            case Union():
                inner: Iterable[Node] = node.options
            case Array():
                if scoped(node) and (node.min_items > 1 or not self._is_plenty(node.item)):
                    return "an item is itself an array of few values, or many, without repeats"
                inner = (node.item, *node.prefix, *(kind.item for kind in node.contains))
            case Object():
                limited = node.max_properties is not None and node.max_properties > 1
                few = any(not self._is_plenty(extra.key) for extra in node.extras)
                if node.extras and (limited or few or free_keys_differ(node)):
                    return "an item is an object whose free keys are few or counted"
                inner = (
                    *(prop.node for prop in node.properties),
                    *(extra.value for extra in node.extras),
                )
            case Embedded():
                inner = (node.node,)
            case _:
                return ""
        return next(filter(None, (self._problem_inside(part, seen) for part in inner)), "")

    def _is_plenty(self, node: Node) -> bool:
        return self._sizes.nth_length(node, PLENTY) is not None

    def mixed(self, root: Node) -> Iterator[Fault]:
        """Faults where values that must differ and others begin alike, as options of a union."""
        yield from islice(self._mixed([root], "$", set()), 20)

    def _mixed(self, nodes: list[Node], path: str, seen: set[frozenset[int]]) -> Iterator[Fault]:
        options = self._options(nodes)
        key = frozenset(map(id, options))
        if not options or key in seen:
            return
        seen.add(key)
        if len(seen) > MOST_POSITIONS:
            yield Fault(path, "too many alternatives to tell where repeats are forbidden")
            return
        arrays = [node for node in options if isinstance(node, Array)]
        objects = [node for node in options if isinstance(node, Object)]
        whatever = any(isinstance(node, AnyJson) for node in options)
        some = {scoped(node) for node in arrays} | ({False} if whatever else set())
        some_objects = {free_keys_differ(node) for node in objects}
        some_objects |= {False} if whatever else set()
        if len(some) > 1 or len(some_objects) > 1:
            what = "arrays" if len(some) > 1 else "objects"
            yield Fault(
                path,
                f"of two {what} that may stand here only one forbids repeats, and they begin alike",
                "forbid repeats in both or in none",
            )
            return
        if len({node.separator if node.antichain else None for node in arrays}) > 1 or (
            any(node.antichain for node in arrays) and (len(set(arrays)) > 1 or whatever)
        ):
            yield Fault(path, "a list with antichain=True stands beside another that begins alike")
            return
        items = [part for node in arrays for part in (node.item, *node.prefix)]
        items += [kind.item for node in arrays for kind in node.contains]
        items += [way.item for node in arrays for place in node.ways for way in place]
        items += [ANYTHING] if whatever else []
        yield from self._mixed(items, f"{path}[*]", seen)
        yield from self._mixed_members(objects, whatever, path, seen)
        for node in options:
            for part in node.parts if isinstance(node, Parts) else ():
                yield from self._mixed([part.node], path + part.step, seen)

    def _mixed_members(
        self, objects: list[Object], whatever: bool, path: str, seen: set[frozenset[int]]
    ) -> Iterator[Fault]:
        anything: list[Node] = [ANYTHING] if whatever else []
        declared = [{prop.name: prop.node for prop in node.properties} for node in objects]
        for name in sorted({name for names in declared for name in names}):
            values = list(anything)
            for node, names in zip(objects, declared, strict=True):
                values += [names[name]] if name in names else [e.value for e in node.extras]
            yield from self._mixed(values, f"{path}.{name}", seen)
        free = [extra.value for node in objects for extra in node.extras]
        yield from self._mixed([*free, *anything], f"{path}.*", seen)

    def _options(self, nodes: Iterable[Node]) -> list[Node]:
        found: dict[int, Node] = {}
        pending, refs = list(nodes), set[str]()
        while pending:
            node = pending.pop()
            if isinstance(node, Union):
                pending.extend(node.options)
            elif isinstance(node, Ref):
                if node.name not in refs:
                    refs.add(node.name)
                    pending.append(self._definitions[node.name])
            elif isinstance(node, Array | Object | AnyJson | Parts):
                found[id(node)] = node
        return list(found.values())
