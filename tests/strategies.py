"""Hypothesis strategies: schemas as nodes and as Pydantic models, values for them, vocabularies."""

# ruff: noqa: UP007, UP045  # users write types in the older spellings too

from __future__ import annotations

import enum
import json
import math
import os
import random
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal, Optional, Union

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model

from structgen.options import Options
from structgen.schema import nodes
from structgen.schema.nodes import (
    AnyJson,
    Extra,
    Node,
    Object,
    Pattern,
    Property,
    Ref,
    Schema,
    String,
)
from structgen.tokens.vocabulary import Vocabulary
from tests.oracle import number_fits
from tests.oracle_texts import Texts

SOAK = int(os.environ.get("STRUCTGEN_SOAK", "1"))
"""How many times more examples than usual are tried."""

TEXTS = ("a", "b", "ab", "abc", "", " ", '"', "\\", "\n", "é", "\U0001f600", "a b", '", "', "/")
NAMES = ("a", "ab", "abc", "b", "x y", "é", 'q"', "", "\n", "\\", "id", "key")
NUMBERS = (0, 1, -1, 2, 9, 10, 99, 100, -10, 123)

STRADDLING = (
    b'", "', b'"}', b']]', b'"}}', b'}, {', b'": ', b'": "', b'":', b'","', b', "', b'[[', b'{"',
    b'{"a": ', b'"a"', b'1, ', b'0.', b'null', b'true}', b'e', b'12', b'10', b'ab', b'abc', b'"]',
    b'\\u', b'\\ud83d', b'\\"', b'\\u00', b'\xc3', b'\xc3\xa9', b'\xf0\x9f', b'\x98\x80', b'\xa9"',
    b' "', b'[]', b'{}', b'-1', b'\xed\xa0', b'aaaa', b'aaaaaaaa', b'a"', b'a", "b": ',
    b'  ', b'\n  ', b'] }', b'""', b'":1,"',
)  # fmt: skip
"""Tokens that cross the borders of strings, keys, brackets and characters."""


def examples(count: int) -> settings:
    """Settings of a property test that tries `count` examples, or more in a soak run."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=count * SOAK, deadline=None, suppress_health_check=slow)


@cache
def scalars() -> st.SearchStrategy[Node]:
    return st.one_of(labels(), strings(), patterns(), integers(), numbers(), fixed())


@cache
def labels() -> st.SearchStrategy[Node]:
    values = st.one_of(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.booleans(), st.none())
    return st.lists(values, min_size=1, max_size=5).map(
        lambda chosen: nodes.labels(map(nodes.json_text, chosen))
    )


@cache
def strings() -> st.SearchStrategy[String]:
    return st.one_of(
        st.just(String()),
        st.tuples(st.integers(0, 4), st.integers(0, 5)).map(lambda t: String(t[0], t[0] + t[1])),
        st.integers(1, 4).map(String),
    )


SOURCES = (
    "^a", "b$", "a.?b", "^(?:a|bc)*$", "^[^a]*$", "é+", "^[a-cé]{1,3}$", '^"?$', "^$", "a{2}",
    "(a|b|ab)(c|bcd)?", "\\\\", "^.", "[\x00-\x1f]", "[\U0001f600-\U0010ffff]", "^(a?b?){2}$",
)  # fmt: skip


@cache
def patterns() -> st.SearchStrategy[Node]:
    """Strings with one or two patterns, some of them negated, lengths and excluded texts."""
    pattern = st.builds(Pattern, st.sampled_from(SOURCES), st.just("rust"), st.booleans())
    few = st.lists(st.sampled_from(TEXTS), max_size=2, unique=True).map(sorted).map(tuple)
    drawn = st.builds(
        String,
        st.integers(0, 2),
        st.none() | st.integers(2, 5),
        st.lists(pattern, max_size=2, unique=True).map(tuple),
        few,
    )
    return drawn.map(lambda node: node if Texts(node).sample(random.Random(0)) else String())


@cache
def fixed() -> st.SearchStrategy[Node]:
    """Numbers on a grid."""

    def made(drawn: tuple[int, int, int, int]) -> Node:
        low, size, places, step = drawn
        node = nodes.fixed(low, low + size, places, step)
        return nodes.integer(low, low) if isinstance(node, nodes.Never) else node

    bounds = st.integers(-300, 300) | st.sampled_from([0, 1, -1, 99, -100])
    sizes = st.integers(0, 400) | st.just(10**6)
    return st.tuples(bounds, sizes, st.integers(0, 3), st.sampled_from([1, 2, 5, 7, 10, 25])).map(
        made
    )


@cache
def integers() -> st.SearchStrategy[Node]:
    bound = st.one_of(st.none(), st.sampled_from(NUMBERS), st.integers(-2000, 2000))
    return st.tuples(bound, bound).map(lambda pair: nodes.integer(*_ordered(*pair)))


@cache
def numbers() -> st.SearchStrategy[Node]:
    finite = st.floats(-50, 50, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-9)
    bound = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 0.5, -1.5, 10.0]), finite)
    return st.tuples(bound, bound, st.booleans(), st.booleans()).map(_number)


def _number(drawn: tuple[float | None, float | None, bool, bool]) -> Node:
    low, high = _ordered(drawn[0], drawn[1])
    if low is not None and high is not None and high - low < 1e-6:
        high = low + 1.0
    return nodes.number(low, high, drawn[2], drawn[3])


def _ordered(low: Any, high: Any) -> tuple[Any, Any]:
    return (high, low) if low is not None and high is not None and low > high else (low, high)


@st.composite
def _object(draw: st.DrawFn, inner: st.SearchStrategy[Node]) -> Object:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    properties = tuple(Property(name, draw(inner), draw(st.booleans())) for name in names)
    extra = draw(st.one_of(st.none(), st.none(), inner))
    extras = () if extra is None else (Extra(draw(keys()), extra),)
    required = sum(prop.required for prop in properties)
    least = draw(st.sampled_from([0, 0, 1, 2]))
    # Counts that can be kept with all properties too, of keys that need not be told apart.
    least = min(required + least, len(properties) if extra is None else required + 1)
    more = draw(st.sampled_from([None, None, 0, 1]))
    most = None if more is None else max(len(properties), least) + more
    return Object(properties, extras, min_properties=least, max_properties=most)


@st.composite
def counted_objects(draw: st.DrawFn) -> Schema:
    """Objects that cannot have all of their properties."""
    node = draw(_object(scalars()))
    required = sum(prop.required for prop in node.properties)
    most = max(required, node.min_properties) + draw(st.integers(0, 2))
    return Schema(replace(node, max_properties=most), {})


@cache
def keys() -> st.SearchStrategy[Node]:
    return st.sampled_from(
        [String(), String(), String(1, 2), String(patterns=(Pattern("^[a-c]"),)),
         nodes.labels([b'"a"', b'"key"', b'"z"'])]
    )  # fmt: skip


def _arrays(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    more = st.one_of(st.none(), st.integers(0, 3))
    plain = st.tuples(inner, st.integers(0, 3), more).map(
        lambda t: nodes.array(t[0], t[1], None if t[2] is None else t[1] + t[2])
    )
    prefixed = st.tuples(
        inner, st.integers(0, 3), more, st.lists(inner, min_size=1, max_size=2)
    ).map(lambda t: nodes.array(t[0], t[1], None if t[2] is None else t[1] + t[2], t[3]))
    return st.one_of(plain, prefixed, containing(), distinct())


@cache
def containing() -> st.SearchStrategy[Node]:
    """Arrays in which items of one kind are counted; the others are no strings."""

    def made(drawn: tuple[Node, Node, int, int | None, int, int | None]) -> Node:
        kind, rest, least, more, low, size = drawn
        most = None if more is None else least + more
        item = nodes.union((kind, rest))
        part = nodes.Contains(kind, rest, least, most)
        low = min(low, least) if most is not None else low
        high = None if size is None else max(low, least) + size
        return nodes.array(item, low, high, (), (part,))

    few = st.integers(0, 2)
    texts = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3).map(
        lambda chosen: nodes.labels(map(nodes.json_text, chosen))
    )
    rest = integers() | fixed() | st.just(nodes.Array(nodes.Integer(0, 9)))
    return st.tuples(texts | strings(), rest, few, st.none() | few, few, st.none() | few).map(made)


@cache
def distinct() -> st.SearchStrategy[Node]:
    """Arrays of choices without repeats."""

    def made(drawn: tuple[Node, int, int | None]) -> Node:
        item, low, more = drawn
        assert isinstance(item, nodes.Labels)
        low = min(low, len(item.texts))
        return nodes.array(item, low, None if more is None else low + more, unique=True)

    few = st.integers(0, 3)
    return st.tuples(labels(), few, st.none() | few).map(made)


def _unions(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.lists(inner, min_size=2, max_size=3).map(nodes.union)


def _nested(leaves: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            _object(inner),
            _arrays(inner),
            _unions(inner),
            st.builds(nodes.map_of, strings() | keys(), inner),
        ),
        max_leaves=6,
    )


@cache
def embedded() -> st.SearchStrategy[Node]:
    """JSON in strings, which refers to no definitions."""
    leaves = st.one_of(scalars(), st.just(AnyJson()))
    inner = st.one_of(
        leaves, leaves.map(nodes.Array), _object(leaves), st.builds(nodes.map_of, keys(), leaves)
    )
    return (inner | inner.map(nodes.Embedded)).map(nodes.Embedded)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Random schemas; two definitions may refer to themselves and each other."""
    names = draw(st.sampled_from([(), ("A",), ("A", "B")]))
    leaves: st.SearchStrategy[Node] = st.one_of(
        scalars(), scalars(), st.just(AnyJson()), embedded()
    )
    if names:
        leaves = st.one_of(leaves, leaves, st.sampled_from(names).map(Ref))
    definitions = {name: draw(_nested(leaves)) for name in names}
    if names:  # one way out for each, so that every definition is finite
        definitions = {
            name: nodes.union([node, nodes.labels([b"null"])]) for name, node in definitions.items()
        }
    return Schema(draw(_nested(leaves)), definitions)


def layouts() -> st.SearchStrategy[Options]:
    return st.builds(
        Options, st.sampled_from(["spaced", "spaced", "compact", "flexible"]), st.booleans()
    )


def byte_vocabulary() -> Vocabulary:
    """Token id = byte, 256 is unused, 257 ends."""
    return Vocabulary.from_bytes([bytes([byte]) for byte in range(256)] + [None], 257)


PARTS = (*STRADDLING, b"a", b"1", b'"', b", ")


def random_vocabulary(rng: random.Random) -> Vocabulary:
    """All single bytes in some order, awkward longer tokens, doubles, unused ids, two ends."""
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += rng.sample(STRADDLING, rng.randint(0, len(STRADDLING)))
    for _ in range(rng.randint(0, 40)):
        parts = (rng.choice(PARTS) for _ in range(rng.randint(1, 3)))
        tokens.append(b"".join(parts))
    tokens += rng.choices([token for token in tokens if token], k=rng.randint(0, 10))
    tokens += [None] * rng.randint(0, 4)
    rng.shuffle(tokens)
    n = len(tokens)
    return Vocabulary.from_bytes(tokens, {n, n + 2}, width=n + 5)


# Pydantic models.


class Mood(enum.Enum):
    good = "good"
    bad = "bad"
    unknown = 0


def types() -> st.SearchStrategy[Any]:
    """Types that a field can have."""
    return st.recursive(
        st.one_of(
            st.sampled_from([int, str, bool, float, None, Mood, Any]),
            st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True).map(
                lambda texts: Literal[tuple(texts)]
            ),
            st.integers(0, 3).map(lambda n: Annotated[str, Field(min_length=n, max_length=n + 3)]),
            st.integers(-20, 20).map(lambda n: Annotated[int, Field(ge=n, lt=n + 30)]),
            st.integers(-20, 20).map(lambda n: Annotated[float, Field(gt=n, le=n + 0.75)]),
        ),
        lambda inner: st.one_of(
            st.integers(0, 2).flatmap(
                lambda n: inner.map(
                    lambda t: Annotated[list[t], Field(min_length=n, max_length=n + 2)]
                )
            ),
            inner.map(lambda t: list[t]),
            inner.map(lambda t: dict[str, t]),
            inner.map(lambda t: Optional[t]),
            st.tuples(inner, inner).map(lambda pair: Union[pair]),
            models(inner),
        ),
        max_leaves=4,
    )


@st.composite
def models(draw: st.DrawFn, inner: st.SearchStrategy[Any] | None = None) -> type[BaseModel]:
    """Models with required fields, defaults, aliases and extra fields of every kind."""
    inner = types() if inner is None else inner
    fields: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True)):
        alias = draw(st.sampled_from([None, None, f"{name} {name}", f'{name}"é']))
        annotation = draw(inner)
        if draw(st.booleans()):
            fields[name] = (annotation, Field(alias=alias))
        else:
            fields[name] = (annotation, Field(default=None, alias=alias))
    extra = draw(st.sampled_from([None, "forbid", "ignore", "allow"]))
    config = ConfigDict() if extra is None else ConfigDict(extra=extra)
    return create_model("M", __config__=config, **fields)


# Values, as JSON data.


class ValueMaker:
    """Random JSON data that a schema allows, written in declared order."""

    def __init__(self, schema: Schema, rng: random.Random, *, require_all: bool = False) -> None:
        self._schema = schema
        self._rng = rng
        self._require_all = require_all

    def data(self) -> Any:
        return self._value(self._schema.root, 5)

    def _value(self, node: Node, depth: int) -> Any:
        rng = self._rng
        match node:
            case nodes.Labels():
                return Written(rng.choice(node.texts).decode())
            case nodes.String() if node.patterns or node.excluded:
                text = Texts(node).sample(rng)
                return Written(json.dumps(text, ensure_ascii=False))
            case nodes.Fixed():
                return Written(fixed_text(node, rng))
            case nodes.Embedded():
                text = write(self._value(node.node, min(depth, 1)), "compact")
                return Written(json.dumps(text, ensure_ascii=False))
            case nodes.Array() if node.unique:
                return self._distinct(node)
            case nodes.Array() if node.contains:
                return self._containing(node, depth)
            case nodes.String():
                high = node.min_length + 4 if node.max_length is None else node.max_length
                return self._text(rng.randint(node.min_length, min(high, node.min_length + 6)))
            case nodes.Integer():
                return self._integer(node)
            case nodes.Number():
                return self._float(node)
            case nodes.Array():
                n = self._count(node, depth)
                items = (*node.prefix[:n], *[node.item] * (n - len(node.prefix)))
                return [self._value(item, depth - 1) for item in items]
            case nodes.Object():
                return self._object(node, depth)
            case nodes.Union():
                return self._value(rng.choice(self._ending(node.options, depth)), depth)
            case nodes.Ref():
                return self._value(self._schema.definitions[node.name], depth - 1)
            case _:
                kinds = [String(), nodes.Number(), nodes.Labels((b"null",))]
                kinds += [nodes.Array(node), nodes.map_of(String(), node)] if depth > 0 else []
                return self._value(rng.choice(kinds), depth - 1)

    def _ending(self, options: tuple[Node, ...], depth: int) -> tuple[Node, ...]:
        """Only what cannot nest further, once deep enough."""
        flat = tuple(o for o in options if isinstance(o, nodes.Labels | String | nodes.Integer))
        return flat if depth <= 0 and flat else options

    def _count(self, node: nodes.Array, depth: int) -> int:
        if depth <= 0:
            return node.min_items
        most = node.min_items + 2
        return self._rng.randint(
            node.min_items, most if node.max_items is None else min(most, node.max_items)
        )

    def _distinct(self, node: nodes.Array) -> list[Any]:
        assert isinstance(node.item, nodes.Labels)
        texts = node.item.texts
        most = len(texts) if node.max_items is None else min(node.max_items, len(texts))
        chosen = self._rng.sample(texts, self._rng.randint(node.min_items, most))
        return [Written(text.decode()) for text in chosen]

    def _containing(self, node: nodes.Array, depth: int) -> list[Any]:
        """Items of a kind in one number, and others as many as are missing or more."""
        rng, (part,) = self._rng, node.contains
        most = part.minimum + 1 if part.maximum is None else part.maximum
        if node.max_items is not None:
            most = min(most, node.max_items)
        n = rng.randint(part.minimum, most)
        least = max(node.min_items - n, 0)
        more = rng.randint(least, least + 2)
        if node.max_items is not None:
            more = min(more, node.max_items - n)
        items = [part.item] * n + [part.rest] * more
        rng.shuffle(items)
        return [self._value(item, depth - 1) for item in items]

    def _object(self, node: Object, depth: int) -> dict[str, Any]:
        rng = self._rng
        chosen = {prop.name for prop in node.properties if prop.required or self._require_all}
        most = node.max_properties if node.max_properties is not None else 1000
        optional = [prop.name for prop in node.properties if prop.name not in chosen]
        rng.shuffle(optional)
        for name in optional:
            wanted = len(chosen) < node.min_properties or (depth > 0 and rng.random() < 0.5)
            if wanted and len(chosen) < most:
                chosen.add(name)
        value = {
            prop.name: self._value(prop.node, depth - 1)
            for prop in node.properties
            if prop.name in chosen
        }
        for extra in node.extras:
            missing = len(value) < node.min_properties
            if len(value) < most and (missing or (depth > 0 and rng.random() < 0.5)):
                value[self._key(node, extra.key)] = self._value(extra.value, depth - 1)
        return value

    def _key(self, node: Object, key: Node) -> str:
        """An undeclared key in its only spelling."""
        names = {*node.reserved, *(prop.name for prop in node.properties)}
        while True:
            value = self._text(3) + "!" if key == String() else self._value(key, 0)
            quoted = isinstance(value, Written) and value[:1] == '"'
            text = json.loads(value) if quoted else str(value)
            if text not in names:
                return text

    def _text(self, length: int) -> str:
        kinds = [
            "ab",
            '"\\/\b\f\n\r\t\x00\x1f\x7f',
            "éßñ\u0800\uffff",
            "\U00010000\U0010ffff😀",
            "zZ 09{}[]:,",
        ]
        return "".join(self._rng.choice(self._rng.choice(kinds)) for _ in range(length))

    def _integer(self, node: nodes.Integer) -> int:
        low = node.minimum if node.minimum is not None else min(-(10**18), node.maximum or 0)
        high = node.maximum if node.maximum is not None else max(10**18, low)
        near = [low, high, *(n for n in (0, 1, -1, 10, 99) if low <= n <= high)]
        return self._rng.choice([*near, self._rng.randint(low, high)])

    def _float(self, node: nodes.Number) -> Any:
        low = -1e6 if node.minimum is None else node.minimum
        high = low + 2e6 if node.maximum is None else node.maximum
        if node.exclusive_minimum:
            low = math.nextafter(low, math.inf)
        if node.exclusive_maximum:
            high = math.nextafter(high, -math.inf)
        value = self._rng.choice([low, high, self._rng.uniform(low, high)])
        if node.minimum is None and node.maximum is None:
            return self._rng.choice([value, value * 1e-200, value * 1e200, round(value), -0.0])
        plain = f"{min(max(value, low), high):.20f}"
        if not number_fits(plain.encode(), node):  # rounded out of the bounds, or -0
            plain = "0.0" if low <= 0 <= high else f"{(low + high) / 2:.20f}"
        return Written(plain)


def fixed_text(node: nodes.Fixed, rng: random.Random) -> str:
    """A number on a grid, with all of its digits or without zeros at the end."""
    n = node.step * rng.randint(-(-node.low // node.step), node.high // node.step)
    digits = str(abs(n)).zfill(node.places + 1)
    whole, fraction = digits[: len(digits) - node.places], digits[len(digits) - node.places :]
    if rng.random() < 0.5:
        fraction = fraction.rstrip("0")
    return "-" * (n < 0) + (f"{whole}.{fraction}" if fraction else whole)


class Written(str):
    """A scalar that is already JSON text."""

    __slots__ = ()


def write(value: Any, layout: str = "spaced", *, ascii_only: bool = False) -> str:
    """`json.dumps` in a layout, where `Written` scalars are copied."""
    comma, colon = (", ", ": ") if layout == "spaced" else (",", ":")
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, list):
        return "[" + comma.join(write(v, layout, ascii_only=ascii_only) for v in value) + "]"
    if isinstance(value, dict):
        members = (
            # Keys are written in one way only, since most of them are declared.
            _text(key, False) + colon + write(v, layout, ascii_only=ascii_only)
            for key, v in value.items()
        )
        return "{" + comma.join(members) + "}"
    return json.dumps(value, ensure_ascii=ascii_only)


def _text(key: str, ascii_only: bool) -> str:
    return str(key) if isinstance(key, Written) else json.dumps(key, ensure_ascii=ascii_only)
