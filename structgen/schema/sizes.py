"""How long the n-th shortest text of a node can be: for parts that must differ from each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from structgen.deadline import check_deadline
from structgen.regex import Dfa, distances, finite_size
from structgen.regex.dfa import mask_set
from structgen.schema.grid import FRACTION_DIGITS, decimal_text
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Choice,
    Embedded,
    Fixed,
    Integer,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Parts,
    Raw,
    Ref,
    Selection,
    String,
    Union,
    Verbatim,
)
from structgen.schema.strings import string_dfa

PLAIN_CHARACTERS = 90
"""At least so many characters are one byte in a JSON string."""
MOST_CHARACTER_BYTES = 6
"""`\\u0001`"""
LONGEST_NUMBER = 24
MOST_PLAIN = 200
"""Characters of the texts that are counted."""


class Sizes:
    """Bounds on the texts of a schema's nodes, in bytes; all of them err on the safe side."""

    def __init__(self, definitions: Mapping[str, Node], *, require_all: bool = False) -> None:
        self._require_all = require_all
        self._definitions = definitions
        self._known: dict[tuple[str, int], int | None] = {}
        self._cuts = 0
        """How often a definition was asked about inside of itself."""

    def nth_length(self, node: Node, n: int) -> int | None:
        """Bytes within which at least `n` different texts of a node lie; None if not known.

        Example: `nth_length(Labels((b"1", b"22", b"333")), 2)` -> 2
        """
        return self._nth(node, n, frozenset())

    def _nth(self, node: Node, n: int, refs: frozenset[str]) -> int | None:
        match node:
            case Never() | Choice() | Selection() | Verbatim() | Raw() | Parts():
                return None
            case Ref():
                return self._definition(node.name, n, refs)
            case Union():
                return _least(self._nth(option, n, refs) for option in node.options)
            case Labels():
                lengths = sorted(map(len, node.texts))
                return lengths[n - 1] if n <= len(lengths) else None
            case AnyJson():
                return _string(String(), n)
            case String():
                return _string(node, n)
            case Integer():
                return _integer(node.minimum, node.maximum, n)
            case Number():
                return _number(node, n)
            case Fixed():
                some = (node.high - node.low) // node.step + 1
                some = some if not node.gaps else some // 2
                width = max(len(decimal_text(node.low)), len(decimal_text(node.high)))
                return width + node.places + 3 if some >= n else None
            case Embedded():
                inner = self._nth(node.node, n, refs)
                return None if inner is None else 4 * inner + 2
            case Array():
                return self._array(node, n, refs)
            case Object():
                return self._object(node, n, refs)
            case _:
                assert_never(node)

    def _definition(self, name: str, n: int, refs: frozenset[str]) -> int | None:
        if name in refs:
            self._cuts += 1
            return None
        if (name, n) in self._known:
            return self._known[name, n]
        check_deadline()
        before = self._cuts
        found = self._nth(self._definitions[name], n, refs | {name})
        if found is not None or self._cuts == before:
            self._known[name, n] = found
        return found

    def _array(self, node: Array, n: int, refs: frozenset[str]) -> int | None:
        least = max(node.min_items, 1 if n > 1 else 0)
        if node.max_items is not None and least > node.max_items:
            return None
        total = 2
        best: int | None = None
        for index in range(min(least, 1000)):
            item = node.prefix[index] if index < len(node.prefix) else node.item
            each = least if node.unique else 1
            first = self._nth(item, each, refs)
            if first is None:
                return None
            total += first + 2
            more = self._nth(item, n + each - 1, refs)
            if more is not None:
                best = more - first if best is None else min(best, more - first)
        if least > 1000 or n == 1:
            return total if least <= 1000 else None
        return None if best is None else total + best

    def _object(self, node: Object, n: int, refs: frozenset[str]) -> int | None:
        total, extra = 2, None if n > 1 else 0
        required = sum(prop.required or self._require_all for prop in node.properties)
        # Where more than the required ones are needed, all that can be written are reckoned.
        missing = node.min_properties if node.min_properties > required else required
        for prop in node.properties:
            key = len(prop.name.encode()) * 2 + 6
            first = self._nth(prop.node, 1, refs)
            needed = prop.required or self._require_all
            if first is None and needed:
                return None
            written = first is not None and (needed or node.min_properties > required)
            if written:
                total += key + (first or 0)
                missing -= 1
            more = self._nth(prop.node, n, refs)
            if more is not None and first is not None:
                extra = _least((extra, more - first if written else more + key))
        for part in node.extras:
            key, value = self._nth(part.key, n, refs), self._nth(part.value, 1, refs)
            if key is not None and value is not None and node.max_properties != 0:
                extra = _least((extra, key + value + 6))
                total += (key + value + 6) * (missing == 1)
                missing -= missing == 1
        return None if extra is None or missing > 0 else total + extra


def _least(lengths: Iterable[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return min(known) if known else None


def _string(node: String, n: int) -> int | None:
    """Of a string: by its characters, or by the automaton of its patterns."""
    if node.patterns or node.excluded:
        return _patterned(node, n)
    some, length = PLAIN_CHARACTERS**node.min_length if node.min_length < 20 else n, node.min_length
    while some < n:
        length += 1
        some += PLAIN_CHARACTERS**length
    if node.max_length is not None and length > node.max_length:
        return None
    return length + 2


def _patterned(node: String, n: int) -> int | None:
    dfa = string_dfa(node)
    left = distances(dfa)
    if not left:
        return None
    size = finite_size(dfa, n)
    if size is not None and size < n:
        return None
    plain = _length_of_plain_texts(dfa, n)
    if plain is not None:
        return plain + 2
    # Each further text is at most one round through the states longer than one before it.
    return (left[0] + len(left) * n) * MOST_CHARACTER_BYTES + 2


def _length_of_plain_texts(dfa: Dfa, n: int) -> int | None:
    """Characters of the n-th shortest text of letters that are one byte each; None if too long."""
    widths = [
        [(to, _plain_letters(mask_set(dfa.letters, mask))) for mask, to in arcs]
        for arcs in dfa.arcs
    ]
    counts = {0: 1}
    found = 0
    for length in range(MOST_PLAIN):
        found += sum(count for state, count in counts.items() if state in dfa.accepting)
        if found >= n:
            return length
        after: dict[int, int] = {}
        for state, count in counts.items():
            for to, width in widths[state]:
                if width:
                    after[to] = min(after.get(to, 0) + count * width, n)
        counts = after
    return None


def _plain_letters(ranges: Iterable[tuple[int, int]]) -> int:
    """How many characters of some ranges are one byte in a JSON string."""
    count = 0
    for first, last in ranges:
        count += max(0, min(last, 0x7E) - max(first, 0x20) + 1)
        count -= sum(first <= char <= last for char in (0x22, 0x5C))
    return count


def _integer(minimum: int | None, maximum: int | None, n: int) -> int | None:
    if minimum is not None and maximum is not None and maximum - minimum + 1 < n:
        return None
    nearest = 0
    if minimum is not None and minimum > 0:
        nearest = minimum
    if maximum is not None and maximum < 0:
        nearest = maximum
    return max(len(decimal_text(nearest - n)), len(decimal_text(nearest + n)))


def _number(node: Number, n: int) -> int | None:
    if node.gaps:
        return None
    if node.minimum is None and node.maximum is None:
        return len(str(n)) + 1
    known = [abs(bound) for bound in (node.minimum, node.maximum) if bound is not None]
    widest = max(len(str(int(bound))) for bound in known)
    low, high = node.minimum, node.maximum
    if low is not None and high is not None and high - low < n * 1e-9:
        return None
    return widest + FRACTION_DIGITS + LONGEST_NUMBER
