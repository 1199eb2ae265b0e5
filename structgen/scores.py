"""How sure the model was of each label in a finished value."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from structgen.results import LabelScore
from structgen.schema.nodes import Array, Choice, Labels, Node, Object, Ref, Schema, Union
from structgen.schema.reading import Piece


@dataclass(frozen=True, slots=True)
class Written:
    """One token of the value."""

    n_bytes: int
    log_prob: float
    """Renormalised over the legal tokens; 0 where it was forced."""
    valid_mass: float


def label_scores(
    pieces: Sequence[Piece], text: str, tokens: Sequence[Written]
) -> dict[str, LabelScore]:
    """A score for each `Literal`, `Enum` and `bool` value in `text`, by JSON path.

    `pieces` are the parts of the text that may hold labels: all of it, unless it is a sequence.

    A label's tokens are those that wrote any byte that tells it from the other labels. An end
    token, where the model chose one, stands last in `tokens` as one byte.
    """
    data = text.encode()
    ends: list[int] = []
    for token in tokens:
        ends.append((ends[-1] if ends else 0) + token.n_bytes)
    scores: dict[str, LabelScore] = {}
    for path, labels, start, end in labels_in(pieces, text):
        label = data[start:end]
        decided = start + _deciding_bytes(label, labels)
        # A token of no bytes at the very beginning wrote the end of the prompt anew: it belongs to
        # what follows.
        first = bisect_right(ends, start) if start else 0
        last = bisect_right(ends, decided - 1)
        part = tokens[first : last + 1]
        scores[path] = LabelScore(
            label=label.decode(),
            probability=math.exp(sum(token.log_prob for token in part)),
            valid_mass=math.prod(token.valid_mass for token in part),
        )
    return scores


def _deciding_bytes(label: bytes, labels: Labels | Choice) -> int:
    """How many bytes tell a label from all others, counted from its first.

    `"ab"` needs no closing quote, unless `"abc"` is a label too; `1` needs the byte behind it if
    `12` is a label.
    """
    quoted = isinstance(labels, Labels) and label.startswith(b'"')
    stem = label[:-1] if quoted else label
    # Labels with the same stem are neighbours, since they are sorted.
    at = bisect_left(labels.texts, stem)
    neighbours = labels.texts[at : at + 2]
    is_prefix = any(text.startswith(stem) and text != label for text in neighbours)
    return len(stem) + is_prefix


def labels_in(
    pieces: Sequence[Piece], text: str
) -> Iterator[tuple[str, Labels | Choice, int, int]]:
    """(path, labels, first byte, end byte) of each label in a text that was generated."""
    for piece in pieces:
        part, before = text[piece.start : piece.end], len(text[: piece.start].encode())
        if isinstance(piece.schema.root, Choice):
            yield piece.path, piece.schema.root, before, before + len(part.encode())
            continue
        for path, labels, start, end in _labels_in_json(piece.schema, part):
            yield piece.path + path[1:], labels, before + start, before + end


def _labels_in_json(schema: Schema, text: str) -> Iterator[tuple[str, Labels, int, int]]:
    """(path, labels, first byte, end byte) of each label in a text that fits the schema."""
    data = text.encode()
    for path, keys, start, end in scalars(text):
        scalar = data[start:end]
        for node in _at(schema, keys):
            if isinstance(node, Labels) and node.texts != (b"null",) and _has(node, scalar):
                yield path, node, start, end
                break


def _has(labels: Labels, text: bytes) -> bool:
    at = bisect_left(labels.texts, text)
    return at < len(labels.texts) and labels.texts[at] == text


def _at(schema: Schema, keys: tuple[str | int, ...]) -> list[Node]:
    """The nodes that a path can lead to; ambiguous ways that meet again are followed once."""
    nodes = _alternatives([schema.root], schema.definitions)
    for key in keys:
        inner = [node for outer in nodes for node in _inside(outer, key)]
        nodes = _alternatives(inner, schema.definitions)
    return nodes


def _alternatives(nodes: Sequence[Node], definitions: Mapping[str, Node]) -> list[Node]:
    """The nodes without unions and references, each once."""
    found: dict[int, Node] = {}
    pending, refs = list(nodes), set[str]()
    while pending:
        node = pending.pop()
        if isinstance(node, Union):
            pending.extend(node.options)
        elif isinstance(node, Ref):
            if node.name not in refs:
                refs.add(node.name)
                pending.append(definitions[node.name])
        else:
            found[id(node)] = node
    return list(found.values())


def _inside(node: Node, key: str | int) -> Iterator[Node]:
    """The nodes of a member or item."""
    match node:
        case Array():
            is_first = isinstance(key, int) and key < len(node.prefix)
            yield node.prefix[int(key)] if is_first else node.item
        case Object():
            declared = [prop.node for prop in node.properties if prop.name == key]
            yield from declared or (extra.value for extra in node.extras)
        case _:
            return


def scalars(text: str) -> Iterator[tuple[str, tuple[str | int, ...], int, int]]:
    """(path, keys, first byte, end byte) of every scalar in a JSON text.

    Example: `{"a": [1]}` -> `("$.a[0]", ("a", 0), 7, 8)`
    """
    decoder = json.JSONDecoder()
    yield from _Scanner(text, decoder).value("$", (), 0)


class _Scanner:
    """Walks a valid JSON text; `at` is where it stands after the last value."""

    def __init__(self, text: str, decoder: json.JSONDecoder) -> None:
        self._text = text
        self._decoder = decoder
        self._bytes_before = _byte_offsets(text)
        self.at = 0

    def value(
        self, path: str, keys: tuple[str | int, ...], at: int
    ) -> Iterator[tuple[str, tuple[str | int, ...], int, int]]:
        at = self._skip(at)
        if self._text[at] == "{":
            yield from self._members(path, keys, at)
        elif self._text[at] == "[":
            yield from self._items(path, keys, at)
        else:
            _, self.at = self._raw(at)
            yield path, keys, self._bytes_before[at], self._bytes_before[self.at]

    def _members(
        self, path: str, keys: tuple[str | int, ...], at: int
    ) -> Iterator[tuple[str, tuple[str | int, ...], int, int]]:
        at = self._skip(at + 1)
        while self._text[at] != "}":
            name, at = self._raw(at)
            colon = self._skip(at)
            yield from self.value(f"{path}.{name}", (*keys, name), colon + 1)
            at = self._skip(self.at)
            at = self._skip(at + 1) if self._text[at] == "," else at
        self.at = at + 1

    def _items(
        self, path: str, keys: tuple[str | int, ...], at: int
    ) -> Iterator[tuple[str, tuple[str | int, ...], int, int]]:
        at = self._skip(at + 1)
        index = 0
        while self._text[at] != "]":
            yield from self.value(f"{path}[{index}]", (*keys, index), at)
            at = self._skip(self.at)
            at = self._skip(at + 1) if self._text[at] == "," else at
            index += 1
        self.at = at + 1

    def _skip(self, at: int) -> int:
        while self._text[at] in " \n\t\r":
            at += 1
        return at

    def _raw(self, at: int) -> tuple[Any, int]:
        return self._decoder.raw_decode(self._text, at)


def _byte_offsets(text: str) -> list[int]:
    """UTF-8 bytes before each character, and in all."""
    offsets = [0]
    for character in text:
        offsets.append(offsets[-1] + len(character.encode()))
    return offsets
