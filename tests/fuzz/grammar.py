"""Random JSON Schemas: by a grammar of keywords, and real ones with random changes."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Json = Any

TEXTS = ("a", "b", "ab", "", "é", '"', "\\", "a b", "0", "10", "\n", "\0", "$ref", "2020-01-01")
NUMBERS = (0, 1, -1, 2, 3, 10, -10, 0.5, 1.5, -2.25, 1e3, 1e20, 10**20, 1.0, 0.1, 100)
COUNTS = (0, 1, 2, 3, 5)
NAMES = ("a", "b", "ab", "id", "x y", "é", 'q"')
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
PATTERNS = (
    "^a", "b$", "^[a-c]{2,4}$", "a|b", "^(a|b)*$", "[0-9]+", "^x_", r"^\d{2}$", ".", "", "^.{1,3}$",
    "^[^a]*$", "(?=.*a)b", "^$", r"\w+@\w+", "^a?b?$",
)  # fmt: skip
FORMATS = (
    "date", "time", "date-time", "email", "ipv4", "ipv6", "uuid", "uri", "hostname", "duration",
    "json-pointer", "regex", "uri-reference", "nobody-knows",
)  # fmt: skip
REFERENCES = ("#", "#/$defs/d0", "#/$defs/d1", "#/properties/a", "#/items")


def values() -> st.SearchStrategy[Json]:
    """Small JSON values."""
    scalars = st.one_of(
        st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS),
        st.integers(-20, 20), st.text(max_size=3),
    )  # fmt: skip
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        ),
        max_leaves=4,
    )


def _keywords(inner: st.SearchStrategy[Json]) -> dict[str, st.SearchStrategy[Json]]:
    """A strategy for the value of each keyword."""
    counts, numbers = st.sampled_from(COUNTS), st.sampled_from(NUMBERS)
    several = st.lists(inner, min_size=1, max_size=3)
    names = st.sampled_from(NAMES)
    properties = st.dictionaries(names, inner, max_size=4)
    types = st.sampled_from(TYPES)
    return {
        "type": st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(values(), min_size=1, max_size=5),
        "const": values(),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), counts),
        **dict.fromkeys(("minProperties", "maxProperties"), counts),
        **dict.fromkeys(("minContains", "maxContains"), counts),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), numbers),
        "multipleOf": st.sampled_from([n for n in NUMBERS if n > 0]),
        "pattern": st.sampled_from(PATTERNS),
        "format": st.sampled_from(FORMATS),
        "uniqueItems": st.booleans(),
        "prefixItems": several,
        **dict.fromkeys(("items", "contains", "propertyNames", "not", "if", "then", "else"), inner),
        **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), inner),
        "unevaluatedItems": inner,
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), several),
        "properties": properties,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        "required": st.lists(names, max_size=3, unique=True),
        "dependentRequired": st.dictionaries(
            names, st.lists(names, max_size=2, unique=True), max_size=2
        ),
        "dependentSchemas": st.dictionaries(names, inner, max_size=2),
        "$ref": st.sampled_from(REFERENCES),
    }


TOGETHER = (
    ("type", "minLength", "maxLength", "pattern", "format"),
    ("type", "minimum", "maximum", "exclusiveMinimum", "multipleOf"),
    ("type", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    ("type", "properties", "required", "additionalProperties", "minProperties", "propertyNames"),
    ("patternProperties", "properties", "dependentRequired", "maxProperties", "required"),
    ("anyOf", "type", "not"),
    ("oneOf", "properties", "type"),
    ("allOf", "properties", "unevaluatedProperties"),
    ("if", "then", "else"),
    ("enum", "type", "const", "not"),
    ("$ref", "minLength"),
)
"""Keywords that mean something together."""


@st.composite
def _schema(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    table = _keywords(inner)
    if draw(st.integers(0, 5)):
        chosen = draw(st.sampled_from(TOGETHER))
        names = draw(st.lists(st.sampled_from(chosen), min_size=1, max_size=4, unique=True))
    else:
        names = draw(st.lists(st.sampled_from(sorted(table)), max_size=4, unique=True))
    return {name: draw(table[name]) for name in names}


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Json]:
    """Schemas by the grammar; now and then a value is not what its keyword wants."""
    leaf = st.one_of(st.booleans(), st.sampled_from(TYPES).map(lambda name: {"type": name}))
    inner = st.recursive(leaf, _schema, max_leaves=6)
    root: dict[str, Json] = dict(draw(_schema(inner)))
    root["$defs"] = {f"d{i}": draw(inner) for i in range(2)}
    if not draw(st.integers(0, 7)):
        mutate(root, random.Random(draw(st.integers(0, 2**32))))
    return root


def mutate(schema: Json, rng: random.Random, changes: int = 3) -> None:
    """Change a schema in place: a part is dropped, copied elsewhere, or replaced."""
    for _ in range(rng.randint(1, changes)):
        places = list(_places(schema))
        if not places:
            return
        holder, key = rng.choice(places)
        _CHANGES[rng.randrange(len(_CHANGES))](schema, holder, key, rng)


def _places(part: Json) -> Iterator[tuple[Any, Any]]:
    """(list or dict, key) of every value inside."""
    if isinstance(part, dict | list):
        keys = list(part) if isinstance(part, dict) else range(len(part))
        for key in keys:
            yield part, key
            yield from _places(part[key])


def _drop(schema: Json, holder: Any, key: Any, rng: random.Random) -> None:
    del holder[key]


def _replace(schema: Json, holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = rng.choice([
        None, True, False, 0, 1, -1, 2.5, 10**30, "", "a", "\0", "string", "^a", [], {}, ["a"],
        [{}], {"a": {}}, {"type": "integer"}, {"$ref": "#"}, {"not": {}}, 1e308, "date",
    ])  # fmt: skip


def _copy(schema: Json, holder: Any, key: Any, rng: random.Random) -> None:
    other, name = rng.choice(list(_places(schema)))
    holder[key] = copy.deepcopy(other[name])


def _nudge(schema: Json, holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = value + rng.choice([-1, 1, 10, -100])
    elif isinstance(value, str):
        at = rng.randint(0, len(value))
        holder[key] = (
            value[:at]
            + rng.choice(["", "a", "(", ")", "*", "[", "\\", "$", "é"])
            + (value[at + 1 :])
        )


def _wrap(schema: Json, holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    if isinstance(value, dict):
        keyword = rng.choice(["not", "allOf", "anyOf", "oneOf", "items", "if", "contains"])
        holder[key] = {keyword: [value, {}] if keyword.endswith("Of") else value}


def _add(schema: Json, holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    if isinstance(value, dict):
        value.update(
            rng.choice([
                {"minLength": 2}, {"maxLength": 1}, {"minimum": 3}, {"multipleOf": 7}, {"not": {}},
                {"uniqueItems": True}, {"required": ["a"]}, {"additionalProperties": False},
                {"minProperties": 1}, {"enum": ["a", 1]}, {"pattern": "b"}, {"const": "a"},
                {"propertyNames": {"maxLength": 2}}, {"type": "string"}, {"$ref": "#"},
            ])
        )  # fmt: skip


_CHANGES = (_drop, _replace, _copy, _nudge, _wrap, _add)
