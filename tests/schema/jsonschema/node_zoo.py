"""Random nodes and values of a universe so small that they often meet."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from structgen.schema import nodes
from structgen.schema.jsonschema.arrays import make_array
from structgen.schema.jsonschema.build import make_object, make_string
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Contains,
    Extra,
    Never,
    Node,
    Pattern,
    Property,
    String,
    json_text,
)

SCALARS = [None, True, False, 0, 1, 2, 3, -1, 0.5, 1.5, 2.25, "", "a", "b", "ab", "ba", "aab"]
LISTS = [[], [1], [2], ["a"], [1, 1], [1, 2], [1, "a"], ["a", 1], [1, 2, 3], [None, 1, 1], [[1]]]
DICTS = [
    {},
    {"a": 1},
    {"a": "a"},
    {"b": 2},
    {"c": 1},
    {"a": 1, "b": 2},
    {"a": 1, "ab": None},
    {"a": [1], "b": {}},
    {"a": {"a": 1}},
    {"a": 1, "b": 2, "c": 3},
    {"ba": 0.5},
]
VALUES = [*SCALARS, *LISTS, *DICTS, [{}], [{"a": 1}, 2], {"a": [1, "a"]}]
SOURCES = ["^a", "b$", "a", "^(ab)*$", ""]


def _bounds(most: int) -> st.SearchStrategy[tuple[int, int | None]]:
    return st.tuples(st.integers(0, most), st.none() | st.integers(0, most))


def _labels() -> st.SearchStrategy[Node]:
    texts = [json_text(value) for value in SCALARS] + [b"[]", b"{}"]
    return st.lists(st.sampled_from(texts), min_size=1, max_size=5).map(nodes.labels)


@st.composite
def strings(draw: st.DrawFn) -> Node:
    """Strings with lengths, patterns and excluded texts."""
    low, high = draw(_bounds(3))
    patterns = draw(
        st.lists(
            st.builds(Pattern, st.sampled_from(SOURCES), st.just("ecma"), st.booleans()), max_size=2
        )
    )
    excluded = draw(st.lists(st.sampled_from(["", "a", "ab"]), max_size=2))
    return make_string(String(low, high, tuple(dict.fromkeys(patterns)), tuple(excluded)))


@st.composite
def _numbers(draw: st.DrawFn) -> Node:
    low = draw(st.none() | st.integers(-2, 3))
    high = draw(st.none() | st.integers(-2, 3))
    match draw(st.integers(0, 2)):
        case 0:
            return nodes.integer(low, high)
        case 1:
            first, last = (None if bound is None else bound / 2 for bound in (low, high))
            gaps = draw(st.sets(st.sampled_from([Fraction(1), Fraction(1, 2)]), max_size=1))
            return nodes.number(first, last, draw(st.booleans()), draw(st.booleans()), gaps)
        case _:
            places, step = draw(st.sampled_from([(0, 2), (1, 5), (2, 25), (0, 3)]))
            gaps = draw(st.sets(st.sampled_from([2, 3, 50, 100]), max_size=1))
            first, last = (low or -9) * 10**places, (high or 9) * 10**places
            return nodes.fixed(first, last, places, step, gaps)


def random_nodes() -> st.SearchStrategy[Node]:
    """Nodes of all kinds but references."""
    leaves = st.one_of(
        st.just(AnyJson()), st.just(Never("nothing")), _labels(), strings(), _numbers()
    )
    return st.recursive(leaves, _composite, max_leaves=8)


def _composite(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.one_of(
        _arrays(parts), _objects(parts), st.lists(parts, min_size=1, max_size=3).map(nodes.union)
    )


@st.composite
def _arrays(draw: st.DrawFn, parts: st.SearchStrategy[Node]) -> Node:
    low, high = draw(_bounds(3))
    prefix = tuple(draw(st.lists(parts, max_size=2)))
    kinds = draw(st.lists(st.builds(Contains, parts, st.just(AnyJson()), st.just(1)), max_size=1))
    node = Array(draw(parts), low, high, prefix, tuple(kinds), draw(st.booleans()))
    # Narrowing what it contains is tested by the readers; here nothing may depend on it.
    return make_array(node, lambda _, kind: kind) if not kinds else node


@st.composite
def _objects(draw: st.DrawFn, parts: st.SearchStrategy[Node]) -> Node:
    names = draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=2))
    keys = st.just(String()) | strings().filter(lambda node: isinstance(node, String))
    extras = draw(st.lists(st.builds(Extra, keys, parts), max_size=2))
    low, high = draw(st.just((0, None)) | _bounds(3))
    properties = [Property(name, draw(parts), draw(st.booleans())) for name in names]
    return make_object(properties, extras, low, high)
