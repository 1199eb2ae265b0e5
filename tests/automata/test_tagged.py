"""Unions of objects with a tag: one frame has the language of the options called one by one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from structgen.automata import assemble
from structgen.automata.tagged import told_apart
from structgen.compiler import forget_schemas
from structgen.schema.nodes import Integer, Labels, Object, Property, String
from structgen.testing import small_vocabulary

VOCABULARY = small_vocabulary(['{"', '", "', '": ', "ab", 'a"', "}", '"}', "null", "ba"])


def tagged(*texts: str, **more: Any) -> Object:
    labels = Labels(tuple(sorted(text.encode() for text in texts)))
    return Object((Property("tag", labels), Property("n", Integer())), **more)


def test_options_are_told_apart_by_the_first_property():
    a, b = tagged('"a"', "1"), tagged('"ab"', '"a"')
    found = told_apart([a, b])
    assert found is not None
    assert found.name == "tag"
    assert found.options == {b'"a"': [a, b], b'"ab"': [b], b"1": [a]}
    assert list(found.options) == sorted(found.options)


@pytest.mark.parametrize(
    "option",
    [
        tagged("1", "12"),
        tagged('"b"', max_properties=2),
        tagged('"b"', min_properties=3),
        Object((Property("kind", Labels((b'"b"',))),)),
        Object((Property("tag", Labels((b'"b"',)), required=False),)),
        Object((Property("tag", String()),)),
        Object(),
        Integer(),
    ],
)
def test_other_options_are_called_one_by_one(option):
    assert told_apart([tagged('"a"'), option]) is None


TAGS = st.lists(st.text("ab", max_size=3), min_size=8, max_size=12, unique=True)
VALUES = st.sampled_from(
    [{"type": "integer"}, {"enum": ["a", "b", 1]}, {"type": "array", "items": {"type": "null"}}]
)


@st.composite
def unions(draw: st.DrawFn) -> dict[str, Any]:
    """At least eight objects with a tag each, and optional, required and free properties."""
    options: list[Any] = []
    for tag in draw(TAGS):
        names = draw(st.lists(st.sampled_from(["x", "y", "xy"]), unique=True))
        option: dict[str, Any] = {
            "type": "object",
            "properties": {"tag": {"const": tag}, **{name: draw(VALUES) for name in names}},
            "required": ["tag", *(name for name in names if draw(st.booleans()))],
            "additionalProperties": draw(st.sampled_from([False, False, {"type": "null"}])),
        }
        options.append(option)
    return {"anyOf": options}


LAYOUTS = st.sampled_from(["spaced", "compact", "flexible"])


def legal(session: sg.Session) -> list[int]:
    bits = np.unpackbits(session.mask().view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


@given(unions(), LAYOUTS, st.booleans(), st.data())
@settings(max_examples=40, deadline=None)
def test_masks_agree_with_those_of_options_called_one_by_one(schema, layout, require_all, data):
    one = sg.compile(schema, VOCABULARY, layout=layout, require_all=require_all)
    forget_schemas()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "FEWEST", 10**9)
        slow = sg.compile(schema, VOCABULARY, layout=layout, require_all=require_all)
    forget_schemas()
    assert one.fingerprint == slow.fingerprint
    sessions = one.session(), slow.session()
    for _ in range(60):
        tokens = legal(sessions[0])
        assert tokens == legal(sessions[1])
        if not tokens or sessions[0].finished:
            return
        token = data.draw(st.sampled_from(tokens))
        for session in sessions:
            session.advance(token)


@given(unions(), LAYOUTS, st.data())
@settings(max_examples=40, deadline=None)
def test_within_a_budget_the_value_is_finished(schema, layout, data):
    compiled = sg.compile(schema, VOCABULARY, layout=layout)
    forget_schemas()
    session = compiled.session(compiled.min_tokens + data.draw(st.integers(0, 5)))
    while not (session.finished or session.complete):
        session.advance(data.draw(st.sampled_from(legal(session))))
    ids = [token for token in session.token_ids if VOCABULARY.bytes_of(token)]
    jsonschema.validate(json.loads(VOCABULARY.decode(ids)), schema)


def test_a_thousand_tags_are_one_thread():
    options = [
        {"type": "object", "properties": {"tag": {"const": f"t{i}"}}, "required": ["tag"]}
        for i in range(1000)
    ]
    text = b'{"tag": "t12'
    session = sg.compile({"anyOf": options}, VOCABULARY, limits=sg.Limits(max_threads=4)).session()
    for byte in text:
        session.advance(byte)
    legal = {byte for byte in range(256) if session.allows(byte)}
    assert legal == set(b'"0123456789')


def test_recursion_through_a_tagged_union_ends():
    options = [
        {
            "type": "object",
            "properties": {"tag": {"const": f"t{i}"}, "inner": {"$ref": "#"}},
            "required": ["tag"],
        }
        for i in range(9)
    ]
    compiled = sg.compile({"anyOf": options}, VOCABULARY)
    session = compiled.session()
    for byte in b'{"tag": "t1", "inner": {"tag": "t8", "inner": {"tag": "t0"}}}':
        session.advance(byte)
    assert session.accepting
