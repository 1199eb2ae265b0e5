"""Equal content, equal fingerprint."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from structgen.options import Limits, Options
from structgen.schema import nodes
from structgen.schema.fingerprint import fingerprint
from structgen.schema.load import load_schema
from structgen.schema.nodes import Array, Extra, Integer, Never, Object, Property, Schema, String


def digest(source, **options) -> str:
    return fingerprint(load_schema(source).schema, Options(**options))


def test_equal_content_is_equal_and_other_content_is_not():
    one, same = create_model("M", a=(int, 1)), create_model("M", a=(int, 2))
    assert digest(one) == digest(same)
    others = [
        create_model("M", a=(int, ...)),
        create_model("M", b=(int, 1)),
        create_model("M", a=(str, 1)),
        create_model("M", a=(int, Field(1, le=5))),
        create_model("M", a=(int, 1), b=(int, 1)),
        create_model("M", b=(int, 1), a=(int, 1)),
    ]
    assert len({digest(one), *map(digest, others)}) == len(others) + 1


LEAVES = st.sampled_from(
    [Integer(0), Integer(), String(), String(1), Never("a"), nodes.Ref("a"), nodes.AnyJson(),
     nodes.Number(0), nodes.Number(0.0), nodes.Number(-0.0), nodes.labels([b'"a"', b'", "'])]
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "a'!0,'b", "1", "\n"])


def composed(inner):
    properties = st.lists(st.builds(Property, NAMES, inner, st.booleans()), max_size=2)
    extras = st.lists(st.builds(Extra, inner, inner), max_size=2)
    return (
        st.builds(
            Object, properties.map(tuple), extras.map(tuple), min_properties=st.integers(0, 1)
        )
        | st.builds(Array, inner, st.integers(0, 1), prefix=st.lists(inner, max_size=1).map(tuple))
        | st.lists(inner, min_size=2, max_size=3).map(lambda options: nodes.Union(tuple(options)))
        | inner.map(nodes.Embedded)
    )


NODES = st.recursive(LEAVES, composed, max_leaves=4)
SCHEMAS = st.builds(Schema, NODES, st.dictionaries(NAMES, NODES, max_size=1))


@given(SCHEMAS, SCHEMAS)
@settings(max_examples=1000)
def test_it_tells_apart_what_the_nodes_own_text_does(one, other):
    same = repr((one.root, one.definitions)) == repr((other.root, other.definitions))
    assert (fingerprint(one, Options()) == fingerprint(other, Options())) is same


CHANGED = {
    "name": "b", "node": String(), "required": False, "key": Integer(), "value": String(),
    "properties": (), "extras": (), "reserved": ("z",), "min_properties": 1, "max_properties": 2,
    "item": String(), "min_items": 1, "max_items": 3, "prefix": (String(),), "unique": True,
    "contains": (nodes.Contains(String(), String()),), "antichain": True, "separator": " > ",
    "options": (String(), Integer(), Never("no")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("node", "within"),
    [
        (Property("a", Integer()), lambda node: Object((node,))),
        (Extra(String(), Integer()), lambda node: Object((), (node,))),
        (Object((Property("a", Integer()),), (Extra(String(), Integer()),)), lambda node: node),
        (Array(Integer()), lambda node: node),
        (nodes.Union((Integer(), String())), lambda node: node),
    ],
)
def test_everything_that_is_compared_counts(node, within):
    compared = [field.name for field in fields(node) if field.compare]
    variants = [node, *(replace(node, **{name: CHANGED[name]}) for name in compared)]
    digests = {fingerprint(Schema(within(each), {}), Options()) for each in variants}
    assert len(digests) == len(compared) + 1 > 1


def test_options_matter():
    model = create_model("M", a=(int, 1))
    options = [
        {}, {"layout": "compact"}, {"layout": "flexible"}, {"require_all": True},
        {"limits": Limits(max_depth=3)},
    ]  # fmt: skip
    assert len({digest(model, **chosen) for chosen in options}) == len(options)


SCRIPT = """
from pydantic import BaseModel, Field
from structgen.options import Options
from structgen.schema.fingerprint import fingerprint
from structgen.schema.load import load_schema

class Inner(BaseModel):
    x: "list[Inner]" = []

class M(BaseModel, extra="allow"):
    one: int = Field(alias="two")
    three: int = 3
    four: Inner
    five: Inner

print(fingerprint(load_schema(M).schema, Options()))
"""


def test_the_same_in_every_process():
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


def test_loading_twice_gives_the_same():
    class Tree(BaseModel):
        children: list[Tree] = []

    assert digest(Tree) == digest(Tree)
