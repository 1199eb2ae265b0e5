"""Schemas become nodes: one subschema at a time, every keyword looked up in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from structgen.errors import Fault, LimitError
from structgen.schema import nodes
from structgen.schema.jsonschema import formats, keywords
from structgen.schema.jsonschema.complement import minus
from structgen.schema.jsonschema.definitions import Definitions, InProgress, Unrepresentable
from structgen.schema.jsonschema.documents import MOST_LEVELS, Document, Json, child, too_deep
from structgen.schema.jsonschema.intersect import meet
from structgen.schema.jsonschema.kinds import ARRAY, BOOLEAN, EVERY, NULL, NUMBER, OBJECT, STRING
from structgen.schema.jsonschema.values import NoJson, value_nodes
from structgen.schema.nodes import AnyJson, Never, Node, Ref

KINDS = {
    "null": NULL,
    "boolean": BOOLEAN,
    "string": STRING,
    "number": NUMBER,
    "integer": NUMBER,
    "array": ARRAY,
    "object": OBJECT,
}

PLAIN: Mapping[str, Node] = {
    "null": nodes.labels([b"null"]),
    "boolean": nodes.labels([b"false", b"true"]),
    "string": nodes.String(),
    "number": nodes.Number(),
    "integer": nodes.Integer(),
    "array": nodes.Array(AnyJson()),
}
"""What schemas say that have a type and no other keyword with an effect: half of all schemas."""

_ALL = tuple(name for name in KINDS if name != "integer")

KindReader: TypeAlias = Callable[["Reader", Json, str], Node]
InPlace: TypeAlias = Callable[["Reader", Json, str, Node], Node]


@dataclass(slots=True)
class Reader:
    """State of one conversion: which document, where in it, what was found."""

    document: Document
    kinds: Mapping[int, tuple[frozenset[str], KindReader]]
    """For each type: the keywords that constrain it, and who reads them."""
    in_place: tuple[tuple[frozenset[str], InPlace], ...]
    """Keywords that hold for values of all types, in the order in which they are applied."""
    definitions: Definitions = field(default_factory=Definitions)
    base: str = ""
    """What references are relative to."""
    depth: int = 0
    _targets: dict[str, Ref] = field(default_factory=dict[str, Ref])
    """References by the path of what they lead to."""
    _applied: frozenset[str] = field(init=False)
    """All keywords of `in_place`."""

    def __post_init__(self) -> None:
        self._applied = frozenset[str]().union(*(names for names, _ in self.in_place))

    def refuse(self, path: str, problem: str, advice: str = "") -> Never:
        """Note a fault; the part counts as impossible from here on."""
        return self.definitions.refuse(path, problem, advice)

    def meet(self, a: Node, b: Node) -> Node:
        """What two nodes have in common."""
        return meet(self.definitions, a, b)

    def minus(self, a: Node, b: Node) -> Node:
        """What a node has and another has not."""
        return minus(self.definitions, a, b)

    def part(self, schema: Any, path: str) -> Node:
        """A subschema for a part of the value: it may be recursive."""
        depth, base = self.depth, self.base
        try:
            return self.read(schema, path)
        except InProgress:
            self.depth, self.base = depth, base
            return self.later(schema, path, base)

    def later(self, schema: Any, path: str, base: str) -> Ref:
        """A definition for a subschema, which is read when somebody looks into it."""

        def read() -> Node:
            outer, self.base = self.base, base
            depth, self.depth = self.depth, 0
            try:
                return self.read(schema, path)
            finally:
                self.base, self.depth = outer, depth

        return self.definitions.define(_name(path), read, path)

    def target(self, schema: Any, path: str, base: str) -> Ref:
        """The definition at a place that references lead to."""
        known = self._targets.get(path)
        if known is None:
            known = self._targets[path] = self.later(schema, path, base)
        return known

    def read(self, schema: Any, path: str) -> Node:
        """The node of a subschema; what is wrong with it becomes a fault.

        Raises:
            InProgress: it needs to look into a definition that is just being made.
        """
        if schema is True:
            return AnyJson()
        if schema is False:
            return Never("the schema is false, so nothing is allowed", path)
        if not isinstance(schema, dict):
            return self.refuse(path, "a schema must be an object or a boolean")
        self.definitions.count()
        self.definitions.path = path
        self.depth += 1
        if self.depth > MOST_LEVELS:
            raise LimitError(too_deep(path))
        kind = schema.get("type")
        if isinstance(kind, str) and kind in PLAIN and keywords.PLAIN.issuperset(schema):
            self.depth -= 1
            return PLAIN[kind]
        outer, self.base = self.base, self.document.base_of(schema, self.base)
        try:
            return self._read(schema, path)
        finally:
            self.base = outer
            self.depth -= 1

    def _read(self, schema: Json, path: str) -> Node:
        if self.document.old and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}  # older drafts say that it hides its siblings
        for name in schema.keys() - keywords.ENFORCED:
            self._check_unknown(schema, name, path)
            if name in keywords.NAMES:
                self._check_name(name, schema[name], child(path, name))
        if "format" in schema:
            self._check_format(schema["format"], child(path, "format"))
        try:
            node = self._typed(schema, path)
        except Unrepresentable as error:
            node = self.refuse(path, str(error))
        if self._applied.isdisjoint(schema):
            return node
        for names, apply in self.in_place:
            if not names.isdisjoint(schema):
                base = self.base
                try:
                    node = apply(self, schema, path, node)
                except Unrepresentable as error:
                    self.base = base
                    keyword = next(name for name in schema if name in names)
                    node = self.refuse(child(path, keyword), str(error))
        return node

    def _check_unknown(self, schema: Json, name: Any, path: str) -> None:
        if not isinstance(name, str):
            self.refuse(path, f"the key {name!r} is not a string")
            return
        meant = keywords.misspelt(name)
        if meant and meant not in schema:
            advice = f"did you mean {meant!r}? begin its name with 'x-' if not"
            self.refuse(child(path, name), f"{name!r} is not a keyword", advice)
        elif name in keywords.REFUSED:
            advice = keywords.REFUSED[name]
            self.refuse(child(path, name), f"{name!r} is not a keyword", advice)

    def _check_name(self, keyword: str, value: Any, path: str) -> None:
        """Refuse a value of a type that the keyword cannot have."""
        needed = keywords.NAMES[keyword]
        if not isinstance(value, str if needed == "a string" else dict):
            self.refuse(path, f"{keyword} must be {needed}")
            return
        for name, part in value.items() if isinstance(value, dict) else ():
            if not isinstance(part, dict | bool):
                self.refuse(child(path, str(name)), "a schema must be an object or a boolean")

    def _check_format(self, name: Any, path: str) -> None:
        if not isinstance(name, str):
            self.refuse(path, "a format must be a string")
            return
        meant = formats.misspelt(name)
        if meant:
            self.refuse(path, f"the format {name!r} is not known", f"did you mean {meant!r}?")
        elif problem := formats.unenforced(name):
            self.definitions.ignored[Fault(path, problem, "add a pattern to enforce it")] = None

    def _typed(self, schema: Json, path: str) -> Node:
        """What the type and the keywords for one type say."""
        names = self._types(schema, path)
        if names is None:
            return AnyJson()
        if "const" in schema or "enum" in schema:
            return self._chosen(schema, path, names)
        return self._by_type(schema, path, names)

    def _types(self, schema: Json, path: str) -> tuple[str, ...] | None:
        """The names of the types; None if they and all keywords for types are missing."""
        if "type" not in schema:
            return _ALL if keywords.FOR_TYPES & schema.keys() else None
        names = schema["type"]
        if isinstance(names, str) and names in KINDS:
            return (names,)
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, list) or not listed:
            self.refuse(child(path, "type"), "a type must be a name or a list of names")
            return ()
        for name in listed:
            if not isinstance(name, str) or name not in KINDS:
                known = ", ".join(KINDS)
                hint = "leave the type out to allow any" if name == "any" else f"use {known}"
                self.refuse(child(path, "type"), f"{name!r} is not a type", hint)
        return tuple(name for name in listed if isinstance(name, str) and name in KINDS)

    def _by_type(self, schema: Json, path: str, names: tuple[str, ...]) -> Node:
        options: list[Node] = []
        texts: list[bytes] = []
        bits = 0
        for name in names:
            bits |= KINDS[name]
        for name in dict.fromkeys(names):
            if name == "null":
                texts.append(b"null")
            elif name == "boolean":
                texts += [b"false", b"true"]
            elif name != "integer" or "number" not in names:
                read = self.kinds[KINDS[name]][1]
                typed = schema if schema.get("type") == name else {**schema, "type": name}
                options.append(read(self, typed, path))
        if texts:
            options.append(nodes.labels(texts))
        if not options:
            return Never("no type is left", path)
        if bits == EVERY and not (self._constraining(bits) & schema.keys() or _whole_only(names)):
            return AnyJson()
        if len(options) == 1 and not isinstance(options[0], nodes.Union):
            return options[0]
        return nodes.union(options)

    def _constraining(self, bits: int) -> frozenset[str]:
        return frozenset().union(*(names for kind, (names, _) in self.kinds.items() if kind & bits))

    def _chosen(self, schema: Json, path: str, names: tuple[str, ...]) -> Node:
        node: Node = AnyJson()
        for keyword in ("enum", "const"):
            if keyword in schema:
                node = self.meet(node, self._values(schema[keyword], keyword, path))
        bits = 0
        for name in names:
            bits |= KINDS[name]
        if "type" in schema or self._constraining(bits) & schema.keys():
            allowed = self._by_type(schema, path, names)
            node = self.meet(node, allowed)
        if isinstance(node, Never) and node.path == "$":
            return Never(node.reason, path)
        return node

    def _values(self, values: Any, keyword: str, path: str) -> Node:
        where = child(path, keyword)
        if keyword == "const":
            values = [values]
        if not isinstance(values, list):
            return self.refuse(where, "an enum must be a list of values")
        if not values:
            return Never("the enum has no values", where)
        try:
            return value_nodes(values)
        except NoJson as error:
            return self.refuse(where, str(error))
        except RecursionError:
            raise LimitError(too_deep(where)) from None


def _whole_only(names: tuple[str, ...]) -> bool:
    return "number" not in names


def _name(path: str) -> str:
    """What a definition is called: the last part of its path."""
    last = path.replace("]", "").replace('"', "").replace("[", ".").rsplit(".", 1)[-1]
    return "schema" if last == "$" else last
