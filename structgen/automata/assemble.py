"""Schema nodes to frames: which frames a schema needs and what each of them calls."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from structgen.automata.antichains import Antichain, without_the_widest
from structgen.automata.arrays import array_places
from structgen.automata.calls import NO_LIMIT
from structgen.automata.embedded import escaped_frame, escaped_text
from structgen.automata.frames import Frame, FrameBuilder
from structgen.automata.keys import other_key_frame
from structgen.automata.numbers import (
    bounded_number_frame,
    fixed_frame,
    integer_frame,
    number_frame,
)
from structgen.automata.patterns import pattern_frame
from structgen.automata.plain import plain_number_frame
from structgen.automata.raw import raw_frames, sequence_frame, stopped_frame
from structgen.automata.selections import few_frame, many_frame, units
from structgen.automata.strings import canonical_string_frame, string_frame
from structgen.automata.structures import (
    BLANKS,
    Count,
    Different,
    Extra,
    Punctuation,
    Slot,
    Target,
    array_frame,
    blanks_frame,
    object_frame,
    targets_of,
)
from structgen.automata.tagged import FEWEST, Rest, Tagged, tagged_frame, told_apart
from structgen.deadline import check_deadline
from structgen.errors import LimitError
from structgen.options import Options
from structgen.regex import PatternTooLarge
from structgen.schema.distinct import (
    MOST_DISTINCT,
    different_items,
    few_distinct,
    free_keys_differ,
    scoped,
)
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
    Schema,
    Selection,
    String,
    Union,
    Verbatim,
    off_grid,
    union,
)
from structgen.schema.nodes import Extra as Member
from structgen.schema.sites import path_of
from structgen.schema.sizes import Sizes
from structgen.schema.strings import has_string, is_any_text

LABELS = "labels"
"""Key of the one frame that all label sets share; its registers say which labels."""
STRING = "string"
ANY_ARRAY, ANY_MAP = "any array", "any map"
MOST_EMBEDDED = 3
"""JSON in a string in a string: every level doubles the backslashes."""
MOST_NEEDED = 1_000_000
"""The largest lower bound of a counter; longer values could not be generated anyway."""
JSON_CONSTANTS = Labels((b"false", b"null", b"true"))


@dataclass(frozen=True, slots=True)
class Assembly:
    """Frames by key, callees before callers where there is no recursion, and the root's calls."""

    frames: Mapping[object, Frame]
    label_sets: tuple[tuple[bytes, ...], ...]
    """Sorted label texts; a label's number counts through all sets in this order."""
    root: tuple[Target, ...]
    antichains: tuple[Antichain, ...] = ()


def assemble(schema: Schema, options: Options) -> Assembly:
    """All frames that `schema` needs."""
    assembler = _Assembler(schema, options)
    root = assembler.targets(schema.root)
    assembler.build_pending()
    frames = _callees_first(assembler.frames)
    antichains = tuple(assembler.antichains)
    return Assembly(frames, tuple(assembler.label_sets), tuple(root), antichains)


def _callees_first(frames: Mapping[object, Frame]) -> dict[object, Frame]:
    """The frames, each behind those that it calls as far as they do not call it too."""
    found: dict[object, Frame] = {}
    seen: set[object] = set()
    stack: list[tuple[object, bool]] = [(key, False) for key in frames]
    while stack:
        key, called = stack.pop()
        if called:
            found[key] = frames[key]
        elif key not in seen and key in frames:  # labels have their frame later
            seen.add(key)
            stack.append((key, True))
            stack.extend((callee, False) for callee in frames[key].calls.callees)
    return found


class _Assembler:
    def __init__(self, schema: Schema, options: Options, level: int = 0) -> None:
        self._schema = schema
        self._options = options
        self._level = level
        self._definitions = schema.definitions
        self._require_all = options.require_all
        self._punctuation = Punctuation.of(options.layout, options.limits.max_whitespace)
        self.frames: dict[object, Frame] = {}
        if self._punctuation.max_blanks:
            self.frames[BLANKS] = blanks_frame()
        self.label_sets: list[tuple[bytes, ...]] = []
        self.antichains: list[Antichain] = []
        self._n_labels = 0
        self._intervals: dict[int, Target] = {}
        self._anything: dict[bool, list[Target]] = {}
        self._alive: dict[int, Object] = {}
        self._seen: set[object] = set()
        self._known: dict[tuple[int, bool], tuple[Node, list[Target]]] = {}
        """Calls by the identity of a node, which is kept alive, and by `_plain`."""
        self._pending: deque[tuple[object, Array | Object | Tagged | Rest, bool]] = deque()
        self._sizes = Sizes(self._definitions, require_all=options.require_all)
        self._plain = False
        """Whether values are written in one way only, so that equal text is equal value."""

    def targets(self, node: Node) -> list[Target]:
        """The calls, any of which writes a value of `node`."""
        known = self._known.get((id(node), self._plain))
        if known is None:
            try:
                found = list(dict.fromkeys(self._targets(node, frozenset())))
            except LimitError as error:
                raise self._located(error, node) from error
            known = self._known[id(node), self._plain] = node, found
        return known[1]

    def _located(self, error: LimitError, node: Node | Tagged) -> LimitError:
        """The error, beginning with the path at which the node that caused it stands first."""
        if isinstance(node, Tagged) or str(error).startswith("$"):
            return error
        path = path_of(self._schema, node)
        return error if path is None else LimitError(f"{path}: {error}")

    def _targets(self, node: Node, refs: frozenset[str]) -> Iterator[Target]:
        match node:
            case Union() if len(node.options) >= FEWEST and (tagged := self._tagged(node)):
                yield tagged, 0, NO_LIMIT
            case Union():
                for option in node.options:
                    yield from self._targets(option, refs)
            case Ref():
                # A reference that leads back to itself without a byte in between adds nothing.
                if node.name not in refs:
                    yield from self._targets(self._definitions[node.name], refs | {node.name})
            case Never():
                return
            case AnyJson():
                yield from self._any()
            case Labels() | Choice():
                yield self._labels(node.texts)
            case String():
                if self._has_text(node):
                    yield self._string(node)
            case Integer() | Number() | Fixed():
                yield from self._number(node)
            case Array():
                yield self._structure(node), *_item_registers(node)
            case Object():
                node = self._living(node)
                yield self._structure(node), *self._member_registers(node)
            case Embedded():
                yield self._embedded(node), 0, NO_LIMIT
            case Raw():
                yield self._raw(node)
            case Selection():
                yield self._selection(node)
            case Verbatim() | Parts():
                yield self._sequence(node)
            case _:
                assert_never(node)

    def _tagged(self, node: Union) -> object | None:
        """Key of the one frame of objects that their first property tells apart."""
        key = ("tagged", id(node), self._plain)
        if key not in self._seen:
            objects = map(self._target, node.options)
            tagged = told_apart(self._living(o) if isinstance(o, Object) else o for o in objects)
            if tagged is None:
                return None
            self._later(key, tagged)
        return key

    def _target(self, node: Node) -> Node:
        """A node that is no reference, unless references lead in a circle."""
        seen: set[str] = set()
        while isinstance(node, Ref) and node.name not in seen:
            seen.add(node.name)
            node = self._definitions[node.name]
        return node

    def _rest(self, node: Object) -> Target:
        return self._later(("rest", id(node), self._plain), Rest(node)), 0, NO_LIMIT

    def _labels(self, texts: tuple[bytes, ...]) -> Target:
        key = id(texts)
        if key not in self._intervals:
            self._intervals[key] = (LABELS, self._n_labels, self._n_labels + len(texts))
            self.label_sets.append(texts)
            self._n_labels += len(texts)
        return self._intervals[key]

    @staticmethod
    def _has_text(node: String) -> bool:
        """Whether any text agrees with patterns, exclusions and lengths; else nothing writes it."""
        try:
            return has_string(node)
        except PatternTooLarge as error:
            raise LimitError(_too_large(node, error)) from error

    def _string(self, node: String) -> Target:
        if node.patterns or node.excluded:
            try:
                frame, a, room = pattern_frame(node)
            except PatternTooLarge as error:
                raise LimitError(_too_large(node, error)) from error
            self.frames[node] = frame
            return node, a, room
        key = (STRING, "plain") if self._plain else STRING
        self.frames[key] = canonical_string_frame() if self._plain else string_frame()
        return key, *_registers("min_length", node.min_length, node.max_length)

    def _number(self, node: Integer | Number | Fixed) -> Iterator[Target]:
        if isinstance(node, Number) and node.gaps:
            for part in off_grid(node):
                yield from self._number(part)
            return
        frame = _number_frame(node)
        if frame is not None and self._plain and not isinstance(node, Integer):
            frame = plain_number_frame(frame)
        if frame is not None:
            self.frames[node, self._plain] = frame
            yield (node, self._plain), 0, NO_LIMIT

    def _any(self) -> list[Target]:
        if self._plain not in self._anything:
            found = [self._string(_ANY_STRING), *self._number(_ANY_NUMBER)]
            found.append(self._labels(JSON_CONSTANTS.texts))
            for key, node in ((ANY_ARRAY, _ANY_ITEMS), (ANY_MAP, _ANY_OBJECT)):
                found.append((self._later((key, self._plain), node), 0, NO_LIMIT))
            self._anything[self._plain] = found
        return self._anything[self._plain]

    def _raw(self, node: Raw) -> Target:
        """Every occurrence has frames of its own, since a session counts the tokens in each."""
        try:
            frames = raw_frames(node)
        except PatternTooLarge as error:
            raise LimitError(str(error)) from error
        ways: list[tuple[Target, list[bytes]]] = []
        for index, (frame, room, stops) in enumerate(frames):
            key = ("text", id(node), index)
            self.frames[key] = frame
            if not stops:
                return key, 0, room
            ways.append(((key, 0, room), list(map(str.encode, stops))))
        self.frames["stopped", id(node)] = stopped_frame(ways)
        return ("stopped", id(node)), 0, NO_LIMIT

    def _selection(self, node: Selection) -> Target:
        key = ("selection", id(node))
        texts = node.choice.texts
        if len(texts) <= MOST_DISTINCT:
            self.frames[key] = few_frame(node, [self._labels((text,)) for text in texts])
            return key, 0, NO_LIMIT
        self.frames[key] = many_frame(node, self._labels(texts))
        return key, 0, units(node)

    def _sequence(self, node: Parts | Verbatim) -> Target:
        inner = [node] if isinstance(node, Verbatim) else [part.node for part in node.parts]
        key = ("sequence", id(node))
        self.frames[key] = sequence_frame(
            [part.text if isinstance(part, Verbatim) else self.targets(part) for part in inner]
        )
        return key, 0, NO_LIMIT

    def _living(self, node: Object) -> Object:
        """The object without the kinds of free keys that no text is, or that no value may have."""
        if id(node) not in self._alive:
            kept = tuple(
                extra
                for extra in node.extras
                if not self._is_empty(extra.key) and not self._is_empty(extra.value)
            )
            alive = node if len(kept) == len(node.extras) else replace(node, extras=kept)
            self._alive[id(node)] = alive
        return self._alive[id(node)]

    def _is_empty(self, node: Node) -> bool:
        match node:
            case Never():
                return True
            case String():
                return not self._has_text(node)
            case Union():
                return all(map(self._is_empty, node.options))
            case _:
                return False

    def _structure(self, node: Array | Object) -> object:
        """Key of the node's own frame, which is built later.

        Arrays of the same items have one: how many there may be is left to the registers.
        """
        key: object = ("node", id(node))
        if isinstance(node, Array) and not (node.prefix or node.contains or node.unique):
            key = ("items", id(node.item))
        return self._later((key, self._plain), node)

    def _later(self, key: object, node: Array | Object | Tagged | Rest) -> object:
        if key not in self._seen:
            self._seen.add(key)
            self._pending.append((key, node, self._plain))
        return key

    def build_pending(self) -> None:
        """Build the frames that were asked for, and those that they ask for."""
        while self._pending:
            check_deadline()
            key, node, self._plain = self._pending.popleft()
            try:
                self.frames[key] = self._build(node)
            except LimitError as error:
                inner = node.node if isinstance(node, Rest) else node
                raise self._located(error, inner) from error

    def _build(self, node: Array | Object | Tagged | Rest) -> Frame:
        match node:
            case Array():
                return self._array(node)
            case Object():
                return self._object(node)
            case Rest():
                return self._object(node.node, begun=1)
            case Tagged():
                rests = {tag: [*map(self._rest, found)] for tag, found in node.options.items()}
                return tagged_frame(node.name, rests, self._gaps())

    def _array(self, node: Array) -> Frame:
        is_scope = scoped(node)
        if is_scope and node.antichain:
            node = self._antichain(node)
        different = self._different_items(node) if is_scope else None
        plain, self._plain = self._plain, self._plain or is_scope
        places = array_places(node, self.targets, remembered=is_scope)
        self._plain = plain
        return array_frame(places, self._gaps(), different)

    def _antichain(self, node: Array) -> Array:
        """The array with a label set of its own, by which its levels are found."""
        node = without_the_widest(node)
        assert isinstance(node.item, Labels), "checked with the schema"
        texts = (*node.item.texts, b"")[:-1]
        _, first, end = self._labels(texts)
        self.antichains.append(Antichain(first, end, node.separator))
        return replace(node, item=Labels(texts))

    def _gaps(self) -> Punctuation:
        """Punctuation, without optional blanks where there is one way to write a value."""
        return replace(self._punctuation, max_blanks=0) if self._plain else self._punctuation

    def _different(self, part: Node, needed: int) -> Different:
        """Parts of which so many are needed, one after the other."""
        floor = self._sizes.nth_length(part, needed) if needed > 1 else 0
        return Different(min(floor or 0, NO_LIMIT))

    def _different_items(self, node: Array) -> Different:
        """Items of which the least number, or some of a kind, may have to be written."""
        if node.antichain and node.min_items > 1 and isinstance(node.item, Labels):
            return Different(max(map(len, node.item.texts)))  # any of them may be the shortest left
        floors = [
            self._sizes.nth_length(item, n) or 0
            for item, needed in different_items(node)
            for n in {1, max(needed, 1)}
            if node.contains or needed > 1
        ]
        return Different(min(max(floors, default=0), NO_LIMIT))

    def _object(self, node: Object, begun: int = 0) -> Frame:
        slots = [
            Slot(prop.name, self.targets(prop.node), prop.required or self._require_all)
            for prop in node.properties
        ]
        names = frozenset([*node.reserved, *[prop.name for prop in node.properties]])
        if sum(map(len, names)) > self._options.limits.max_states:
            raise LimitError(
                f"the property names of one object take more than Limits.max_states="
                f"{self._options.limits.max_states} states; shorten them, or raise the limit"
            )
        n_required = [slot.required for slot in slots].count(True)
        least = node.min_properties if node.min_properties > n_required else 0
        different = None
        if free_keys_differ(node):
            any_key = union(extra.key for extra in node.extras)
            different = self._different(any_key, least - n_required)
        values = [self.targets(extra.value) for extra in node.extras]
        plain, self._plain = self._plain, self._plain or different is not None
        keys = [self._keys(extra.key, names) for extra in node.extras]
        self._plain = plain
        extras = [Extra(*pair) for pair in zip(keys, values, strict=True)]
        most = node.max_properties
        if most is not None and not extras and most >= len(slots):
            most = None
        count = Count(least, most, different, self._counts_free_keys(node))
        return object_frame(slots, extras, count, self._gaps(), begun=begun)

    def _counts_free_keys(self, node: Object) -> bool:
        """Whether only the number of undeclared properties is open, which the registers count."""
        needed, most = len(node.properties), node.max_properties
        if not node.extras or not (self._require_all or all(p.required for p in node.properties)):
            return False
        counted = node.min_properties > needed or most is not None
        return counted and (most is None or most >= needed)

    def _member_registers(self, node: Object) -> tuple[int, int]:
        if not self._counts_free_keys(node):
            return 0, NO_LIMIT
        needed, most = len(node.properties), node.max_properties
        low = max(node.min_properties - needed, 0)
        return _registers("min_properties", low, None if most is None else most - needed)

    def _keys(self, node: Node, names: frozenset[str]) -> list[Target]:
        """Ways to write an undeclared key, which is none of `names`."""
        if isinstance(node, Union):
            return targets_of([self._keys(option, names) for option in node.options])
        if isinstance(node, Labels):
            left = [text for text in node.texts if json.loads(text) not in names]
            return [self._labels(tuple(left))] if left else []
        assert isinstance(node, String), "keys are strings"
        is_open = node.max_length is None and not node.excluded
        if is_open and not names and not node.patterns:
            return [self._string(node)]
        # With names every key is written canonically, and so is whatever has a pattern.
        if is_open and names and is_any_text(node.patterns):
            key = ("other key", names)
            if key not in self.frames:
                self.frames[key] = other_key_frame(names)
            return [(key, node.min_length, NO_LIMIT)]
        key_node = replace(node, excluded=tuple(sorted({*node.excluded, *names})))
        return [self._string(key_node)] if self._has_text(key_node) else []

    def _embedded(self, node: Embedded) -> object:
        """Key of a string's frame that holds the node's JSON, escaped."""
        key = ("embedded", id(node), self._plain)
        if key in self._seen:
            return key
        self._seen.add(key)
        if self._level == MOST_EMBEDDED:
            raise LimitError(
                f"JSON is written in strings more than {MOST_EMBEDDED} levels deep; "
                "nest the values themselves"
            )
        options = replace(self._options, layout="compact")
        inner = _Assembler(self._schema, options, self._level + 1)
        inner._plain = self._plain
        targets = inner.targets(node.node)
        inner.build_pending()
        offset = self._n_labels
        for texts in inner.label_sets:
            self.label_sets.append(tuple(sorted(map(escaped_text, texts))))
            self._n_labels += len(texts)

        def moved(callee: object, a: int, b: int) -> Target:
            if callee == LABELS:
                return LABELS, a + offset, b + offset
            return (key, callee), a, b

        for name, frame in inner.frames.items():
            self.frames[(key, name)] = escaped_frame(frame, moved)
        b = FrameBuilder("embedded")
        b.literal(b'"')
        b.call([moved(*target) for target in targets])
        b.literal(b'"')
        b.state(accept=True)
        self.frames[key] = b.frame()
        return key


_ANY_STRING, _ANY_NUMBER = String(), Number()
_ANY_ITEMS = Array(AnyJson())
_ANY_OBJECT = Object(extras=(Member(String(), AnyJson()),))


def _item_registers(node: Array) -> tuple[int, int]:
    """Items behind the prefix; contents and repeats have places of their own instead."""
    if node.contains or few_distinct(node):
        return 0, NO_LIMIT
    behind = len(node.prefix)
    most = None if node.max_items is None else max(node.max_items - behind, 0)
    return _registers("min_items", max(node.min_items - behind, 0), most)


def _too_large(node: String, error: PatternTooLarge) -> str:
    shown = " and ".join(repr(pattern.source[:60]) for pattern in node.patterns[:3])
    what = f"a string with the pattern {shown}" if shown else "a string with excluded texts"
    return f"{what} is too large: {error}; simplify it, or drop its lengths"


def _registers(name: str, low: int, high: int | None) -> tuple[int, int]:
    """First registers of a counting frame."""
    if low > MOST_NEEDED:
        raise LimitError(
            f"{name}={low} is more than the {MOST_NEEDED} that can be demanded; lower it"
        )
    return low, NO_LIMIT if high is None else min(high, NO_LIMIT)


def _number_frame(node: Integer | Number | Fixed) -> Frame | None:
    if isinstance(node, Fixed):
        return fixed_frame(node.low, node.high, node.places, node.step, node.gaps)
    if isinstance(node, Integer):
        return integer_frame(node.minimum, node.maximum)
    if node.minimum is None and node.maximum is None:
        return number_frame()
    return bounded_number_frame(
        node.minimum, node.maximum, node.exclusive_minimum, node.exclusive_maximum
    )
