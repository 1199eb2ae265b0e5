"""Pydantic types become nodes: a table."""

# ruff: noqa: UP007, UP042, UP045  # users write types in the older spellings too

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
)
from typing_extensions import TypeAliasType

from structgen.schema.load import load_schema
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Extra,
    Integer,
    Labels,
    Node,
    Number,
    Object,
    Property,
    Ref,
    String,
    map_of,
)
from structgen.schema.nodes import Union as UnionNode
from tests.oracle import Oracle
from tests.strategies import write

NULL = Labels((b"null",))


class Colour(enum.Enum):
    red = "red"
    two = 2
    none = None


class Text(str, enum.Enum):
    a = "a"
    b = "b"


SCALARS: list[tuple[Any, Node]] = [
    (str, String()),
    (Annotated[str, Field(min_length=2, max_length=5)], String(2, 5)),
    (Annotated[str, StringConstraints(max_length=7, strict=True)], String(0, 7)),
    (int, Integer()),
    (Annotated[int, Field(ge=1, le=9)], Integer(1, 9)),
    (Annotated[int, Field(gt=1, lt=9)], Integer(2, 8)),
    (Annotated[int, Field(gt=1, ge=5)], Integer(5, None)),
    (Annotated[int, Field(gt=5, ge=1)], Integer(6, None)),
    (Annotated[int, Field(lt=5, le=10)], Integer(None, 4)),
    (float, Number()),
    (Annotated[float, Field(ge=0, lt=1)], Number(0.0, 1.0, False, True)),
    (Annotated[float, Field(gt=0, ge=0)], Number(0.0, None, True)),
    (Annotated[float, Field(gt=0, ge=1)], Number(1.0, None, False)),
    (Annotated[float, Field(le=2, lt=2)], Number(None, 2.0, False, True)),
    (Annotated[float, Field(ge=float("-inf"), allow_inf_nan=False)], Number()),
    (bool, Labels((b"false", b"true"))),
    (None, NULL),
    (Any, AnyJson()),
    (object, AnyJson()),
    (TypeAdapter(Literal["b", "a", "a"]), Labels((b'"a"', b'"b"'))),
    (TypeAdapter(Literal[1, "1", True, None]), Labels((b'"1"', b"1", b"null", b"true"))),
    (TypeAdapter(Literal['é"\n']), Labels(('"é\\"\\n"'.encode(),))),
    (TypeAdapter(Literal[Text.b]), Labels((b'"b"',))),
    (TypeAdapter(Colour), Labels((b'"red"', b"2", b"null"))),
    (TypeAdapter(Text), Labels((b'"a"', b'"b"'))),
    (list[int], Array(Integer())),
    (list, Array(AnyJson())),
    (Annotated[list[int], Field(min_length=1, max_length=3)], Array(Integer(), 1, 3)),
    (Annotated[list[int], Field(max_length=0)], Labels((b"[]",))),
    (dict[str, int], map_of(String(), Integer())),
    (dict[Annotated[str, Field(min_length=1)], None], map_of(String(1), NULL)),
    (Optional[int], UnionNode((Integer(), NULL))),
    (Union[int, None, Literal["a"], bool],
     UnionNode((Integer(), Labels((b'"a"', b"false", b"null", b"true"))))),
    (Union[int, str, int], UnionNode((Integer(), String()))),
    (Union[Literal["a"], Literal["b"]], Labels((b'"a"', b'"b"'))),
    (RootModel[list[str]], Array(String())),
    (TypeAdapter(list[str]), Array(String())),
    (Annotated[int, AfterValidator(abs)], Integer()),
    (TypeAdapter(str, config=ConfigDict(str_max_length=3)), String(0, 3)),
    (TypeAdapter(list[str], config=ConfigDict(str_min_length=1)), Array(String(1))),
]  # fmt: skip


def root_of(source: Any) -> Node:
    schema = load_schema(source).schema
    root = schema.root
    return schema.definitions[root.name] if isinstance(root, Ref) else root


@pytest.mark.parametrize(("source", "node"), SCALARS, ids=lambda x: str(x)[:50])
def test_types(source, node):
    assert root_of(source) == node


def properties(source: Any) -> list[tuple[str, Node, bool]]:
    node = root_of(source)
    assert isinstance(node, Object)
    return [(prop.name, prop.node, prop.required) for prop in node.properties]


def test_fields_keep_their_order_and_their_defaults():
    model = create_model("M", b=(int, ...), a=(int, 1), c=(Optional[str], None))
    nullable = UnionNode((String(), NULL))
    assert properties(model) == [
        ("b", Integer(), True), ("a", Integer(), False), ("c", nullable, False),
    ]  # fmt: skip


def test_aliases_name_the_keys():
    class M(BaseModel):
        a: int = Field(alias="A a")
        b: int = Field(validation_alias="B", serialization_alias="no")
        c: int = Field(validation_alias=AliasChoices("C", "D"))
        d: int = Field(serialization_alias="no")

    assert [name for name, _, _ in properties(M)] == ["A a", "B", "C", "d"]


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({}, "X"),
        ({"validate_by_name": True, "validate_by_alias": True}, "X"),
        ({"validate_by_name": True, "validate_by_alias": False}, "x"),
        ({"populate_by_name": True}, "X"),
    ],
)
def test_names_follow_the_settings(config, name):
    model = create_model("M", __config__=ConfigDict(**config), x=(int, Field(alias="X")))
    assert [p[0] for p in properties(model)] == [name]
    TypeAdapter(model).validate_json(f'{{"{name}": 1}}')


@pytest.mark.parametrize(
    ("extra", "extras"),
    [(None, ()), ("ignore", ()), ("forbid", ()), ("allow", (Extra(String(), AnyJson()),))],
)
def test_extra_fields(extra, extras):
    config = ConfigDict() if extra is None else ConfigDict(extra=extra)
    root = root_of(create_model("M", __config__=config, x=(int, ...)))
    assert isinstance(root, Object)
    assert root.extras == extras


def test_typed_extra_fields():
    class M(BaseModel):
        model_config = ConfigDict(extra="allow")
        __pydantic_extra__: dict[str, int]

    root = root_of(M)
    assert isinstance(root, Object)
    assert root.extras == (Extra(String(), Integer()),)


def test_string_settings_hold_inside_their_model_only():
    class Inner(BaseModel):
        text: str

    class Outer(BaseModel):
        model_config = ConfigDict(str_max_length=4)
        text: str
        longer: Annotated[str, Field(max_length=9)]
        inner: Inner
        after: str

    nodes = {name: node for name, node, _ in properties(Outer)}
    assert nodes["text"] == nodes["after"] == String(0, 4)
    assert nodes["longer"] == String(0, 9)
    inner = root_of(Inner)
    assert isinstance(inner, Object)
    assert inner.properties == (Property("text", String()),)


Short = TypeAliasType("Short", str)


class Limited(BaseModel):
    model_config = ConfigDict(str_max_length=2)
    x: Short
    y: Short


@pytest.mark.parametrize("names", [("free", "limited"), ("limited", "free")])
def test_a_shared_alias_follows_the_settings_around_it(names):
    kinds = {"free": (Short, ...), "limited": (Limited, ...)}
    model = create_model("M", **{name: kinds[name] for name in names})
    schema = load_schema(model).schema
    texts = {"free": "long", "limited": {"x": "long", "y": "a"}}
    oracle = Oracle(schema)
    good = write({name: texts[name] if name == "free" else {"x": "lo", "y": "a"} for name in names})
    bad = write({name: texts[name] for name in names})
    TypeAdapter(model).validate_json(good)
    assert oracle.is_value(good.encode())
    with pytest.raises(ValidationError):
        TypeAdapter(model).validate_json(bad)
    assert not oracle.is_value(bad.encode())


def test_an_alias_that_is_not_read_is_no_name():
    class M(BaseModel):
        model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
        x: int = Field(1, alias="y")
        y: int = 2

    assert [name for name, _, _ in properties(M)] == ["x", "y"]


def test_recursion_is_a_reference():
    class Tree(BaseModel):
        children: list[Tree] = []

    schema = load_schema(Tree).schema
    assert isinstance(schema.root, Ref)
    tree = schema.definitions[schema.root.name]
    assert isinstance(tree, Object)
    assert tree.properties[0].node == Array(schema.root)


def test_validators_are_listed_with_their_paths():
    class M(BaseModel):
        a: Annotated[int, AfterValidator(abs)]
        b: list[Annotated[str, AfterValidator(str.strip)]]
        c: int

    assert load_schema(M).validators == ("$.a", "$.b[*]")


class One(BaseModel):
    kind: Literal["one"] = "one"


class Two(BaseModel):
    kind: Literal["two"] = "two"
    inner: One = One()


Tagged = Annotated[One | Two, Field(discriminator="kind")]


def required_names(node: Node, definitions: Any) -> list[tuple[str, bool]]:
    node = definitions[node.name] if isinstance(node, Ref) else node
    assert isinstance(node, Object)
    return [(prop.name, prop.required) for prop in node.properties]


@pytest.mark.parametrize("count", [1, 2])
def test_a_tag_is_always_written(count):
    """Also where its model stands in other places, where the tag may be left out."""
    fields: dict[str, Any] = {f"tagged{i}": (Tagged, ...) for i in range(count)}
    schema = load_schema(create_model("M", **fields, plain=(One, ...))).schema
    root = schema.root
    root = schema.definitions[root.name] if isinstance(root, Ref) else root
    assert isinstance(root, Object)
    for prop in root.properties[:-1]:
        assert isinstance(prop.node, UnionNode)
        one, two = (required_names(option, schema.definitions) for option in prop.node.options)
        assert one == [("kind", True)]
        assert two == [("kind", True), ("inner", False)]
    assert required_names(root.properties[-1].node, schema.definitions) == [("kind", False)]


def test_loading_keeps_what_validates():
    loaded = load_schema(One)
    assert loaded.adapter.validate_json('{"kind": "one"}') == One()
    assert loaded.schema.title == "One"
