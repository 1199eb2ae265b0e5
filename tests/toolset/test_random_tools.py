"""Whatever the tools are and whatever the model wants: names are registered, arguments validate."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from structgen.compiler import forget_schemas
from structgen.testing import RandomLM, byte_vocabulary

VOCABULARY = byte_vocabulary()

NAMES = st.text(st.sampled_from('ab_.-é"\\/'), min_size=1, max_size=6)
SCALARS = st.sampled_from(
    [
        {"type": "integer", "minimum": -3, "maximum": 40},
        {"type": "string", "maxLength": 4},
        {"type": "boolean"},
        {"enum": ["red", "green", 3, None]},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": ["string", "null"], "maxLength": 3},
        {"type": "string", "format": "date"},
    ]
)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.text("abc", min_size=1, max_size=2)
    properties = st.dictionaries(keys, values, max_size=4)
    return properties.flatmap(
        lambda found: st.lists(st.sampled_from(sorted(found) or ["a"]), unique=True).map(
            lambda needed: {
                "type": "object",
                "properties": found,
                "required": [name for name in needed if name in found],
            }
        )
    )


def arrays(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values.map(lambda items: {"type": "array", "items": items, "maxItems": 3})


SCHEMAS = objects(st.recursive(SCALARS, lambda v: objects(v) | arrays(v), max_leaves=4))
FORMS = st.sampled_from(["parameters", "input_schema", "inputSchema"])


@st.composite
def tool_sets(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=12, unique=True))
    return [{"name": name, draw(FORMS): draw(SCHEMAS)} for name in names]


@given(
    tool_sets(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["spaced", "compact", "flexible"]),
    st.integers(0, 2**20),
)
@settings(max_examples=60, deadline=None)
def test_calls_are_registered_and_their_arguments_validate(items, none, parallel, layout, seed):
    tools: sg.Tools[Any] = sg.tools(items, none=none, parallel=parallel, max_calls=3)
    lm = RandomLM(VOCABULARY, seed)
    compiled = sg.compile(tools, VOCABULARY, layout=layout)
    budget = compiled.min_tokens + 120
    result = sg.Generator(tools, lm, layout=layout, max_new_tokens=budget).run("")
    forget_schemas()
    written = json.loads(result.text)
    calls = result.value if parallel else [result.value]
    for call, raw in zip(calls, written if parallel else [written], strict=True):
        if call is None:
            assert none
            assert raw == {"name": None}
            continue
        (item,) = (item for item in items if item["name"] == call.name)
        (schema,) = (value for key, value in item.items() if key != "name")
        jsonschema.validate(call.arguments, {**schema, "additionalProperties": False})
        assert raw == {"name": call.name, "arguments": call.arguments}
        assert json.loads(call.arguments_json) == call.arguments
        assert 0 < call.probability <= 1.000001
    if parallel:
        assert (0 if none else 1) <= len(calls) <= 3


@given(tool_sets(), st.data())
@settings(max_examples=30, deadline=None)
def test_a_turns_choice_allows_these_names_only(items, data):
    tools = sg.tools(items, none=True)
    wanted = data.draw(st.lists(st.sampled_from(tools.names), unique=True))
    few = tools.only(*wanted)
    assert set(few.names) == set(wanted)
    value = sg.generate(few, "", lm=RandomLM(VOCABULARY, 1), max_new_tokens=400)
    forget_schemas()
    assert value is None or value.name in wanted
    rest = tools.without(*wanted)
    assert {*few.names, *rest.names} == set(tools.names)
