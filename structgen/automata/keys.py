"""Frames of object keys that the schema does not name."""

from __future__ import annotations

import json

from structgen.automata.frames import END, Edge, Frame, FrameBuilder
from structgen.automata.strings import canonical_characters


def other_key_frame(names: frozenset[str]) -> Frame:
    """Any key but `names`: an undeclared key must not overwrite a declared property.

    The key is written canonically, so that no escape can spell a forbidden name differently.
    """
    b = FrameBuilder("other key")
    b.literal(b'"')
    start = b.state()
    inside = b.state()
    closed = b.state(accept=True)
    b.bytes_edge(inside, b'"', closed, END)
    canonical_characters(b, inside)
    texts = {json.dumps(name, ensure_ascii=False).encode()[1:] for name in names}
    _copy_without(b, start, inside, texts)
    return b.frame(loop=inside, chars=True)


def _copy_without(b: FrameBuilder, state: int, like: int, texts: set[bytes]) -> None:
    """Give `state` the language of `like` without `texts`, by following the texts' trie."""
    pending = [(state, like, texts)]
    while pending:
        state, like, rest = pending.pop()
        for edge in b.edges_of(like):
            pending.extend(_split_edge(b, state, edge, rest))


def _split_edge(
    b: FrameBuilder, state: int, edge: Edge, texts: set[bytes]
) -> list[tuple[int, int, set[bytes]]]:
    """Copy one edge to `state`, giving bytes that continue a text a state of their own."""
    first, last, to, flags = edge
    by_byte: dict[int, set[bytes]] = {}
    for text in texts:
        if text and first <= text[0] <= last:
            by_byte.setdefault(text[0], set()).add(text[1:])
    pending: list[tuple[int, int, set[bytes]]] = []
    low = first
    for byte in sorted(by_byte):
        if low < byte:
            b.edge(state, low, byte - 1, to, flags)
        low = byte + 1
        if by_byte[byte] != {b""}:
            child = b.state()
            b.edge(state, byte, byte, child, flags)
            pending.append((child, to, by_byte[byte] - {b""}))
    if low <= last:
        b.edge(state, low, last, to, flags)
    return pending
