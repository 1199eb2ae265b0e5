"""Unions of objects that their first property tells apart: it is read once for all of them.

Called one by one, each option would be a thread of its own until its tag differs: a thousand tools
are a thousand threads, and the masks inside of their names take milliseconds. The price is that of
the shortest value a few tokens more may be reckoned, since only bytes that are forced are reckoned
as longer tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

from structgen.automata.calls import Call
from structgen.automata.frames import Frame, FrameBuilder
from structgen.automata.structures import Punctuation, Target
from structgen.schema.nodes import Labels, Node, Object

FEWEST = 8
"""Fewer options are called one by one."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What follows the first property of an object."""

    node: Object


@dataclass(frozen=True, slots=True)
class Tagged:
    """Objects with the same first property, by the text of its value."""

    name: str
    options: Mapping[bytes, Sequence[Object]]


def told_apart(options: Iterable[Node]) -> Tagged | None:
    """The options as objects that a first property tells apart, None where none does.

    Example: `{"name": "a", ...}` and `{"name": "b", ...}` -> `Tagged("name", {b'"a"': ...})`
    """
    found: dict[bytes, list[Object]] = {}
    names: set[str] = set()
    for option in options:
        if not isinstance(option, Object) or not _has_tag(option):
            return None
        first = option.properties[0]
        assert isinstance(first.node, Labels), "it has a tag"
        names.add(first.name)
        for text in first.node.texts:
            found.setdefault(text, []).append(option)
    texts = sorted(found)
    if len(names) != 1 or any(b.startswith(a) for a, b in pairwise(texts)):
        return None
    return Tagged(names.pop(), {text: found[text] for text in texts})


def _has_tag(node: Object) -> bool:
    """Whether an object always begins with one of a few labels, and counts nothing."""
    if not node.properties or node.max_properties is not None:
        return False
    first = node.properties[0]
    needed = sum(prop.required for prop in node.properties)
    return first.required and isinstance(first.node, Labels) and node.min_properties <= needed


def tagged_frame(
    name: str, rests: Mapping[bytes, Sequence[Target]], punctuation: Punctuation
) -> Frame:
    """`{"name": "a"` and then what belongs to this tag; `rests` is sorted, no tag begins another.

    A trie of the tags, in which a state stands for all that agree with what was read.
    """
    b = FrameBuilder("tagged")
    b.literal(b"{")
    punctuation.gap(b)
    b.literal(json.dumps(name, ensure_ascii=False).encode())
    b.literal(punctuation.colon)
    punctuation.gap(b)
    pending: list[tuple[int, list[bytes], int]] = [(-1, list(rests), 0)]
    leaves: list[tuple[int, Sequence[Target]]] = []
    while pending:
        before, texts, depth = pending.pop()
        end = _common(texts[0], texts[-1])
        start = b.literal(texts[0][depth:end])
        if before >= 0:
            byte = texts[0][depth - 1]
            b.edge(before, byte, byte, start)
        state = b.state()
        if len(texts) == 1:
            leaves.append((state, rests[texts[0]]))
            continue
        for _, group in groupby(texts, itemgetter(end)):
            pending.append((state, list(group), end + 1))
    closed = b.state(accept=True)
    for state, targets in leaves:
        for callee, first, room in targets:
            b.add_call(state, Call(callee, closed, first, room))
    return b.frame()


def _common(a: bytes, b: bytes) -> int:
    """How many bytes two texts begin alike with: of sorted texts, the first and last tell all."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
