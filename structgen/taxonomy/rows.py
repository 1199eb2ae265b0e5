"""The sources of a taxonomy become rows: lists, paths, nested dicts, enums and literals."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args, get_origin

from structgen.errors import Fault, OptionError
from structgen.schema.choices import bare_type

MOST_LEVELS = 64
"""Of a nested dict; one that holds itself would have no end."""


def in_list(index: int) -> str:
    """Where the item of a list stands."""
    return f"[{index}]"


@dataclass(frozen=True, slots=True)
class Rows:
    """Labels in declared order, with what else is known about each."""

    labels: list[str]
    codes: list[str] | None = None
    """Of each label, empty where it has none."""
    descriptions: list[str] | None = None
    place: Callable[[int], str] = in_list
    """What faults call a row, by its index."""
    faults: list[Fault] = field(default_factory=list[Fault])
    """What could not be read at all."""


def read_rows(source: object, separator: str | None, *, inner: bool) -> Rows:
    """The rows of a source that is no file.

    Raises:
        OptionError: it is nothing that a taxonomy can be made of.
    """
    if isinstance(source, Mapping):
        return _tree(cast("Mapping[object, object]", source), separator, inner=inner)
    plain: Any = bare_type(source)
    if get_origin(plain) is Literal:
        rows = _items(get_args(plain), separator)
    elif isinstance(plain, enum.EnumMeta):
        rows = _items([cast("enum.Enum", member).value for member in plain], separator)
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        rows = _items(cast("Iterable[object]", source), separator)
    else:
        raise OptionError(
            "a taxonomy is made of a list of labels or paths, a nested dict, an Enum or a Literal, "
            f"got {source!r:.200}; for a file use Taxonomy.from_file(path)"
        )
    return with_levels(rows, separator) if inner else rows


def _items(items: Iterable[object], separator: str | None) -> Rows:
    found = list(items)
    if set(map(type, found)) <= {str}:
        return Rows(cast("list[str]", found))
    labels: list[str] = []
    places: list[int] = []
    faults: list[Fault] = []
    for index, item in enumerate(found):
        try:
            labels.append(_label(item, separator))
            places.append(index)
        except ValueError as error:
            faults.append(Fault(in_list(index), str(error)))
    return Rows(labels, place=lambda row: in_list(places[row]), faults=faults)


def _label(item: object, separator: str | None) -> str:
    """The text of a label or path; ValueError where it is neither."""
    if isinstance(item, enum.Enum):
        item = item.value
    if isinstance(item, str):
        return str.__str__(item)
    if not isinstance(item, tuple | list):
        raise ValueError(f"{item!r:.200} is no text and no path")
    path = tuple(cast("Iterable[object]", item))
    if separator is None:
        raise ValueError(f"{path!r:.200} is a path, and separator=None leaves no way to write it")
    return separator.join(_level(level, separator) for level in path)


def _level(level: object, separator: str | None) -> str:
    if not isinstance(level, str):
        raise ValueError(f"the level {level!r:.200} is no text")
    if separator and separator in level:
        raise ValueError(f"the level {level!r:.200} holds the separator {separator!r}")
    if not level or level != level.strip():
        raise ValueError(f"the level {level!r:.200} is blank, or has white space at its ends")
    return str.__str__(level)


class _Tree:
    """Reads a nested dict."""

    def __init__(self, separator: str | None, *, inner: bool) -> None:
        self._separator = separator
        self._inner = inner
        self.labels: list[str] = []
        self.descriptions: list[str] = []
        self.faults: list[Fault] = []

    def read(self, node: object, path: tuple[str, ...]) -> None:
        for key, below in self._members(node, path):
            try:
                level = _level(key, self._separator)
            except ValueError as error:
                self.faults.append(Fault(_place(path), str(error)))
                continue
            if path and self._separator is None:
                problem = f"the level {level!r:.200} stands below another"
                self.faults.append(Fault(_place(path), problem, "give a separator"))
                continue
            is_leaf = not below or isinstance(below, str)
            if is_leaf or self._inner:
                self.labels.append((self._separator or "").join((*path, level)))
                self.descriptions.append(below if isinstance(below, str) else "")
            if not is_leaf:
                self.read(below, (*path, level))

    def _members(self, node: object, path: tuple[str, ...]) -> Iterator[tuple[object, object]]:
        if len(path) >= MOST_LEVELS:
            self.faults.append(Fault(_place(path[:3]), f"more than {MOST_LEVELS} levels"))
        elif isinstance(node, Mapping):
            yield from cast("Mapping[object, object]", node).items()
        elif isinstance(node, Iterable) and not isinstance(node, bytes):
            yield from ((item, None) for item in cast("Iterable[object]", node))
        else:
            problem = f"{node!r:.200} is no level"
            advice = "below a level stands a dict, a list, a description, or None"
            self.faults.append(Fault(_place(path), problem, advice))


def _place(path: tuple[str, ...]) -> str:
    return "".join(f"[{level!r}]" for level in path) or "$"


def _tree(source: Mapping[object, object], separator: str | None, *, inner: bool) -> Rows:
    tree = _Tree(separator, inner=inner)
    tree.read(source, ())
    labels = tree.labels
    return Rows(
        labels,
        None,
        tree.descriptions if any(tree.descriptions) else None,
        lambda row: f"[{labels[row]!r}]",
        tree.faults,
    )


def with_levels(rows: Rows, separator: str | None) -> Rows:
    """The rows, and before the first of each level that is no label a row for it."""
    if not separator or separator not in "\n".join(rows.labels):
        return rows
    known = set(rows.labels)
    labels: list[str] = []
    origins: list[int] = []
    for index, label in enumerate(rows.labels):
        at = label.find(separator)
        while at >= 0:
            level = label[:at]
            if level not in known:
                known.add(level)
                labels.append(level)
                origins.append(-1)
            at = label.find(separator, at + len(separator))
        labels.append(label)
        origins.append(index)

    def spread(texts: list[str] | None) -> list[str] | None:
        return texts and ["" if index < 0 else texts[index] for index in origins]

    def place(row: int) -> str:
        return rows.place(origins[row]) if origins[row] >= 0 else f"[{labels[row]!r}]"

    return replace(
        rows,
        labels=labels,
        codes=spread(rows.codes),
        descriptions=spread(rows.descriptions),
        place=place,
    )
