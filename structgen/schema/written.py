"""Nodes and readers of what is not JSON as a whole: choices, patterns, free text, sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast

from pydantic import TypeAdapter

from structgen.errors import (
    Fault,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.regex import PatternError
from structgen.schema import nodes
from structgen.schema.choices import bare_texts, bare_type, choices_of, is_choices
from structgen.schema.core import AfterCheck
from structgen.schema.nodes import (
    Array,
    Never,
    Node,
    Object,
    Part,
    Parts,
    Pattern,
    Raw,
    Ref,
    Schema,
    Selection,
    String,
    Verbatim,
)
from structgen.schema.raw import endings, may_be_empty
from structgen.schema.reading import Chosen, Constant, Free, Json, Reader, Several
from structgen.schema.rewrite import rewritten
from structgen.schema.roots import Form, Regex, Sequence, SomeOf, Text
from structgen.schema.selections import Selected, begin_faults, follower_faults, separator_faults

T_co = TypeVar("T_co", covariant=True)


class Loaded(Protocol):
    """A JSON part as it was read."""

    @property
    def schema(self) -> Schema: ...
    @property
    def adapter(self) -> TypeAdapter[Any]: ...
    @property
    def checks(self) -> tuple[AfterCheck, ...]: ...
    @property
    def ignored(self) -> tuple[Fault, ...]: ...


@dataclass(frozen=True, slots=True)
class Composition:
    """What a `Composed` form is made of."""

    schema: Schema
    reader: Reader
    checks: tuple[AfterCheck, ...] = ()
    ignored: tuple[Fault, ...] = ()


class Composed(Form[T_co], ABC):
    """A form that knows its own nodes and reader; it checked its parts when it was made."""

    __slots__ = ()

    @abstractmethod
    def composition(self) -> Composition:
        """Nodes, reader, and what is checked after generation."""


LoadJson = Callable[[Any], Loaded]
"""Reads a type or JSON Schema whose values are JSON."""


@dataclass(frozen=True, slots=True)
class Root:
    """A schema that is not JSON as a whole."""

    schema: Schema
    reader: Reader
    checks: tuple[AfterCheck, ...]
    ignored: tuple[Fault, ...]


def is_written(source: Any) -> bool:
    """Whether a schema is written as plain text: a choice, or a `Form`."""
    return isinstance(source, Form) or is_choices(source)


def read_written(source: Any, title: str, load_json: LoadJson) -> Root:
    """The nodes of a schema that `is_written`, and what reads its texts.

    Raises:
        UnsupportedSchemaError: with every part that cannot be enforced.
        UnsatisfiableSchemaError: with every JSON part that no finite value matches.
    """
    builder = _Builder(load_json)
    node, reader = builder.read(source, "$")
    builder.faults.extend(_unclear_splits(reader))
    builder.faults.extend(_unclear_selections(reader))
    if builder.faults:
        raise UnsupportedSchemaError(builder.faults, schema=title)
    if builder.impossible:
        raise UnsatisfiableSchemaError(builder.impossible, schema=title)
    schema = Schema(node, builder.definitions, title)
    return Root(schema, reader, tuple(builder.checks), tuple(builder.ignored))


_NOTHING = Verbatim(b""), Constant("")
"""Stands for a part that was refused."""


class _Builder:
    """Reads part after part, and collects what is common to all."""

    def __init__(self, load_json: LoadJson) -> None:
        self._load_json = load_json
        self.definitions: dict[str, Node] = {}
        self.checks: list[AfterCheck] = []
        self.ignored: list[Fault] = []
        self.faults: list[Fault] = []
        self.impossible: list[Fault] = []

    def read(self, source: Any, path: str) -> tuple[Node, Reader]:
        """The node and the reader of one part."""
        if isinstance(source, Sequence):
            return self._sequence(cast("Sequence[Any]", source), path)
        if isinstance(source, Text):
            content = String(source.min_length, source.max_length)
            node = Raw(content, source.stop, source.max_tokens)
            return self._free(node, path, lazy=not source.stop)
        if isinstance(source, Regex):
            pattern = Pattern(source.pattern, source.dialect, whole=True)
            return self._free(Raw(String(patterns=(pattern,))), path, lazy=False)
        if isinstance(source, SomeOf):
            return self._selection(cast("SomeOf[Any]", source), path)
        if isinstance(source, Composed):
            return self._composed(cast("Composed[Any]", source), path)
        if is_choices(source):
            return self._choice(source, path)
        return self._json(source, path)

    def _composed(self, source: Composed[Any], path: str) -> tuple[Node, Reader]:
        made = source.composition()
        self._noted(made.checks, made.ignored, path)
        return self._merged(made.schema), made.reader

    def _sequence(self, source: Sequence[Any], path: str) -> tuple[Node, Reader]:
        parts: list[Part] = []
        readers: list[tuple[str, Reader]] = []
        n_values = 0
        for name, part in source.parts:
            if isinstance(part, str):
                step, (node, reader) = "", self._constant(part, path)
            else:
                step = f".{name}" if name else f"[{n_values}]"
                n_values += 1
                node, reader = self.read(part, path + step)
            parts.append(Part(step, node))
            readers.append((step, reader))
        return Parts(tuple(parts)), Several(readers, source.make)

    def _constant(self, text: str, path: str) -> tuple[Node, Reader]:
        try:
            return Verbatim(text.encode()), Constant(text)
        except UnicodeEncodeError:
            problem = f"the constant {text!r} holds a lone surrogate and is not text"
            self.faults.append(Fault(path, problem))
            return _NOTHING

    def _free(self, node: Raw, path: str, *, lazy: bool) -> tuple[Node, Reader]:
        try:
            endings(node)
        except PatternError as error:
            self.faults.append(Fault(path, f"the pattern cannot be enforced: {error}"))
            return _NOTHING
        return node, Free(node, lazy)

    def _choice(self, source: Any, path: str) -> tuple[Node, Reader]:
        texts, faults = bare_texts(choices_of(source) or (), path)
        if faults:
            self.faults.extend(faults)
            return _NOTHING
        node = nodes.choice(map(str.encode, texts))
        adapter = None
        if not isinstance(source, Form) and bare_type(source) is not source:
            adapter = self._validators(source, path)
        return node, Chosen(Schema(node, {}), texts, adapter)

    def _selection(self, source: SomeOf[Any], path: str) -> tuple[Node, Reader]:
        texts, faults = bare_texts(choices_of(source.choices) or (), path)
        faults = faults or separator_faults(texts, source.separator, path)
        faults = faults or begin_faults(texts, path)
        if faults:
            self.faults.extend(faults)
            return _NOTHING
        choice = nodes.choice(map(str.encode, texts))
        least, most = source.min_items, source.max_items
        node = nodes.selection(choice, source.separator.encode(), least, most)
        if isinstance(node, Never):
            self.impossible.append(Fault(path, node.reason))
            return _NOTHING
        assert isinstance(node, Selection), "there are choices"
        one = Schema(choice, {})
        return node, Selected(one, texts, source.separator, least, node.max_items)

    def _validators(self, source: Any, path: str) -> TypeAdapter[Any] | None:
        """What runs the validators that an `Annotated` adds, None where there are none."""
        try:
            loaded = self._load_json(source)
        except SchemaError as error:
            self._refused(error, path)
            return None
        self.checks += [replace(check, path=path + check.path[1:]) for check in loaded.checks]
        return loaded.adapter if loaded.checks else None

    def _json(self, source: Any, path: str) -> tuple[Node, Reader]:
        try:
            loaded = self._load_json(source)
        except SchemaError as error:
            self._refused(error, path)
            return _NOTHING
        self._noted(loaded.checks, loaded.ignored, path)
        return self._merged(loaded.schema), Json(loaded.schema, loaded.adapter)

    def _noted(self, checks: tuple[AfterCheck, ...], ignored: tuple[Fault, ...], path: str) -> None:
        self.checks += [replace(check, path=path + check.path[1:]) for check in checks]
        self.ignored += [replace(fault, path=path + fault.path[1:]) for fault in ignored]

    def _refused(self, error: SchemaError, path: str) -> None:
        found = [replace(fault, path=path + fault.path[1:]) for fault in error.faults]
        is_empty = isinstance(error, UnsatisfiableSchemaError)
        (self.impossible if is_empty else self.faults).extend(found)

    def _merged(self, schema: Schema) -> Node:
        """The root of a part, whose definitions join those of the others."""
        common = self.definitions.keys() & schema.definitions.keys()
        new: dict[str, str] = {}
        if any(self.definitions[name] != schema.definitions[name] for name in common):
            for name in schema.definitions:
                new[name] = name
                while new[name] in self.definitions:
                    new[name] += "'"

        def renamed(node: Node) -> Node:
            return Ref(new.get(node.name, node.name)) if isinstance(node, Ref) else node

        for name, node in schema.definitions.items():
            self.definitions[new.get(name, name)] = rewritten(node, renamed) if new else node
        return rewritten(schema.root, renamed) if new else schema.root


def _unclear_splits(reader: Reader) -> Iterator[Fault]:
    """Free texts without an end of their own that other free text follows: they would be empty."""
    before = ""
    for path, leaf in _leaves(reader, "$"):
        if isinstance(leaf, Free) and leaf.lazy:
            if before:
                yield Fault(
                    before,
                    f"nothing tells this text from the one at {path} right behind it",
                    "give it a stop string, or put a constant between them",
                )
            before = path
        elif not _may_be_empty(leaf):
            before = ""


def _unclear_selections(reader: Reader) -> Iterator[Fault]:
    """Several labels that do not stand between constants or ends, where it is known what is what.

    In front of them the text must be known to have come to their beginning.
    """
    leaves = list(_leaves(reader, "$"))
    for index, (path, leaf) in enumerate(leaves):
        if not isinstance(leaf, Selected):
            continue
        if index and not isinstance(leaves[index - 1][1], Constant):
            yield Fault(path, "several labels right behind another part", "put a constant between")
        if not all(_has_an_end(before) for _, before in leaves[:index]):
            problem = "before several labels stands a part whose end is not marked"
            yield Fault(path, problem, "give a text a stop string, and put numbers into an object")
        behind = leaves[index + 1][1] if index + 1 < len(leaves) else None
        if isinstance(behind, Constant) and behind.text:
            constant = behind.text
            yield from follower_faults(leaf.texts, leaf.separator, leaf.least, constant, path)
        elif behind is not None:
            yield Fault(path, "several labels right before another part", "put a constant between")


def _has_an_end(reader: Reader) -> bool:
    """Whether nothing can go on where a part has ended."""
    match reader:
        case Constant() | Selected():
            return True
        case Free():
            return bool(reader.node.stops)
        case Json(schema):
            root: Node = schema.root
            while isinstance(root, Ref):
                root = schema.definitions[root.name]
            return isinstance(root, Array | Object)
        case _:
            return False


def _leaves(reader: Reader, path: str) -> Iterator[tuple[str, Reader]]:
    if isinstance(reader, Several):
        for step, part in reader.parts:
            yield from _leaves(part, path + step)
    else:
        yield path, reader


def _may_be_empty(reader: Reader) -> bool:
    match reader:
        case Free():
            return may_be_empty(reader.node)
        case Chosen():
            return "" in reader.texts
        case Constant():
            return not reader.text
        case Selected():
            return not reader.least
        case _:
            return False
