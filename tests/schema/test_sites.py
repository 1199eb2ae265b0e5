"""Every place of a schema is visited once, with its path and its field."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Json

from structgen.schema.load import load_schema
from structgen.schema.nodes import Labels, Object, Union
from structgen.schema.sites import options, sites


class Inner(BaseModel):
    note: str


class Outer(BaseModel):
    first: Inner
    second: list[Inner]
    either: int | Inner
    table: dict[str, Json[bool]]


class Tree(BaseModel):
    kids: list[Tree] = []


def test_paths_are_in_declared_order():
    found = [(site.path, site.same_as) for site in sites(load_schema(Outer).schema)]
    assert found == [
        ("$", ""),
        ("$.first", ""),
        ("$.first.note", ""),
        ("$.second", ""),
        ("$.second[*]", "$.first"),
        ("$.either", ""),
        ("$.either", ""),
        ("$.either", "$.first"),
        ("$.table", ""),
        ("$.table.<key>", ""),
        ("$.table.*", ""),
        ("$.table.*", ""),
    ]


def test_a_site_knows_its_field_and_its_union():
    by_path = {site.path: site for site in sites(load_schema(Outer).schema)}
    assert by_path["$"].field is None
    item = by_path["$.second[*]"]
    assert item.field is not None
    assert item.field.name == "second"
    assert isinstance(item.owner, Object)
    assert isinstance(by_path["$.either"].union, Union)
    assert item.union is None


def test_recursion_ends():
    found = [(site.path, site.same_as) for site in sites(load_schema(Tree).schema)]
    assert found == [("$", ""), ("$.kids", ""), ("$.kids[*]", "$")]


def test_options_are_flat():
    schema = load_schema(Literal["a"] | None | Inner | list[int]).schema
    kinds = [type(node).__name__ for node in options(schema, schema.root)]
    assert sorted(kinds) == ["Array", "Labels", "Object"]
    assert options(schema, Labels((b"1",))) == (Labels((b"1",)),)
