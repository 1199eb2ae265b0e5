"""The slow readable twin of the engine: which byte texts a schema's nodes allow.

It parses with sets of end positions, knows nothing of frames, threads or counters, and looks at
numbers as fractions. `Oracle(schema).is_prefix(b'{"a": ')` is what a mask must agree with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from structgen.options import Options
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Contains,
    Embedded,
    Fixed,
    Integer,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Property,
    Ref,
    Schema,
    String,
    Union,
    map_of,
)
from tests.oracle_fixed import fixed_fits, fixed_prefix
from tests.oracle_texts import Texts, written

NUMBER = re.compile(
    rb"-?(?:"
    rb"(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?"
    rb"|[1-9](?:\.[0-9]{1,17})?[eE](?:"
    rb"\+?(?:[0-9]{1,2}|[0-2][0-9]{2}|30[0-7])|-(?:[0-9]{1,2}|[0-2][0-9]{2}|3[01][0-9]|32[0-4])))"
)
"""A number without bounds: every magnitude stays below 1e308."""
GRID_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]{1,20})?")
INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
NUMBER_BYTES = b"0123456789.eE+-"
FRACTION_DIGITS = 20
CHARACTER_TEMPLATES = (b"\\n", b"\\u0000", b"\\ud000", b"\\ud800\\udc00")
"""An escape that is cut off is legal if the rest of one of these makes it one character."""

ANY_JSON = Union(
    (
        Labels((b"false", b"null", b"true")),
        String(),
        Number(),
        Array(AnyJson()),
        map_of(String(), AnyJson()),
    )
)


class Match(NamedTuple):
    """How a node can be read from one position of a text."""

    ends: frozenset[int]
    """Where complete values end."""
    open: bool
    """Whether the text stops inside a value that could go on."""


Values = frozenset[object]
"""Values of an array that were written, or keys of an object."""
Items = tuple[int, int, int, Values]
"""Position in the text, items so far, those of the kind of `contains`, the values themselves."""
Members = tuple[int, int, int, Values]
"""Position in the text, properties dealt with, properties written, undeclared keys."""
Step = tuple[Iterable[int], bool]
"""Positions behind something that was read, and whether the text stopped inside of it."""


def could_be_a_number(text: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether more digits can make `text` a number: behind every unfinished one a 0 may stand."""
    return any(pattern.fullmatch(text + more) for more in (b"", b"0"))


def integer_fits(text: bytes, node: Integer) -> bool:
    """Whether `text` is a complete integer within the node's bounds."""
    if not INTEGER.fullmatch(text) or text == b"-0":
        return False
    value = int(text)
    too_long = len(text.lstrip(b"-")) > _integer_digits(node)
    return not too_long and _within(value, node.minimum, node.maximum)


def integer_prefix(text: bytes, node: Integer) -> bool:
    """Whether some digits behind `text` make it an integer within the bounds."""
    if text in (b"", b"-"):
        signed = [Fraction(1), 10 ** Fraction(_integer_digits(node))]
        spans = [(-signed[1] + 1, -signed[0])]
        if text == b"":
            spans.append((Fraction(0), signed[1] - 1))
    elif not INTEGER.fullmatch(text) or text == b"-0":
        return False
    else:
        spans = list(_whole_spans(text, _integer_digits(node), Fraction(1)))
    return any(_overlaps(low, high, node.minimum, node.maximum) for low, high in spans)


def _integer_digits(node: Integer) -> int:
    return max(19, *(len(str(abs(bound or 0))) for bound in (node.minimum, node.maximum)))


def _whole_spans(text: bytes, digits: int, step: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    """First and last number that begin with the whole part `text`, by number of further digits.

    Between whole numbers lie steps: 1 for integers, smaller where a fraction may follow.
    """
    sign = -1 if text.startswith(b"-") else 1
    magnitude = text.lstrip(b"-")
    longest = 0 if magnitude == b"0" else digits - len(magnitude)
    for more in range(longest + 1):
        low = Fraction(int(magnitude)) * 10**more
        high = low + 10**more - step
        yield (low, high) if sign > 0 else (-high, -low)


def _within(value: object, low: int | None, high: int | None) -> bool:
    assert isinstance(value, int)
    return (low is None or value >= low) and (high is None or value <= high)


def _overlaps(low: Fraction, high: Fraction, minimum: int | None, maximum: int | None) -> bool:
    return (minimum is None or high >= minimum) and (maximum is None or low <= maximum)


def number_fits(text: bytes, node: Number) -> bool:
    """Whether `text` is a complete number whose nearest double is within the bounds."""
    if node.minimum is None and node.maximum is None:
        return NUMBER.fullmatch(text) is not None
    if not GRID_NUMBER.fullmatch(text) or len(_whole(text)) > _whole_digits(node):
        return False
    if text.startswith(b"-") and Fraction(text.decode()) == 0:
        return False
    value = float(text)
    return _above(value, node) and _below(value, node)


def number_prefix(text: bytes, node: Number) -> bool:
    """Whether more digits make `text` a number within the bounds."""
    if node.minimum is None and node.maximum is None:
        return could_be_a_number(text, NUMBER)
    return any(
        _some_double_fits(low, high, node) for low, high in _number_spans(text, _whole_digits(node))
    )


def _number_spans(text: bytes, digits: int) -> Iterator[tuple[Fraction, Fraction]]:
    """Ranges of the grid that begin with `text`, as first and last number."""
    step = Fraction(1, 10**FRACTION_DIGITS)
    if text in (b"", b"-"):
        yield -(10**digits) + step, -step
        if text == b"":
            yield Fraction(0), 10**digits - step
    elif INTEGER.fullmatch(text):
        for low, high in _whole_spans(text, digits, step):
            yield low, min(high, -step) if text.startswith(b"-") else high
    elif could_be_a_number(text, GRID_NUMBER) and len(_whole(text)) <= digits:
        written = text.partition(b".")[2]
        low = abs(Fraction(text.decode().rstrip(".")))
        high = low + Fraction(1, 10 ** len(written)) - step
        if not text.startswith(b"-"):
            yield low, high
        elif high:
            yield -high, -(low or step)


def _whole(text: bytes) -> bytes:
    return text.lstrip(b"-").partition(b".")[0]


def _whole_digits(node: Number) -> int:
    bounds = (abs(bound or 0) for bound in (node.minimum, node.maximum))
    return max(16, *(len(str(int(bound))) for bound in bounds))


def _some_double_fits(low: Fraction, high: Fraction, node: Number) -> bool:
    """Rounding keeps the order, so only the ends of a range of texts need a look.

    It is assumed that some text of the grid satisfies both bounds.
    """
    return low <= high and _above(float(high), node) and _below(float(low), node)


def _above(value: float, node: Number) -> bool:
    if node.minimum is None:
        return True
    return value > node.minimum if node.exclusive_minimum else value >= node.minimum


def _below(value: float, node: Number) -> bool:
    if node.maximum is None:
        return True
    return value < node.maximum if node.exclusive_maximum else value <= node.maximum


def character(text: bytes, pos: int) -> tuple[int | None, bool]:
    """The end of the one string character at `pos`, or whether the text stops inside of it."""
    if text[pos] == 0x5C:
        return _escaped_character(text, pos)
    for end in range(pos + 1, min(pos + 4, len(text)) + 1):
        found = _decoded(text[pos:end])
        if found:
            return (end, False) if found >= " " and found != '"' else (None, False)
    rest = text[pos:]
    cut_off = any(
        len(_decoded(rest + bytes([continuation]) * more)) == 1
        for continuation in (0x80, 0xBF)
        for more in range(1, 4)
    )
    return None, cut_off


def _decoded(text: bytes) -> str:
    """The text in UTF-8, empty if it is none."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return ""


def _escaped_character(text: bytes, pos: int) -> tuple[int | None, bool]:
    for length in (2, 6, 12):
        if pos + length <= len(text) and _is_one_character(text[pos : pos + length]):
            return pos + length, False
    rest = text[pos:]
    cut_off = any(
        len(rest) < len(template) and _is_one_character(rest + template[len(rest) :])
        for template in CHARACTER_TEMPLATES
    )
    return None, cut_off


def _is_one_character(text: bytes) -> bool:
    try:
        value = json.loads(b'"' + text + b'"')
        value.encode()
    except ValueError:
        return False
    return len(value) == 1


DIGITS = tuple(str(n).encode() for n in range(200))
"""What ends a small integer in another way than all values of a short array did."""


def comparable(value: Any) -> object:
    """A JSON value such that 1 equals 1.0 and differs from true."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return ("list", tuple(map(comparable, value)))
        case dict():
            return ("dict", frozenset((key, comparable(part)) for key, part in value.items()))
        case _:
            return value


class Oracle:
    """Which texts a schema allows, in the layout of the options; nesting is not limited."""

    def __init__(self, schema: Schema, options: Options | None = None) -> None:
        self._schema = schema
        self._options = options or Options()
        spaced = self._options.layout == "spaced"
        self._comma, self._colon = (b", ", b": ") if spaced else (b",", b":")
        flexible = self._options.layout == "flexible"
        self._blanks = self._options.limits.max_whitespace if flexible else 0
        self._endable: dict[int, bool] = {}
        self._finite = self._finite_definitions()
        self._text = b""
        self._memo: dict[tuple[int, int], Match] = {}
        self._parsed: dict[bytes, Match] = {}
        self._settled: dict[tuple[int, int], Match] = {}
        """Matches in beginnings of `_settled_text` that no longer text changes."""
        self._settled_text = b""
        self._texts: dict[int, Texts] = {}
        self._others: dict[tuple[object, ...], Node] = {}
        self._oracles: dict[tuple[int, Options], Oracle] = {}

    def is_prefix(self, text: bytes) -> bool:
        """Whether `text` begins, or is, a value."""
        match = self._parse(text)
        return match.open or len(text) in match.ends

    def is_value(self, text: bytes) -> bool:
        """Whether `text` is a complete value."""
        return len(text) in self._parse(text).ends

    def can_go_on(self, text: bytes) -> bool:
        """Whether a longer text than `text` is a value."""
        return any(self.is_prefix(text + bytes([byte])) for byte in range(256))

    def _parse(self, text: bytes) -> Match:
        if text not in self._parsed:
            if len(self._parsed) > 1000:
                self._parsed.clear()
            if not text.startswith(self._settled_text):
                self._settled_text, self._settled = b"", {}
            self._text, self._memo = text, {}
            self._parsed[text] = self._match(self._schema.root, 0)
            if len(text) >= len(self._settled_text) + 8:
                # What is not open stays as it is, whatever follows.
                closed = {key: match for key, match in self._memo.items() if not match.open}
                self._settled_text, self._settled = text, self._settled | closed
        return self._parsed[text]

    def _match(self, node: Node, pos: int) -> Match:
        key = (id(node), pos)
        known = self._memo.get(key) or self._settled.get(key)
        if known is not None:
            return known
        ends: set[int] = set()
        is_open = False
        for single in self._alternatives(node, frozenset()):
            match = self._match_single(single, pos)
            ends |= match.ends
            is_open |= match.open
        found = self._memo[key] = Match(frozenset(ends), is_open)
        return found

    def _alternatives(self, node: Node, refs: frozenset[str]) -> Iterator[Node]:
        """What a node may be, once unions and references are followed."""
        if isinstance(node, Union):
            for option in node.options:
                yield from self._alternatives(option, refs)
        elif isinstance(node, Ref):
            if node.name not in refs:
                inner = self._schema.definitions[node.name]
                yield from self._alternatives(inner, refs | {node.name})
        elif isinstance(node, AnyJson):
            yield from self._alternatives(ANY_JSON, refs)
        else:
            yield node

    def _match_single(self, node: Node, pos: int) -> Match:
        if not self._can_end(node):
            return Match(frozenset(), False)
        if pos == len(self._text):
            return Match(frozenset(), True)
        match node:
            case Labels():
                return self._either(self._literal([pos], text) for text in node.texts)
            case String() if node.patterns or node.excluded:
                return self._pattern_string(node, pos)
            case String():
                return self._string(node, pos)
            case Embedded():
                return self._embedded(node, pos)
            case Fixed():
                return self._number(
                    pos, lambda text: fixed_fits(text, node), lambda text: fixed_prefix(text, node)
                )
            case Integer():
                return self._number(
                    pos, lambda text: integer_fits(text, node), lambda t: integer_prefix(t, node)
                )
            case Number():
                return self._number(
                    pos, lambda text: number_fits(text, node), lambda t: number_prefix(t, node)
                )
            case Array():
                return self._array(node, pos)
            case Object():
                return self._object(node, pos)
            case _:
                raise AssertionError(node)

    def _either(self, steps: Iterable[Step]) -> Match:
        ends: set[int] = set()
        is_open = False
        for found, stopped in steps:
            ends |= set(found)
            is_open |= stopped
        return Match(frozenset(ends), is_open)

    def _literal(self, positions: Iterable[int], data: bytes) -> Step:
        ends: set[int] = set()
        stopped = False
        for pos in positions:
            if self._text.startswith(data, pos):
                ends.add(pos + len(data))
            elif len(self._text) - pos < len(data):
                stopped |= data.startswith(self._text[pos:])
        return ends, stopped

    def _gap(self, positions: Iterable[int]) -> Step:
        """Whitespace may stand here, also none; something always follows a gap."""
        ends: set[int] = set()
        for pos in positions:
            end = pos
            ends.add(end)
            while end - pos < self._blanks and self._text[end : end + 1] in (
                b" ",
                b"\n",
                b"\t",
                b"\r",
            ):
                end += 1
                ends.add(end)
        return ends, len(self._text) in ends

    def _value(self, node: Node, positions: Iterable[int]) -> Step:
        matches = [self._match(node, pos) for pos in positions]
        return {end for match in matches for end in match.ends}, any(m.open for m in matches)

    def _chain(self, positions: Iterable[int], *steps: Callable[[Iterable[int]], Step]) -> Step:
        """One step after another."""
        stopped = False
        for step in steps:
            positions, step_stopped = step(positions)
            stopped |= step_stopped
        return positions, stopped

    def _number(
        self, pos: int, fits: Callable[[bytes], bool], begins: Callable[[bytes], bool]
    ) -> Match:
        end = pos
        ends: set[int] = set()
        while end < len(self._text) and self._text[end] in NUMBER_BYTES:
            end += 1
            if fits(self._text[pos:end]):
                ends.add(end)
        return Match(frozenset(ends), end == len(self._text) and begins(self._text[pos:]))

    def _string(self, node: String, pos: int) -> Match:
        text, length = self._text, 0
        if text[pos] != 0x22:
            return Match(frozenset(), False)
        pos += 1
        while pos < len(text):
            if text[pos] == 0x22:
                return Match(frozenset([pos + 1] if length >= node.min_length else []), False)
            if length == node.max_length:
                return Match(frozenset(), False)
            end, stopped = character(text, pos)
            if end is None:
                return Match(frozenset(), stopped)
            pos, length = end, length + 1
        return Match(frozenset(), True)

    def _pattern_string(self, node: String, pos: int) -> Match:
        """Characters in one spelling each, as long as they can become a text of the node."""
        nothing = Match(frozenset(), False)
        text, texts = self._text, self._texts_of(node)
        state = texts.start
        if text[pos] != 0x22 or not texts.can_end(state):
            return nothing
        pos += 1
        while pos < len(text):
            if text[pos] == 0x22:
                return Match(frozenset([pos + 1] if texts.is_text(state) else []), False)
            end, stopped = character(text, pos)
            if end is None:
                return Match(frozenset(), stopped and texts.can_go_on(state, text[pos:]))
            char = json.loads(b'"' + text[pos:end] + b'"')
            state = texts.read(state, char)
            if written(char) != text[pos:end] or not texts.can_end(state):
                return nothing
            pos = end
        return Match(frozenset(), True)

    def _texts_of(self, node: String) -> Texts:
        if id(node) not in self._texts:
            self._texts[id(node)] = Texts(node)
        return self._texts[id(node)]

    def _embedded(self, node: Embedded, pos: int) -> Match:
        """Another text in this one, whose quotes and backslashes have a backslash before them."""
        if self._text[pos] != 0x22:
            return Match(frozenset(), False)
        inner = self._oracle(node.node, replace(self._options, layout="compact"))
        found, at = b"", pos + 1
        while at < len(self._text) and self._text[at] != 0x22:
            if self._text[at] != 0x5C:
                found += self._text[at : at + 1]
                at += 1
                continue
            escaped = self._text[at + 1 : at + 2]
            if not escaped:
                is_open = any(inner.is_prefix(found + one) for one in (b'"', b"\\"))
                return Match(frozenset(), is_open)
            if escaped not in (b'"', b"\\"):
                return Match(frozenset(), False)
            found += escaped
            at += 2
        if at == len(self._text):
            return Match(frozenset(), inner.is_prefix(found))
        return Match(frozenset([at + 1] if inner.is_value(found) else []), False)

    def _oracle(self, node: Node, options: Options) -> Oracle:
        """The oracle of a part alone."""
        key = (id(node), options)
        if key not in self._oracles:
            self._oracles[key] = Oracle(Schema(node, self._schema.definitions), options)
        return self._oracles[key]

    def _array(self, node: Array, pos: int) -> Match:
        positions, is_open = self._chain([pos], lambda p: self._literal(p, b"["), self._gap)
        ends: set[int] = set()
        pending: set[Items] = {(position, 0, 0, frozenset()) for position in positions}
        seen: set[Items] = set()
        while pending:
            state = pending.pop()
            seen.add(state)
            found, after, stopped = self._array_step(node, *state)
            ends |= found
            pending |= after - seen
            is_open |= stopped
        return Match(frozenset(ends), is_open)

    def _array_step(
        self, node: Array, pos: int, count: int, kind: int, values: Values
    ) -> tuple[set[int], set[Items], bool]:
        """(ends, next states, whether the text stops here) from before a comma or bracket."""
        ends: set[int] = set()
        after: set[Items] = set()
        is_open = False
        if count >= node.min_items and kind >= self._least_kind(node):
            closed, is_open = self._literal([pos], b"]")
            ends |= set(closed)
        ways = [way for way in self._item_ways(node, count, kind) if self._leads_on(node, *way[1:])]
        ways = [way for way in ways if self._new_values(way[0], values)]
        if ways and count:
            starts, stopped = self._comma_gap([pos])
            is_open |= stopped
        else:
            starts = [pos]
        for item, n, kinds in ways:
            for start in starts:
                match = self._match(item, start)
                is_open |= match.open and self._is_new(item, start, None, values)
                kept = [end for end in match.ends if self._is_new(item, start, end, values)]
                for end in kept:
                    value = frozenset([self._value_at(start, end)] if node.unique else [])
                    behind, stopped = self._gap([end])
                    is_open |= stopped
                    after |= {(place, n, kinds, values | value) for place in behind}
        return ends, after, is_open

    def _item_ways(self, node: Array, count: int, kind: int) -> Iterator[tuple[Node, int, int]]:
        """Ways to write one more item, with the counts behind it."""
        if count == node.max_items:
            return
        item = node.prefix[count] if count < len(node.prefix) else node.item
        more = count + 1 if node.contains or node.unique else min(count + 1, self._enough(node))
        if not node.contains:
            if self._can_end(item):
                yield item, more, 0
            return
        part = self._contained(node)
        if self._can_end(part.item) and (part.maximum is None or kind < part.maximum):
            yield part.item, more, kind + 1
        other = item if part.maximum is None else part.rest
        if self._can_end(other):
            yield other, more, kind

    def _enough(self, node: Array) -> int:
        """More items than this need not be told apart."""
        most = 0 if node.max_items is None else node.max_items
        return max(node.min_items, most, len(node.prefix)) + 1

    def _contained(self, node: Array) -> Contains:
        assert len(node.contains) == 1, "the oracle counts one kind of items only"
        assert not node.prefix, "and only in arrays of one kind"
        return node.contains[0]

    def _least_kind(self, node: Array) -> int:
        return self._contained(node).minimum if node.contains else 0

    def _leads_on(self, node: Array, count: int, kind: int) -> bool:
        """Whether items enough can follow so many, where they are of two kinds."""
        if not node.contains:
            return True
        part = self._contained(node)
        missing = max(part.minimum - kind, 0)
        if missing and not self._can_end(part.item):
            return False
        if node.max_items is not None and count + missing > node.max_items:
            return False
        other = node.item if part.maximum is None else part.rest
        left = node.min_items - count
        return self._can_end(other) or part.maximum is None or part.maximum - kind >= left

    def _value_at(self, start: int, end: int) -> object:
        return comparable(json.loads(self._text[start:end]))

    def _new_values(self, item: Node, values: Values) -> bool:
        return not values or self._is_new(item, len(self._text), None, values)

    def _is_new(self, item: Node, start: int, end: int | None, values: Values) -> bool:
        """Whether a value, or some continuation of what there is of it, is none of `values`."""
        if not values:
            return True
        if end is not None:
            return self._value_at(start, end) not in values
        small = self._oracle(item, self._options)
        beginning = self._text[start:]
        return any(
            small.is_value(beginning + more)
            and comparable(json.loads(beginning + more)) not in values
            for more in self._endings(item)
        )

    def _endings(self, item: Node) -> Iterator[bytes]:
        """Texts that end any value which was begun: the tails of all choices, and some digits."""
        yield b""
        for node in self._alternatives(item, frozenset()):
            assert isinstance(node, Labels | Integer), "the oracle compares labels and integers"
            if isinstance(node, Integer):
                yield from DIGITS
            else:
                yield from (text[at:] for text in node.texts for at in range(len(text)))

    def _comma_gap(self, positions: Iterable[int]) -> Step:
        return self._chain(positions, lambda p: self._literal(p, self._comma), self._gap)

    def _behind_key(self, pos: int, value: Node) -> Step:
        return self._chain(
            [pos],
            lambda p: self._literal(p, self._colon),
            self._gap,
            lambda p: self._value(value, p),
            self._gap,
        )

    def _object(self, node: Object, pos: int) -> Match:
        positions, is_open = self._chain([pos], lambda p: self._literal(p, b"{"), self._gap)
        ends: set[int] = set()
        pending: set[Members] = {(position, 0, 0, frozenset()) for position in positions}
        seen: set[Members] = set()
        while pending:
            state = pending.pop()
            seen.add(state)
            found, after, stopped = self._object_step(node, *state)
            ends |= found
            pending |= after - seen
            is_open |= stopped
        return Match(frozenset(ends), is_open)

    def _object_step(
        self, node: Object, pos: int, done: int, written: int, keys: Values
    ) -> tuple[set[int], set[Members], bool]:
        """(ends, next states, whether the text stops here) from before a comma, key or brace."""
        after: set[Members] = set()
        ends: set[int] = set()
        is_open = False
        settled = not any(map(self._is_required, node.properties[done:]))
        if settled and written >= node.min_properties:
            closed, is_open = self._literal([pos], b"}")
            ends |= set(closed)
        members = list(self._next_members(node, done, settled, written))
        starts, stopped = self._comma_gap([pos]) if written and members else ([pos], False)
        is_open |= stopped
        more = min(written + 1, self._counted(node))
        for key, value, index in members:
            for start in starts:
                found, stopped = key([start])
                is_open |= stopped
                for end in found:
                    name = frozenset([self._value_at(start, end)] if self._differ(node) else [])
                    if not name & keys:
                        places, stopped = self._behind_key(end, value)
                        after |= {(place, index, more, keys | name) for place in places}
                        is_open |= stopped
        return ends, after, is_open

    def _differ(self, node: Object) -> bool:
        """Whether free keys are told apart, because only different ones count."""
        required = sum(map(self._is_required, node.properties))
        return bool(node.extras) and node.min_properties > required + 1

    @staticmethod
    def _counted(node: Object) -> int:
        """More properties than this need not be told apart."""
        most = node.min_properties if node.max_properties is None else node.max_properties
        return max(most, 1)

    def _next_members(
        self, node: Object, done: int, settled: bool, written: int
    ) -> Iterator[tuple[Callable[[Iterable[int]], Step], Node, int]]:
        """Ways to read a key, the value behind it, and how many properties are then dealt with."""
        room = None if node.max_properties is None else node.max_properties - written
        for index in range(done, len(node.properties)):
            prop = node.properties[index]
            if self._can_end(prop.node) and self._leads_to_end(node, index + 1, written + 1, room):
                name = json.dumps(prop.name, ensure_ascii=False).encode()
                yield lambda p, name=name: self._literal(p, name), prop.node, index + 1
            if self._is_required(prop):
                return
        names = {*node.reserved, *(prop.name for prop in node.properties)}
        for extra in node.extras if settled and (room is None or room > 0) else ():
            if self._can_end(extra.value):
                key = extra.key
                yield lambda p, key=key: self._key(p, key, names), extra.value, len(node.properties)

    def _leads_to_end(self, node: Object, done: int, written: int, room: int | None) -> bool:
        """Whether the properties behind the first ones are as many as are still needed."""
        rest = node.properties[done:]
        required = sum(map(self._is_required, rest))
        if room is not None and required + 1 > room:
            return False
        possible = sum(self._can_end(prop.node) for prop in rest)
        possible = possible if room is None else min(possible, room - 1)
        endless = any(self._can_end(extra.value) for extra in node.extras)
        return endless or written + possible >= node.min_properties

    def _is_required(self, prop: Property) -> bool:
        return prop.required or self._options.require_all

    def _key(self, positions: Iterable[int], node: Node, names: set[str]) -> Step:
        """An undeclared key; where it must differ from `names` there is one way to write it."""
        if not names:
            return self._value(node, positions)
        if node == String():
            return self._other_key(positions, names)
        return self._value(self._other(node, names), positions)

    def _other(self, node: Node, names: set[str]) -> Node:
        """A key's node without `names`."""
        key = (id(node), *sorted(names))
        if key not in self._others:
            self._others[key] = self._without(node, names)
        return self._others[key]

    def _without(self, node: Node, names: set[str]) -> Node:
        match node:
            case String():
                return replace(node, excluded=tuple(sorted({*node.excluded, *names})))
            case Labels():
                kept = tuple(text for text in node.texts if json.loads(text) not in names)
                return Labels(kept) if kept else Never("no key is left")
            case _:
                raise AssertionError(node)

    def _other_key(self, positions: Iterable[int], names: set[str]) -> Step:
        """A key that is written as `json.dumps` does and is none of `names`."""
        ends: set[int] = set()
        stopped = False
        for pos in positions:
            match = self._string(String(), pos) if pos < len(self._text) else None
            if match is None:
                stopped = True
            elif match.open:
                stopped |= self._is_canonical_prefix(self._text[pos:])
            for end in match.ends if match else ():
                written = self._text[pos:end]
                key = json.loads(written)
                if key not in names and json.dumps(key, ensure_ascii=False).encode() == written:
                    ends.add(end)
        return ends, stopped

    @staticmethod
    def _is_canonical_prefix(text: bytes) -> bool:
        """Whether an open string is written as `json.dumps` would, its last character included."""
        pos = 1
        while pos < len(text):
            end, _ = character(text, pos)
            if end is None:
                break
            value = json.loads(b'"' + text[pos:end] + b'"')
            if json.dumps(value, ensure_ascii=False).encode()[1:-1] != text[pos:end]:
                return False
            pos = end
        rest = text[pos:]
        if not rest.startswith(b"\\"):
            return True
        escapes = (json.dumps(chr(code), ensure_ascii=False)[1:-1].encode() for code in range(128))
        return any(escape.startswith(rest) for escape in escapes)

    def _finite_definitions(self) -> set[str]:
        finite: set[str] = set()
        for _ in self._schema.definitions:
            for name, node in self._schema.definitions.items():
                if self._can_end(node, finite):
                    finite.add(name)
        return finite

    def _can_end(self, node: Node, finite: set[str] | None = None) -> bool:
        """Whether a value of the node can end, where definitions in `finite` can."""
        if finite is not None:
            return self._has_end(node, finite)
        if id(node) not in self._endable:
            self._endable[id(node)] = self._has_end(node, self._finite)
        return self._endable[id(node)]

    def _has_end(self, node: Node, finite: set[str]) -> bool:
        match node:
            case Never():
                return False
            case Ref():
                return node.name in finite
            case Union():
                return any(self._can_end(option, finite) for option in node.options)
            case Array():
                first = all(self._can_end(n, finite) for n in node.prefix[: node.min_items])
                more = node.min_items > len(node.prefix)
                needed = all(self._can_end(p.item, finite) for p in node.contains if p.minimum)
                return first and needed and (not more or self._can_end(node.item, finite))
            case Embedded():
                return self._can_end(node.node, finite)
            case Object():
                required = filter(self._is_required, node.properties)
                return all(self._can_end(prop.node, finite) for prop in required)
            case _:
                return True
