"""What was written in arrays and objects whose parts must differ from each other.

A *scope* is such an array or object, its *parts* are the items or free keys. A part may not become
one that was written before; and no part may be begun that could only become one of those. Both
are told from the part's text: parts are written canonically, so equal text is equal value, except
for objects with free keys, which are compared as values when they are complete.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from structgen.automata.frames import IntArray

PartKey: TypeAlias = tuple[tuple[int, int, int], ...]
"""(state, a, b) of the threads that begin a part: all that its language depends on."""


@dataclass(frozen=True, slots=True, eq=False)
class DeadEnds:
    """Where the texts of a part's language lead nowhere but to what was written before."""

    prefixes: frozenset[bytes] = frozenset()
    """Shortest beginnings of which every continuation was written before; may hold b"" ."""
    open_ends: Mapping[bytes, frozenset[int]] = field(default_factory=dict[bytes, frozenset[int]])
    """Texts that may not end but go on, with the bytes by which they do: `1` if `12` is left."""
    barred: frozenset[bytes] = frozenset()
    """Further texts, or all beginnings of some, that are dead because of what was written."""


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """The parts of one scope so far; compared by identity, see `Written.with_part`."""

    keys: frozenset[str | bytes] = frozenset()
    """Of all parts, see `part_key`."""
    texts: frozenset[bytes] = frozenset()
    has_structures: bool = False
    """Whether one of them is an array or object."""
    before: Written | None = None
    """The same without the last part."""
    last: bytes = b""
    dead: dict[PartKey, DeadEnds] = field(default_factory=dict[PartKey, DeadEnds])
    """As far as they were asked for, by how a part begins."""
    grown: dict[bytes, Written] = field(default_factory=dict[bytes, "Written"])
    """Those with one part more, as far as there are any."""
    numbers: dict[tuple[int, int], IntArray | None] = field(
        default_factory=dict[tuple[int, int], "IntArray | None"]
    )
    """As sorted numbers of labels, as far as they were asked for; see `label_scopes.numbers`."""

    def with_part(self, text: bytes) -> Written:
        """These and one more; the same object for the same text each time."""
        found = self.grown.get(text)
        if found is None:
            keys = self.keys | {part_key(text)}
            structured = self.has_structures or text[:1] in (b"{", b"[")
            found = Written(keys, self.texts | {text}, structured, self, text)
            self.grown[text] = found
        return found

    def since(self, key: PartKey) -> list[Written]:
        """From the last one on whose dead ends are known, or from the first part on."""
        found: list[Written] = []
        at = self
        while at.before is not None:
            found.append(at)
            if key in at.dead:
                break
            at = at.before
        return found[::-1]


@dataclass(frozen=True, slots=True)
class Scope:
    """One open scope at one point of a text."""

    written: Written
    text: bytes = b""
    """The part that is being written, from its first byte on."""
    dead: DeadEnds | None = None
    """Of this part; None if nothing was written before it, or it has not begun."""
    ahead: tuple[bytes, ...] = field(default=(), compare=False)
    """Dead ends that the text may still run into."""

    def begun(self, dead: DeadEnds) -> Scope:
        """Where a part may begin."""
        return replace(self, dead=dead, ahead=tuple(dead.prefixes))

    def read(self, byte: int) -> Scope | None:
        """One more byte of a part; None where it only leads to parts that were written before."""
        text = self.text + bytes((byte,))
        if self.dead is None:
            return Scope(self.written, text)
        at = len(self.text)
        ahead = tuple(end for end in self.ahead if end[at] == byte) if self.ahead else ()
        if text in ahead:
            return None
        return Scope(self.written, text, self.dead, ahead)

    def ended(self) -> Scope | None:
        """Between two parts; None if the part was written before."""
        if not self.text or _is_cut_off(self.text):
            return Scope(self.written)
        if part_key(self.text) in self.written.keys:
            return None
        return Scope(self.written.with_part(self.text))

    def suffixes(self) -> list[bytes]:
        """How dead ends go on from here."""
        at = len(self.text)
        return [end[at:] for end in self.ahead]

    def is_along(self) -> bool:
        """Whether the part may still become one that was written before."""
        return self.dead is not None and any(
            text.startswith(self.text) for text in (*self.written.texts, *self.dead.barred)
        )

    def next_bytes(self) -> set[int]:
        """The bytes by which the parts that were written before go on from here."""
        return {rest[0] for rest in self.repeats() if rest}

    def repeats(self) -> list[bytes]:
        """How the parts that were written before go on from here, where the text agrees."""
        if self.dead is None:
            return []
        at = len(self.text)
        texts = (*self.written.texts, *self.dead.barred)
        return [text[at:] for text in texts if text.startswith(self.text)]


INSIDE_ONE = 0b11
"""The path inside a part of a scope that is in no other."""
Scopes: TypeAlias = tuple[Scope, ...]
"""Open scopes from the outside in."""


def after_byte(scopes: Scopes, byte: int, path: int, opens: bool, empty: Scope) -> Scopes | None:
    """The scopes behind a byte that was read at `path`; None where it repeats a part.

    Args:
        path: a leading 1, then a bit for each open scope, which is 1 inside one of its parts.
        opens: the byte begins the innermost scope.
        empty: a scope in which nothing was written.
    """
    if path == INSIDE_ONE and len(scopes) == 1 and not opens:
        inner = scopes[0].read(byte)
        return None if inner is None else (inner,)
    depth = path.bit_length() - 1
    if any(scope.ended() is None for scope in scopes[depth:]):
        return None
    after: list[Scope] = []
    for index in range(depth):
        scope = scopes[index] if index < len(scopes) else empty
        if opens and index == depth - 1:
            found: Scope | None = empty
        elif path >> (depth - 1 - index) & 1:
            found = scope.read(byte)
        else:
            found = scope.ended()
        if found is None:
            return None
        after.append(found)
    return tuple(after)


def _is_cut_off(text: bytes) -> bool:
    """Whether a string has not ended: what began like a free key became a declared one."""
    if text[:1] != b'"':
        return False
    inside = text[1:-1]
    backslashes = len(inside) - len(inside.rstrip(b"\\"))
    return len(text) < 2 or text[-1:] != b'"' or backslashes % 2 == 1


def part_key(text: bytes) -> str | bytes:
    """What two equal parts have in common.

    Example: `{"b": 1, "a": 2}` and `{"a": 2, "b": 1}`
    """
    if text[:1] not in (b"{", b"["):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


Readable: TypeAlias = tuple[frozenset[int], bool]
"""Bytes by which a part goes on, and whether it may end here."""


def close_dead_end(
    dead: set[bytes],
    open_ends: dict[bytes, frozenset[int]],
    written: Iterable[bytes],
    text: bytes,
    readable: Callable[[int], Readable],
) -> None:
    """Add to `dead` and `open_ends` what is dead once `text` was written too.

    Args:
        written: all texts of parts, `text` included.
        readable: what can be read behind the first so many bytes of `text`.
    """
    texts = frozenset(written)
    for length in range(len(text), -1, -1):
        prefix = text[:length]
        if prefix in dead:
            continue
        goes_on, may_end = readable(length)
        if may_end and prefix not in texts:
            return
        left = {byte for byte in goes_on if prefix + bytes((byte,)) not in dead}
        if left:
            if prefix in texts:
                open_ends[prefix] = goes_on
            return
        dead.difference_update({prefix + bytes((byte,)) for byte in goes_on})
        open_ends.pop(prefix, None)
        dead.add(prefix)
