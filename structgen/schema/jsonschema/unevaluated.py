"""`unevaluatedProperties` and `unevaluatedItems`: what the other keywords have left over.

Which properties are left may depend on which alternatives hold, so there are cases: a condition,
and what is evaluated under it. A case that claims less than is evaluated is still right, as the
rest of the schema holds in any case; it only admits fewer values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from structgen.schema import nodes
from structgen.schema.jsonschema.applicators import place_of, presence, subschemas
from structgen.schema.jsonschema.definitions import Unrepresentable
from structgen.schema.jsonschema.documents import MOST_LEVELS, Json, child
from structgen.schema.jsonschema.kinds import PARTS
from structgen.schema.jsonschema.members import key_regions
from structgen.schema.jsonschema.reader import Reader
from structgen.schema.nodes import AnyJson, Never, Node, Object, Pattern, Property

MOST_CASES = 64
ANY = AnyJson()


@dataclass(frozen=True, slots=True)
class Seen:
    """Which properties and items are evaluated."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    every_property: bool = False
    n_items: int = 0
    """That many of the first items."""
    contained: frozenset[Node] = frozenset()
    """And the items of these kinds."""
    every_item: bool = False

    def __or__(self, other: Seen) -> Seen:
        return Seen(
            self.names | other.names,
            self.patterns | other.patterns,
            self.every_property or other.every_property,
            max(self.n_items, other.n_items),
            self.contained | other.contained,
            self.every_item or other.every_item,
        )


Case: TypeAlias = tuple[Node, Seen]


def apply_unevaluated(reader: Reader, schema: Json, path: str, node: Node) -> Node:
    """Both keywords, when all others have been applied."""
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        if keyword in schema:
            rest = reader.part(schema[keyword], child(path, keyword))
            plain = {key: part for key, part in schema.items() if key != keyword}
            options = [
                reader.meet(reader.meet(node, when), _restricted(reader, keyword, seen, rest))
                for when, seen in _Finder(reader, node).cases(plain, path, 0)
            ]
            node = nodes.union(options)
    return node


def _restricted(reader: Reader, keyword: str, seen: Seen, rest: Node) -> Node:
    """Values of any type whose unevaluated parts are as `rest` says."""
    if isinstance(rest, AnyJson):
        return ANY
    if keyword == "unevaluatedItems":
        if seen.every_item:
            return ANY
        item = nodes.union([rest, *seen.contained]) if seen.contained else rest
        prefix = (ANY,) * seen.n_items
        return nodes.union([*PARTS[:3], nodes.array(item, 0, None, prefix), PARTS[4]])
    if seen.every_property:
        return ANY
    patterns = [(Pattern(source, "ecma"), cast(Node, ANY)) for source in sorted(seen.patterns)]
    properties = tuple(Property(name, ANY, required=False) for name in sorted(seen.names))
    return nodes.union([*PARTS[:4], Object(properties, tuple(key_regions(reader, patterns, rest)))])


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the cases of one schema; `node` is what all its keywords together admit."""

    reader: Reader
    node: Node

    def cases(self, schema: Any, path: str, level: int) -> list[Case]:
        """Under which conditions a schema evaluates what."""
        if not isinstance(schema, dict):
            return [(ANY, Seen())]
        if level > MOST_LEVELS:
            raise Unrepresentable("what is evaluated depends on a recursion")
        reader = self.reader
        outer, reader.base = reader.base, reader.document.base_of(cast(Json, schema), reader.base)
        found: list[Case] = [(ANY, _own(reader, cast(Json, schema), path))]
        for more in self._parts(cast(Json, schema), path, level + 1):
            found = self._both(found, more)
        reader.base = outer
        return found

    def _parts(self, schema: Json, path: str, level: int) -> Iterator[list[Case]]:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                yield self._referred(schema, keyword, path, level)
        if "allOf" in schema:
            for part, where in subschemas(self.reader, schema, "allOf", path):
                yield self.cases(part, where, level)
        if "anyOf" in schema:
            yield self._any_of(self._options(schema, "anyOf", path, level))
        if "oneOf" in schema:
            yield self._merged(self._options(schema, "oneOf", path, level))
        if "if" in schema:
            yield self._if(schema, path, level)
        for keyword in ("dependentSchemas", "dependencies"):
            parts = schema.get(keyword)
            if isinstance(parts, dict):
                for name, part in cast(Json, parts).items():
                    yield self._dependent(name, part, child(child(path, keyword), name), level)

    def _referred(self, schema: Json, keyword: str, path: str, level: int) -> list[Case]:
        place = place_of(self.reader, keyword, schema[keyword], child(path, keyword))
        if isinstance(place, Never):
            return [(ANY, Seen())]
        outer, self.reader.base = self.reader.base, place.base
        found = self.cases(place.schema, place.path, level)
        self.reader.base = outer
        return found

    def _options(self, schema: Json, keyword: str, path: str, level: int) -> list[Case]:
        found: list[Case] = []
        for part, where in subschemas(self.reader, schema, keyword, path):
            option = self.reader.read(part, where)
            for when, seen in self.cases(part, where, level):
                found.append((self.reader.meet(option, when), seen))
        return found

    def _any_of(self, options: list[Case]) -> list[Case]:
        """Any number of options may hold at once, and all of those evaluate."""
        groups = self._merged(options)
        if len(groups) == 1:
            return [(ANY, groups[0][1])]
        told = [case for case in groups if case[1] != Seen()]
        found: list[Case] = [(ANY, Seen())]
        for case in told:
            found += [joined for known in found for joined in self._both([known], [case])]
            if len(found) > MOST_CASES:
                raise Unrepresentable("what is evaluated depends on too many alternatives")
        return found

    def _if(self, schema: Json, path: str, level: int) -> list[Case]:
        where = child(path, "if")
        test = self.reader.read(schema["if"], where)
        passed = self.cases(schema["if"], where, level)
        if "then" in schema:
            then = self.cases(schema["then"], child(path, "then"), level)
            passed = self._both(passed, then)
        passed = [(self.reader.meet(test, when), seen) for when, seen in passed]
        failed = self.cases(schema.get("else", True), child(path, "else"), level)
        if all(seen == Seen() for _, seen in failed):
            return [(ANY, Seen()), *passed]
        rest = self.reader.minus(self.node, test)
        return [*passed, *((self.reader.meet(rest, when), seen) for when, seen in failed)]

    def _dependent(self, name: str, part: Any, path: str, level: int) -> list[Case]:
        _, present = presence(name)
        asked = [(self.reader.meet(present, w), s) for w, s in self.cases(part, path, level)]
        return [(ANY, Seen()), *(case for case in asked if case[1] != Seen())]

    def _both(self, left: list[Case], right: list[Case]) -> list[Case]:
        return self._merged(
            (self.reader.meet(a, b), seen | more) for a, seen in left for b, more in right
        )

    def _merged(self, cases: Iterable[Case]) -> list[Case]:
        """One case for each set of evaluated parts."""
        by_seen: dict[Seen, list[Node]] = {}
        for when, seen in cases:
            if not isinstance(when, Never):
                by_seen.setdefault(seen, []).append(when)
        if len(by_seen) > MOST_CASES:
            raise Unrepresentable("what is evaluated depends on too many alternatives")
        return [
            (ANY if ANY in conditions else nodes.union(conditions), seen)
            for seen, conditions in by_seen.items()
        ]


def _own(reader: Reader, schema: Json, path: str) -> Seen:
    """What the keywords of a schema evaluate, other than through its parts."""
    items, prefix = schema.get("items"), schema.get("prefixItems")
    named, patterns = schema.get("properties"), schema.get("patternProperties")
    first = items if isinstance(items, list) else prefix
    contained = frozenset[Node]()
    if "contains" in schema and not reader.document.is_2019:
        contained = frozenset({reader.part(schema["contains"], child(path, "contains"))})
    return Seen(
        frozenset(cast(Json, named)) if isinstance(named, dict) else frozenset(),
        frozenset(cast(Json, patterns)) if isinstance(patterns, dict) else frozenset(),
        bool({"additionalProperties", "unevaluatedProperties"} & schema.keys()),
        len(cast(list[Any], first)) if isinstance(first, list) else 0,
        contained,
        "unevaluatedItems" in schema
        or ("items" in schema and not isinstance(items, list))
        or ("additionalItems" in schema and isinstance(items, list)),
    )
