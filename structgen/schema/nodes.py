"""The schema's intermediate representation: what a JSON value may be, and nothing else.

Nodes are made by the smart constructors at the end of this file, so a `Union` is always flat and
without doubles, labels are sorted and unique, and impossible parts are `Never` with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from array import array as numbers
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from json.encoder import encode_basestring  # the C function that json.dumps calls for every text
from typing import Literal, TypeAlias

from structgen.schema.grid import FRACTION_DIGITS, number_grid, on_grid

Dialect: TypeAlias = Literal["rust", "ecma"]
"""Whose regular expressions: the default engine of Pydantic, or JSON Schema's."""
MOST_SHOWN = 64
"""Texts of a set that its `repr` writes out."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A finite set of scalars, each as its canonical JSON text.

    Example: `Literal["a", 1]` is `Labels((b'"a"', b"1"))`
    """

    texts: tuple[bytes, ...]
    """Sorted by bytes, unique, not empty."""
    declared: tuple[bytes, ...] = field(default=(), compare=False, repr=False)
    """The same in the author's order, for people and prompts."""

    def __repr__(self) -> str:
        return _shown("Labels", self.texts)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The strings in which a regular expression is found, or all others.

    Example: `Pattern("^a")` is every string that begins with an a.
    """

    source: str
    dialect: Dialect = "rust"
    negated: bool = False
    whole: bool = False
    """The expression matches the whole string, not just a part of it."""


@dataclass(frozen=True, slots=True)
class String:
    """A JSON string whose length in code points lies between two bounds."""

    min_length: int = 0
    max_length: int | None = None
    patterns: tuple[Pattern, ...] = ()
    """All of them hold for the decoded text."""
    excluded: tuple[str, ...] = ()
    """Sorted texts that it must not be."""
    name: str = field(default="", compare=False, repr=False)
    """What people call such strings, e.g. `date-time`."""


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number without fraction or exponent, between two bounds (both inclusive)."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number whose nearest double lies between two bounds."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    gaps: tuple[Fraction, ...] = ()
    """Sorted numbers whose multiples are left out: 1 leaves what is not whole."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number `n / 10**places` with `low <= n <= high` and n a multiple of `step`, of no gap.

    It is written without an exponent. Example: multiples of 0.05 are `Fixed(places=2, step=5)`.
    """

    low: int
    high: int
    places: int = 0
    step: int = 1
    gaps: tuple[int, ...] = ()
    """Sorted multiples of `step`, whose own multiples are left out."""


@dataclass(frozen=True, slots=True)
class Contains:
    """How many items of an array must, and may, be of some kind."""

    item: Node
    rest: Node
    """Every item that is not of that kind; only asked for where there is a maximum."""
    minimum: int = 1
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """What an item may be, and of which kinds it then is."""

    item: Node
    kinds: tuple[int, ...]
    """Indexes into the array's `contains`."""


Counts: TypeAlias = tuple[int, ...]
"""How many items of each kind an array has so far, as far as that matters."""


@dataclass(frozen=True, slots=True)
class Array:
    """A JSON array."""

    item: Node
    """Every item behind `prefix`; Never where none may follow."""
    min_items: int = 0
    max_items: int | None = None
    prefix: tuple[Node, ...] = ()
    """The first items, as far as there are any."""
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    """No two items are equal."""
    antichain: bool = False
    """With `unique`, of labels: none stands beside one that extends it by the separator."""
    separator: str = ""
    """With `antichain`: `a > b` extends `a` by ` > `."""
    strict: bool = field(default=False, compare=False, repr=False)
    """Validation refuses repeats, so they may not be allowed where they cannot be forbidden."""
    ways: tuple[tuple[Way, ...], ...] = field(default=(), compare=False, repr=False)
    """Alternatives for each of the first items and for all others; follows from the rest."""

    def steps(self, items: int, counts: Counts) -> Iterator[tuple[Way, tuple[int, Counts]]]:
        """The ways to write one more item, each with the numbers of items behind it."""
        if self.max_items is not None and items >= self.max_items:
            return
        longest = self.min_items if self.max_items is None else self.max_items
        more = min(items + 1, max(longest, len(self.ways) - 1))
        for way in self.ways[min(items, len(self.ways) - 1)]:
            after = list(counts)
            for kind in way.kinds:
                after[kind] += 1
            if self._are_few(after):
                yield way, (more, tuple(map(self._counted, self.contains, after)))

    def may_close(self, items: int, counts: Counts) -> bool:
        """Whether an array may end with so many items."""
        enough = (count >= part.minimum for part, count in zip(self.contains, counts, strict=True))
        return items >= self.min_items and all(enough)

    def _are_few(self, counts: Iterable[int]) -> bool:
        pairs = zip(self.contains, counts, strict=True)
        return all(part.maximum is None or count <= part.maximum for part, count in pairs)

    @staticmethod
    def _counted(part: Contains, count: int) -> int:
        return min(count, part.minimum) if part.maximum is None else count


@dataclass(frozen=True, slots=True)
class Extra:
    """One kind of undeclared properties: what keys and what values they have."""

    key: Node
    """String or labels that are strings."""
    value: Node


@dataclass(frozen=True, slots=True)
class Property:
    """One declared property of an `Object`."""

    name: str
    node: Node
    required: bool = True
    description: str = field(default="", compare=False, repr=False)
    """What the author says about it; it goes into the prompt and not into the automaton."""


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object with declared properties, emitted in this order."""

    properties: tuple[Property, ...] = ()
    extras: tuple[Extra, ...] = ()
    """Kinds of undeclared properties, which follow the declared ones; none closes the object.
    Where a key fits several, any of their values will do."""
    reserved: tuple[str, ...] = ()
    """Sorted names by which validation finds declared properties: no extra key may be one."""
    min_properties: int = 0
    max_properties: int | None = None
    description: str = field(default="", compare=False, repr=False)
    _hash: int = field(default=0, init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        """Remembered: objects are looked up again and again, and have all others inside of them."""
        if not self._hash:
            parts = self.properties, self.extras, self.reserved
            found = hash((parts, self.min_properties, self.max_properties)) or 1
            object.__setattr__(self, "_hash", found)
        return self._hash


@dataclass(frozen=True, slots=True)
class Union:
    """Any of several nodes."""

    options: tuple[Node, ...]
    """At least two, flat, unequal."""


@dataclass(frozen=True, slots=True)
class AnyJson:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A definition of the schema, by name: how recursion is written."""

    name: str


@dataclass(frozen=True, slots=True)
class Never:
    """No value at all."""

    reason: str
    path: str = "$"


@dataclass(frozen=True, slots=True)
class Embedded:
    """A JSON string whose text is itself the JSON of a node, in compact form."""

    node: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several texts, written as they are and not as JSON."""

    texts: tuple[bytes, ...]
    """UTF-8, sorted by bytes, unique, not empty."""
    declared: tuple[bytes, ...] = field(default=(), compare=False, repr=False)
    """The same in the author's order."""

    def __repr__(self) -> str:
        return _shown("Choice", self.texts)


@dataclass(frozen=True, slots=True)
class Selection:
    """Several of some texts, none twice, written as they are and with a separator between them.

    No text goes on with the separator's first byte where another one ends.
    """

    choice: Choice
    separator: bytes
    """UTF-8, not empty."""
    min_items: int
    max_items: int
    """At most as many as there are texts."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A text that is written as it is."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Raw:
    """Free text, written as it is and not as JSON."""

    content: String
    stops: tuple[str, ...] = ()
    """None contains another. Where there are any, the first that occurs ends the text; it is
    written and no part of `content`."""
    max_tokens: int | None = None
    """Once so many tokens are written, the text ends with the next whole character."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a `Parts`."""

    step: str
    """What it adds to a path: `.name`, `[0]`, or nothing for a constant."""
    node: Node


@dataclass(frozen=True, slots=True)
class Parts:
    """Several values, each right behind the other; only the root, or a part of it, is one."""

    parts: tuple[Part, ...]


Node: TypeAlias = (
    Labels
    | String
    | Integer
    | Number
    | Fixed
    | Array
    | Object
    | Union
    | AnyJson
    | Embedded
    | Ref
    | Never
    | Choice
    | Selection
    | Verbatim
    | Raw
    | Parts
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A root node and the definitions it refers to."""

    root: Node
    definitions: Mapping[str, Node]
    title: str = "schema"
    """How error messages call it."""


def json_text(value: object) -> bytes:
    """Canonical JSON of a scalar: `json_text("é")` is `b'"é"'` in UTF-8.

    Raises:
        UnicodeEncodeError: the value holds a lone surrogate, which no UTF-8 text can.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")


_ESCAPED = bytes([*range(32), *b'"\\'])


def json_texts(values: list[str]) -> list[bytes]:
    """`json_text` of many strings, made in a few calls.

    Raises:
        UnicodeEncodeError: as `json_text`.
    """
    found: list[bytes] = []
    for first in range(0, len(values), _TOGETHER):
        found += _json_texts(values[first : first + _TOGETHER])
    return found


_TOGETHER = 1024
"""Strings written at once: their text stays in the processor's cache."""


def _json_texts(values: list[str]) -> list[bytes]:
    text = "\n".join(values).encode()
    if len(text.translate(None, _ESCAPED)) == len(text) - len(values) + 1:
        return b"".join((b'"', text.replace(b"\n", b'"\n"'), b'"')).split(b"\n")
    # Some have to be escaped; then there is no raw line break either.
    return "\n".join(map(encode_basestring, values)).encode().split(b"\n")


def _shown(kind: str, texts: tuple[bytes, ...]) -> str:
    """The `repr` of a set of texts; many are told by a hash of them."""
    if len(texts) <= MOST_SHOWN:
        return f"{kind}(texts={texts!r})"
    content = hashlib.sha256(numbers("q", map(len, texts)).tobytes())
    content.update(b"".join(texts))
    return f"{kind}({len(texts)} texts, {content.hexdigest()})"


def labels(texts: Iterable[bytes]) -> Labels | Never:
    """Labels from JSON texts in any order, doubles allowed."""
    ordered, declared = _ordered(texts)
    return Labels(ordered, declared) if ordered else Never("the set of choices is empty")


def choice(texts: Iterable[bytes]) -> Choice | Never:
    """Texts in any order, doubles allowed."""
    ordered, declared = _ordered(texts)
    return Choice(ordered, declared) if ordered else Never("the set of choices is empty")


def _ordered(texts: Iterable[bytes]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Texts in order, and as they come; each once."""
    declared = tuple(texts)
    ordered = sorted(declared)
    if any(map(operator.eq, ordered, islice(ordered, 1, None))):
        declared = tuple(dict.fromkeys(declared))
        ordered = sorted(declared)
    return tuple(ordered), declared


def selection(
    choice: Node, separator: bytes, min_items: int, max_items: int | None
) -> Selection | Verbatim | Never:
    """Several texts; where none can be written it is the empty text."""
    if not isinstance(choice, Choice):
        return choice if isinstance(choice, Never) and min_items else Verbatim(b"")
    most = len(choice.texts) if max_items is None else min(max_items, len(choice.texts))
    if min_items > most:
        return Never(f"{min_items} different choices are needed, and there can be {most}")
    return Selection(choice, separator, min_items, most) if most else Verbatim(b"")


def integer(minimum: int | None, maximum: int | None) -> Integer | Never:
    """An integer between inclusive bounds; contradictory bounds are `Never`."""
    if minimum is not None and maximum is not None and minimum > maximum:
        return Never(f"no integer is at least {minimum} and at most {maximum}")
    return Integer(minimum, maximum)


def number(
    minimum: float | None,
    maximum: float | None,
    above: bool = False,
    below: bool = False,
    gaps: Iterable[Fraction] = (),
) -> Number | Never:
    """A number between bounds (exclusive where `above` or `below` says so) and of no gap."""
    if minimum is not None and math.isinf(minimum):
        minimum = None if minimum < 0 else minimum
    if maximum is not None and math.isinf(maximum):
        maximum = None if maximum > 0 else maximum
    low = -math.inf if minimum is None else minimum
    high = math.inf if maximum is None else maximum
    empty = low > high or (low == high and (above or below))
    empty = empty or math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf
    if empty or not _are_on_grid(minimum, maximum, above, below):
        signs = ">" if above else ">=", "<" if below else "<="
        return Never(f"no number is {signs[0]} {minimum} and {signs[1]} {maximum}")
    above, below = above and minimum is not None, below and maximum is not None
    made = Number(minimum, maximum, above, below, tuple(sorted(set(gaps))))
    if made.gaps and not off_grid(made):
        return Never(f"no number of {EXACT_DIGITS} digits there is no multiple of {made.gaps[0]}")
    return made


EXACT_DIGITS = 15
"""Digits that a double tells apart."""
TIERS = (3, 7, 14)
"""Digits after the point of a number with gaps, out of EXACT_DIGITS."""


def too_fine_bounds(
    minimum: float | None, maximum: float | None, above: bool = False, below: bool = False
) -> str:
    """What is wrong where numbers lie between bounds, but none that would be written; else empty.

    Example: between 1e-308 and 1.1e-308.
    """
    if minimum is None or maximum is None:
        return ""
    if not (math.isfinite(minimum) and math.isfinite(maximum)):
        return ""
    low = math.nextafter(minimum, math.inf) if above else minimum
    high = math.nextafter(maximum, -math.inf) if below else maximum
    if low > high or _are_on_grid(minimum, maximum, above, below):
        return ""
    return (
        f"between {minimum} and {maximum} there is no number with at most {FRACTION_DIGITS} digits "
        "after the point, and numbers with bounds are written without an exponent"
    )


def _are_on_grid(minimum: float | None, maximum: float | None, above: bool, below: bool) -> bool:
    """Whether some number between the bounds has few enough digits to be written."""
    first, last = number_grid(minimum, maximum, above, below)
    return first <= last


def off_grid(node: Number) -> list[Fixed]:
    """How a number with gaps is written: with so few digits that no double is a multiple."""
    found: list[Fixed] = []
    most = 10**EXACT_DIGITS - 1
    for places in TIERS:
        shift = 10 ** (FRACTION_DIGITS - places)
        bounds = node.minimum, node.maximum, node.exclusive_minimum, node.exclusive_maximum
        low, high = number_grid(*bounds)
        low, high = max(-(-low // shift), -most), min(high // shift, most)
        part = fixed(low, high, places, 1, on_grid(node.gaps, places)) if low <= high else None
        if isinstance(part, Fixed):
            found.append(part)
    return found


def string(min_length: int, max_length: int | None) -> String | Never:
    """A string between inclusive lengths; contradictory bounds are `Never`."""
    if max_length is not None and min_length > max_length:
        return Never(f"min_length {min_length} is more than max_length {max_length}")
    return String(min_length, max_length)


def fixed(
    low: int, high: int, places: int, step: int = 1, gaps: Iterable[int] = ()
) -> Fixed | Never:
    """Multiples of `step` and of no gap on the grid of 10**-places, or `Never` without any."""
    first, last = -(-low // step) * step, high // step * step
    found = sorted({math.lcm(step, gap) for gap in gaps})
    without = tuple(gap for i, gap in enumerate(found) if all(gap % less for less in found[:i]))
    # One of any few in a row is a multiple of no gap, unless the step itself is one.
    some = range(first, min(last, first + 64 * step) + 1, step)
    if all(any(n % gap == 0 for gap in without) for n in some):
        return Never(f"no multiple of {step}/10^{places} lies between {low} and {high} steps")
    return Fixed(first, last, places, step, without)


def map_of(key: Node, value: Node) -> Object | Labels:
    """An object with free keys; one whose values are impossible is the label `{}`."""
    return Labels((b"{}",)) if isinstance(value, Never) else Object(extras=(Extra(key, value),))


def array(
    item: Node,
    min_items: int,
    max_items: int | None,
    prefix: Iterable[Node] = (),
    contains: Iterable[Contains] = (),
    unique: bool = False,
    antichain: bool = False,
    separator: str = "",
    strict: bool = False,
) -> Array | Labels | Never:
    """An array; one that can only be empty is the label `[]`."""
    first = tuple(prefix)
    impossible = next((i for i, node in enumerate(first) if isinstance(node, Never)), None)
    if impossible is not None:
        never, first = first[impossible], first[:impossible]
        item = never
    if isinstance(item, Never):
        max_items = len(first) if max_items is None else min(max_items, len(first))
    if max_items is not None and min_items > max_items:
        if isinstance(item, Never) and min_items > len(first):
            return item
        return Never(f"min_items {min_items} is more than max_items {max_items}")
    kept = tuple(part for part in contains if part.minimum or part.maximum is not None)
    needed = max((part.minimum for part in kept), default=0)
    if max_items is not None and needed > max_items:
        return Never(f"it must contain {needed} items but has at most {max_items}")
    if max_items == 0:
        return Labels((b"[]",))
    if max_items is not None:
        first = first[:max_items]
        if len(first) == max_items:
            item = Never("no more items")
    least = max(min_items, needed)
    return Array(item, least, max_items, first, kept, unique, antichain, separator, strict)


def union(options: Iterable[Node]) -> Node:
    """Any of `options`: nested unions are flattened, labels merged, impossible options dropped."""
    flat: dict[Node, None] = {}
    texts: list[bytes] = []
    impossible: Never | None = None
    for option in _flatten(options):
        match option:
            case Never():
                impossible = impossible or option
            case Labels():
                texts.extend(option.declared or option.texts)
            case _:
                flat[option] = None
    if texts:
        flat[labels(texts)] = None
    if not flat:
        return impossible or Never("a union without options")
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def _flatten(options: Iterable[Node]) -> Iterable[Node]:
    for option in options:
        if isinstance(option, Union):
            yield from option.options
        else:
            yield option
