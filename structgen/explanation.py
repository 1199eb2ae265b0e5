"""`explain`: field by field, what decoding enforces and what only validation can check."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from structgen.errors import Fault
from structgen.schema.core_numbers import INTEGER_DIGITS
from structgen.schema.describe import describe
from structgen.schema.grid import FRACTION_DIGITS, WHOLE_DIGITS
from structgen.schema.load import LoadedSchema, load_schema
from structgen.schema.nodes import (
    EXACT_DIGITS,
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
)
from structgen.schema.sites import Site, options, resolve, sites

MOST_NAMES = 4
"""Fields by which one object of several is told apart."""
WIDEST = 48
"""Columns of one cell of the table."""


@dataclass(frozen=True, slots=True)
class FieldExplanation:
    """One path of a schema."""

    path: str
    """JSON path, `$` is the value itself."""
    enforced: str
    """What every generated value fulfils, in words."""
    checked_after: str
    """What only validation of the finished value checks; empty if nothing."""
    canonical: tuple[str, ...]
    """Of several texts with the same meaning, which ones are written."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "enforced": self.enforced,
            "checked_after": self.checked_after,
            "canonical": list(self.canonical),
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is enforced, path by path; `str()` of it is a table."""

    title: str
    fields: tuple[FieldExplanation, ...]
    """Outer before inner, in declared order."""
    ignored: tuple[Fault, ...] = ()
    """What a JSON Schema says that nothing checks; the paths are those of the schema."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {
            "title": self.title,
            "fields": [row.to_dict() for row in self.fields],
            "ignored": [{"path": part.path, "problem": part.problem} for part in self.ignored],
        }

    def __str__(self) -> str:
        head = ("path", "enforced while decoding", "checked afterwards", "written as")
        rows = [(f.path, f.enforced, f.checked_after, "; ".join(f.canonical)) for f in self.fields]
        used = [n for n in range(len(head)) if any(row[n] for row in rows)]
        table = _table([tuple(row[n] for n in used) for row in (head, *rows)])
        return "\n".join([table, *map(str, self.ignored)])


def explain(schema: Any) -> Explanation:
    """What a schema enforces, in words, without a model or a vocabulary.

    Example: `print(explain(Triage))`

    Raises:
        SchemaError: the schema cannot be compiled; all faults at once.
    """
    loaded = load_schema(schema)
    rows = tuple(_rows(loaded))
    return Explanation(loaded.schema.title, rows, loaded.ignored)


def _rows(loaded: LoadedSchema) -> Iterator[FieldExplanation]:
    """One row a path; the options of a union share it."""
    visited = list(sites(loaded.schema))
    writer = _Words(loaded.schema, visited)
    found: dict[str, list[Site]] = {}
    for site in visited:
        if site.union is None and not writer.is_told(site):
            found.setdefault(site.path, []).append(site)
    checks: dict[str, dict[str, None]] = {}
    for check in loaded.checks:
        checks.setdefault(check.path, {})[check.what] = None
    for path, at in found.items():
        yield _row(writer, path, at, "; ".join(checks.pop(path, ())))
    for path, rest in checks.items():
        yield FieldExplanation(path, "", "; ".join(rest), ())


def _row(writer: _Words, path: str, at: list[Site], checked_after: str) -> FieldExplanation:
    nodes = [node for site in at for node in writer.options(site)]
    canonical = dict.fromkeys(choice for node in nodes for choice in written_as(node))
    return FieldExplanation(path, _enforced(writer, at), checked_after, tuple(canonical))


def _enforced(writer: _Words, at: list[Site]) -> str:
    """The words for all sites of a path, and whether there may be nothing."""
    optional = [_is_optional(site) for site in at]
    mixed = any(optional) and not all(optional)
    words = dict.fromkeys(
        f"{words} (may be left out)" if mixed and is_optional else words
        for site, is_optional in zip(at, optional, strict=True)
        for words in writer.of(site)
    )
    return " or ".join(words) + "; may be left out" * all(optional)


def _is_optional(site: Site) -> bool:
    field = site.field
    return field is not None and not field.required and site.path.endswith(f".{field.name}")


class _Words:
    """What is enforced at a site, in words."""

    def __init__(self, schema: Schema, visited: list[Site]) -> None:
        self._schema = schema
        self._same = {(site.path, id(site.node)): site.same_as for site in visited if site.same_as}
        self._embedded = {
            (site.path, id(resolve(schema, site.node.node)))
            for site in visited
            if isinstance(site.node, Embedded)
        }

    def is_told(self, site: Site) -> bool:
        """Whether the row of another site says it: the JSON in a string, items that cannot be."""
        return isinstance(site.node, Never) or (site.path, id(site.node)) in self._embedded

    def options(self, site: Site) -> tuple[Node, ...]:
        """What may stand at a site, as far as no other row explains it."""
        if site.same_as:
            return ()
        nodes = options(self._schema, site.node)
        return tuple(node for node in nodes if (site.path, id(node)) not in self._same)

    def of(self, site: Site) -> Iterator[str]:
        """The words for each option."""
        if site.same_as:
            yield f"the same as {site.same_as}"
            return
        nodes = options(self._schema, site.node)
        several = sum(isinstance(node, Object) for node in nodes) > 1
        for node in nodes:
            same = self._same.get((site.path, id(node)))
            yield f"the same as {same}" if same else self._node(node, by_name=several)

    def _node(self, node: Node, *, by_name: bool = False) -> str:
        match node:
            case Object():
                return _object(node, by_name)
            case Array():
                return _array(node)
            case Parts():
                return _sequence(node)
            case Embedded():
                inner = options(self._schema, node.node)
                return f"string of JSON: {' or '.join(map(self._node, inner))}"
            case _:
                return describe(Schema(node, self._schema.definitions))


def _object(node: Object, by_name: bool) -> str:
    """In words; where there are several, they are told apart by the names of their fields."""
    notes: list[str] = []
    if node.properties:
        notes.append("undeclared keys may follow" if node.extras else "no other keys")
    if node.min_properties:
        notes.append(f"at least {_count(node.min_properties, 'key')}")
    if node.max_properties is not None:
        notes.append(f"at most {_count(node.max_properties, 'key')}")
    names = [prop.name for prop in node.properties]
    if by_name and names:
        more = [f"{len(names) - MOST_NAMES} more"] * (len(names) > MOST_NAMES)
        kind = f"object of {', '.join([*names[:MOST_NAMES], *more])}"
    else:
        kind = f"object of {_count(len(names), 'field')}" if names else "object"
    return f"{kind} ({', '.join(notes)})" if notes else kind


def _sequence(node: Parts) -> str:
    """Constant texts as they are, the paths of the other parts in between."""
    parts = (
        json.dumps(part.node.text.decode(), ensure_ascii=False)
        if isinstance(part.node, Verbatim)
        else f"${part.step}"
        for part in node.parts
    )
    return f"sequence of {', '.join(parts)}"


def _array(node: Array) -> str:
    notes: list[str] = []
    if node.min_items and node.min_items == node.max_items:
        notes.append(f"exactly {_count(node.min_items, 'item')}")
    else:
        notes += [f"at least {_count(node.min_items, 'item')}"] * bool(node.min_items)
        if isinstance(node.item, Never):
            notes.append(f"at most {_count(len(node.prefix), 'item')}")
        elif node.max_items is not None:
            notes.append(f"at most {_count(node.max_items, 'item')}")
    notes += ["no repeats"] * node.unique + ["none below another"] * node.antichain
    notes += [_contains(part.minimum, part.maximum) for part in node.contains]
    return f"array ({', '.join(notes)})" if notes else "array"


def _contains(minimum: int, maximum: int | None) -> str:
    most = "" if maximum is None else f" and at most {maximum}"
    return f"at least {minimum}{most} of a kind"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def written_as(node: Node) -> tuple[str, ...]:
    """The canonical choices of one node: which of several equal texts are written."""
    match node:
        case Labels():
            is_text = any(text.startswith(b'"') for text in node.texts)
            return ("one spelling, as json.dumps",) * is_text
        case String():
            return _text(node)
        case Integer() | Number() | Fixed():
            return _numeral(node)
        case Array():
            return ("no item twice",) * node.unique
        case Object():
            return _order(node)
        case Embedded():
            return ("compact JSON inside the string",)
        case Choice() | Raw():
            return ("plain text, not JSON",)
        case Selection():
            return ("plain text, not JSON", "no choice twice")
        case Union() | AnyJson() | Ref() | Never() | Verbatim() | Parts():
            return ()
        case _:
            assert_never(node)


_SPELLINGS = {
    "date": "YYYY-MM-DD",
    "date-time": "ISO 8601 with seconds",
    "time": "ISO 8601 with seconds",
    "duration": "ISO 8601",
    "uuid": "with hyphens",
    "base64": "padded",
    "hex": "lower case",
    "regex": "no look-around, references or counted repeats",
    "size": "a number and a unit, such as 1.5 GiB",
}
"""By the first word of the name: what is written where there are several spellings."""


def _text(node: String) -> tuple[str, ...]:
    if not (node.patterns or node.excluded):
        return ("raw UTF-8 or any JSON escape",)
    spelling = _SPELLINGS.get(node.name.partition(" ")[0])
    return (spelling or "json.dumps' escapes only",)


def _numeral(node: Integer | Number | Fixed) -> tuple[str, ...]:
    if isinstance(node, Fixed):
        return ("no exponent", *([f"at most {_count(node.places, 'decimal')}"] * bool(node.places)))
    is_open = node.minimum is None or node.maximum is None
    if isinstance(node, Integer):
        return (*([f"at most {INTEGER_DIGITS} digits"] * is_open), "no fraction or exponent")
    if node.gaps:
        return ("no exponent", f"at most {EXACT_DIGITS} digits")
    if node.minimum is None and node.maximum is None:
        return (f"at most {WHOLE_DIGITS} digits before and {FRACTION_DIGITS} after the point",)
    return ("no exponent", f"at most {FRACTION_DIGITS} decimals")


def _order(node: Object) -> tuple[str, ...]:
    names = [prop.name for prop in node.properties]
    others = [name for name in node.reserved if name not in names]
    aliases = (f"not by the names {', '.join(others)}",) if others else ()
    if node.properties and node.extras:
        return ("declared order, then undeclared keys", *aliases)
    return (*(["declared order"] * (len(names) > 1)), *aliases)


def _table(rows: list[tuple[str, ...]]) -> str:
    """Columns as wide as they need, cells of more than WIDEST columns on several lines."""
    cells = [[textwrap.wrap(cell, WIDEST) or [""] for cell in row] for row in rows]
    widths = [max(len(line) for row in cells for line in row[n]) for n in range(len(rows[0]))]
    head, *body = [_lines(row, widths) for row in cells]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([*head, rule, *(line for lines in body for line in lines)])


def _lines(row: list[list[str]], widths: list[int]) -> Iterator[str]:
    for n in range(max(map(len, row))):
        parts = [cell[n] if n < len(cell) else "" for cell in row]
        padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
        yield "  ".join(padded).rstrip()
