"""Schema nodes to frames: which frames a schema needs and what each of them calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from structgen.automata.frames import NO_LIMIT, Frame
from structgen.automata.keys import other_key_frame
from structgen.automata.numbers import bounded_number_frame, integer_frame, number_frame
from structgen.automata.strings import string_frame
from structgen.automata.structures import (
    BLANKS,
    Extra,
    Punctuation,
    Slot,
    Target,
    array_frame,
    blanks_frame,
    map_frame,
    object_frame,
    targets_of,
)
from structgen.errors import LimitError
from structgen.options import Options
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Integer,
    Labels,
    Map,
    Never,
    Node,
    Number,
    Object,
    Ref,
    Schema,
    String,
    Union,
)

LABELS = "labels"
"""Key of the one frame that all label sets share; its registers say which labels."""
STRING = "string"
ANY_ARRAY, ANY_MAP = "any array", "any map"
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


def assemble(schema: Schema, options: Options) -> Assembly:
    """All frames that `schema` needs."""
    assembler = _Assembler(schema, options)
    root = assembler.targets(schema.root)
    assembler.build_pending()
    # Callers were found before their callees.
    frames = dict(reversed(assembler.frames.items()))
    return Assembly(frames, tuple(assembler.label_sets), tuple(root))


class _Assembler:
    def __init__(self, schema: Schema, options: Options) -> None:
        self._definitions = schema.definitions
        self._require_all = options.require_all
        self._punctuation = Punctuation.of(options.layout, options.limits.max_whitespace)
        self.frames: dict[object, Frame] = {}
        if self._punctuation.max_blanks:
            self.frames[BLANKS] = blanks_frame()
        self.label_sets: list[tuple[bytes, ...]] = []
        self._n_labels = 0
        self._intervals: dict[int, Target] = {}
        self._seen: set[object] = set()
        self._pending: deque[tuple[object, Array | Map | Object]] = deque()

    def targets(self, node: Node) -> list[Target]:
        """The calls, any of which writes a value of `node`."""
        return targets_of([[target] for target in self._targets(node, frozenset())])

    def _targets(self, node: Node, refs: frozenset[str]) -> Iterator[Target]:
        match node:
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
            case Labels():
                yield self._labels(node)
            case String():
                yield self._string(node)
            case Integer() | Number():
                yield from self._number(node)
            case Array():
                need, room = _registers("min_items", node.min_items, node.max_items)
                yield self._structure(node), need, room
            case Map() | Object():
                yield self._structure(node), 0, NO_LIMIT
            case _:
                assert_never(node)

    def _labels(self, node: Labels) -> Target:
        key = id(node.texts)
        if key not in self._intervals:
            self._intervals[key] = (LABELS, self._n_labels, self._n_labels + len(node.texts))
            self.label_sets.append(node.texts)
            self._n_labels += len(node.texts)
        return self._intervals[key]

    def _string(self, node: String) -> Target:
        self.frames[STRING] = string_frame()
        return STRING, *_registers("min_length", node.min_length, node.max_length)

    def _number(self, node: Integer | Number) -> Iterator[Target]:
        frame = _number_frame(node)
        if frame is not None:
            self.frames[node] = frame
            yield node, 0, NO_LIMIT

    def _any(self) -> Iterator[Target]:
        yield self._string(String())
        yield from self._number(Number())
        yield self._labels(JSON_CONSTANTS)
        if ANY_ARRAY not in self._seen:
            self._seen |= {ANY_ARRAY, ANY_MAP}
            self._pending.append((ANY_ARRAY, Array(AnyJson())))
            self._pending.append((ANY_MAP, Map(String(), AnyJson())))
        yield ANY_ARRAY, 0, NO_LIMIT
        yield ANY_MAP, 0, NO_LIMIT

    def _structure(self, node: Array | Map | Object) -> object:
        """Key of the node's own frame, which is built later."""
        key = ("node", id(node))
        if key not in self._seen:
            self._seen.add(key)
            self._pending.append((key, node))
        return key

    def build_pending(self) -> None:
        """Build the frames that were asked for, and those that they ask for."""
        while self._pending:
            key, node = self._pending.popleft()
            self.frames[key] = self._build(node)

    def _build(self, node: Array | Map | Object) -> Frame:
        match node:
            case Array():
                return array_frame(self.targets(node.item), self._punctuation)
            case Map():
                return map_frame(
                    self._string(node.key), self.targets(node.value), self._punctuation
                )
            case Object():
                return self._object(node)

    def _object(self, node: Object) -> Frame:
        slots = [
            Slot(prop.name, self.targets(prop.node), prop.required or self._require_all)
            for prop in node.properties
        ]
        extra = None
        if node.extra is not None:
            names = frozenset((*node.reserved, *(prop.name for prop in node.properties)))
            key = ("other key", names)
            self.frames[key] = other_key_frame(names)
            extra = Extra((key, 0, NO_LIMIT), self.targets(node.extra))
        return object_frame(slots, extra, self._punctuation)


def _registers(name: str, low: int, high: int | None) -> tuple[int, int]:
    """First registers of a counting frame."""
    if low > MOST_NEEDED:
        raise LimitError(f"{name}={low} is more than the {MOST_NEEDED} that can be demanded")
    return low, NO_LIMIT if high is None else min(high, NO_LIMIT)


def _number_frame(node: Integer | Number) -> Frame | None:
    if isinstance(node, Integer):
        return integer_frame(node.minimum, node.maximum)
    if node.minimum is None and node.maximum is None:
        return number_frame()
    return bounded_number_frame(
        node.minimum, node.maximum, node.exclusive_minimum, node.exclusive_maximum
    )
