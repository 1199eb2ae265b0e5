"""A schema without certain texts: `banned_strings`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from structgen.errors import LimitError, OptionError, UnsatisfiableSchemaError
from structgen.regex import PatternTooLarge
from structgen.schema import nodes
from structgen.schema.check import unsatisfiable
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Choice,
    Extra,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Raw,
    Ref,
    Schema,
    Selection,
    String,
)
from structgen.schema.reading import Chosen, Free, Reader, Several
from structgen.schema.rewrite import rewritten_schema
from structgen.schema.selections import Selected
from structgen.schema.substrings import containing, minimal_texts

MOST_BANNED = 1_000
"""Banned strings in one schema."""
_CONSTANTS = Labels((b"false", b"null", b"true"))


def banned_texts(banned: Iterable[str] | None) -> tuple[str, ...]:
    """The texts sorted, without those that contain another; None is none at all.

    Raises:
        OptionError: it is no collection of texts, or one is empty.
    """
    if banned is None:
        return ()
    is_list = isinstance(banned, Iterable) and not isinstance(banned, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
    texts = tuple(banned) if is_list else ()
    if not is_list or not all(isinstance(text, str) and text for text in texts):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise OptionError(
            f"banned_strings={list(texts) if is_list else banned!r} must be a list of texts that "
            "are not empty, e.g. ['http']"
        )
    if len(texts) > MOST_BANNED:
        raise OptionError(f"banned_strings has {len(texts)} texts, more than {MOST_BANNED}")
    if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
        raise OptionError("banned_strings holds a lone surrogate, which no text contains")
    return minimal_texts(texts)


def without_strings(schema: Schema, banned: tuple[str, ...]) -> Schema:
    """The schema whose free texts, strings, labels and free keys contain none of `banned`.

    Numbers, declared keys and constant texts are as before.

    Raises:
        UnsatisfiableSchemaError: nothing is left, with the path.
        LimitError: the automaton of what is left would be too large.
    """
    if not banned:
        return schema
    try:
        changed = _Bans(schema, banned).schema()
        impossible = unsatisfiable(changed)
    except PatternTooLarge as error:
        raise LimitError(f"{schema.title} with banned_strings: {error}") from error
    except RecursionError as error:
        raise LimitError(f"{schema.title} is nested too deeply; flatten it") from error
    if impossible:
        raise UnsatisfiableSchemaError(impossible, schema=f"{schema.title} with banned_strings")
    return changed


def reader_without_strings(reader: Reader, banned: tuple[str, ...]) -> Reader:
    """The reader that splits texts into free texts and choices without banned strings.

    Else a text could be split in another way than it was written, into parts that hold some.
    """
    bans = _Bans(Schema(Never(""), {}), banned)

    def changed(reader: Reader) -> Reader:
        match reader:
            case Free():
                return replace(reader, node=bans.raw(reader.node))
            case Chosen() | Selected():
                kept = {t: v for t, v in reader.texts.items() if bans.is_free(t)}
                return replace(reader, texts=kept)
            case Several():
                return replace(reader, parts=[(step, changed(part)) for step, part in reader.parts])
            case _:
                return reader

    return changed(reader)


class _Bans:
    def __init__(self, schema: Schema, banned: tuple[str, ...]) -> None:
        self._schema = schema
        self._banned = banned
        self._pattern = containing(banned, negated=True)
        self._any = "any JSON"
        while self._any in schema.definitions:
            self._any += "'"
        self._uses_any = False

    def schema(self) -> Schema:
        changed = rewritten_schema(self._schema, self._changed)
        if not self._uses_any:
            return changed
        definitions = {**changed.definitions, self._any: self._any_json()}
        return replace(changed, definitions=definitions)

    def _changed(self, node: Node) -> Node:
        match node:
            case String():
                return self._string(node)
            case Raw():
                return self.raw(node)
            case Labels():
                kept = (text for text in node.declared or node.texts if self._is_clean(text))
                return self._left(nodes.labels(kept))
            case Choice():
                kept = (text for text in node.declared or node.texts if self.is_free(text.decode()))
                return self._left(nodes.choice(kept))
            case Selection():
                left = self._changed(node.choice)
                most = node.max_items
                return nodes.selection(left, node.separator, node.min_items, most)
            case AnyJson():
                self._uses_any = True
                return Ref(self._any)
            case Array(item=Labels(texts), unique=True) if len(texts) < node.min_items:
                return Never(f"{len(texts)} choices are left, for {node.min_items} items")
            case _:
                return node

    def _string(self, node: String) -> String:
        return replace(node, patterns=(*node.patterns, self._pattern))

    def _left(self, node: Node) -> Node:
        if isinstance(node, Never):
            return Never("every choice contains a banned string")
        return node

    def raw(self, node: Raw) -> Raw:
        """Free text without the banned strings."""
        return replace(node, content=self._string(node.content))

    def is_free(self, text: str) -> bool:
        """Whether a text contains no banned string."""
        return not any(banned in text for banned in self._banned)

    def _is_clean(self, text: bytes) -> bool:
        """Whether no string in a JSON text contains a banned one."""
        if text[:1] not in b'"[{':
            return True
        found = _strings_in(json.loads(text))
        return all(map(self.is_free, found))

    def _any_json(self) -> Node:
        """Any JSON value without the banned strings."""
        inner = Ref(self._any)
        string = self._string(String())
        members = Object(extras=(Extra(string, inner),))
        return nodes.union((string, Number(), _CONSTANTS, Array(inner), members))


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _strings_in(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _strings_in(item)
