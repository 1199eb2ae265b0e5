"""Costs that are worked out where something has changed are those of going through everything."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata import kernels
from structgen.automata.frames import CLASSES, LOOP
from structgen.compiler import Compiler
from structgen.errors import UnsatisfiableSchemaError
from structgen.options import Options
from structgen.testing import byte_vocabulary, small_vocabulary
from structgen.tokens import distances
from structgen.tokens.automaton import Automaton
from structgen.tokens.vocabulary import Vocabulary

WORDS = [b"an", b"ab", b'": ', b'", "', b'{"', b'"a', b"[[", b"]]", b"}}", b", ", b"null", b"12"]
VOCABULARIES = byte_vocabulary(), small_vocabulary(WORDS)

leaves = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "string", "minLength": 2},
        {"type": "string", "pattern": "^(ab|c)*d?$"},
        {"type": "string", "pattern": "a.*b", "minLength": 3, "maxLength": 9},
        {"enum": ["an", "ann", 12]},
        {"$ref": "#"},
        {"$ref": "#/$defs/node"},
    ]
)


def array(item: Any, least: int) -> Any:
    return {"type": "array", "items": item, "minItems": least}


def json_object(properties: Any, required: set[str], extra: Any, least: int) -> Any:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(required & set(properties)),
        "additionalProperties": extra,
        "minProperties": least,
    }


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "ab", "an", "b"])
    properties = st.dictionaries(names, inner, max_size=4)
    extra = st.sampled_from([False, {"type": "integer"}])
    objects = st.builds(json_object, properties, st.sets(names), extra, st.integers(0, 2))
    return objects | st.builds(array, inner, st.integers(0, 2))


def whole(part: Any) -> Any:
    """A schema with a part that may refer to it and to its definition."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    return {"anyOf": [{"type": "null"}, array(part, 1)], "$defs": {"node": node}}


schemas = st.recursive(leaves, containers, max_leaves=6).map(whole)


def costs(automaton: Automaton, vocabulary: Vocabulary) -> Any:
    """int32[S, 2], the tokens from every state: all states are looked at until none changes."""
    program, lookup = automaton.program, automaton.lookup
    cost = np.full((len(program.states), 4), kernels.UNREACHABLE, np.int32)
    cost[:, 2:] = 0
    plan = (cost, *automaton.plan[1:])
    groups = np.empty((2, 256), np.int32)
    tries = (lookup.trie, lookup.first, lookup.second)
    changed = True
    while changed:
        changed = False
        for state, columns in enumerate(program.states.tolist()):
            n = distances._group_bytes(program.classes, columns[CLASSES], groups)  # pyright: ignore[reportPrivateUsage]
            for layer in range(2 if columns[LOOP] >= 0 else 1):
                changed |= distances._relax(program.arrays, plan, tries, groups, n, state, layer)  # pyright: ignore[reportPrivateUsage]
    return cost[:, :2]


@settings(deadline=None, max_examples=40)
@given(schemas, st.sampled_from(VOCABULARIES))
def test_costs_are_those_of_going_through_everything(schema: Any, vocabulary: Vocabulary) -> None:
    try:
        compiled = Compiler().compile(schema, vocabulary, Options())
    except UnsatisfiableSchemaError:
        return  # it asks for more properties than there may be
    automaton = compiled._automaton  # pyright: ignore[reportPrivateUsage]
    np.testing.assert_array_equal(automaton.plan[0][:, :2], costs(automaton, vocabulary))
