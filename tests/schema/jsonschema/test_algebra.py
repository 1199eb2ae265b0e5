"""The operations on nodes agree with what the nodes admit, value by value."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings

from structgen.schema.jsonschema.admits import admits
from structgen.schema.jsonschema.complement import minus
from structgen.schema.jsonschema.definitions import Definitions, Unrepresentable
from structgen.schema.jsonschema.disjoint import disjoint, is_empty
from structgen.schema.jsonschema.intersect import meet
from structgen.schema.nodes import (
    AnyJson,
    Array,
    Extra,
    Fixed,
    Integer,
    Labels,
    Never,
    Node,
    Number,
    Object,
    Pattern,
    Property,
    Ref,
    String,
)
from tests.schema.jsonschema.node_zoo import VALUES, random_nodes

FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@given(random_nodes(), random_nodes())
@FEW
def test_what_two_nodes_have_in_common_is_what_both_admit(a: Node, b: Node) -> None:
    definitions = Definitions()
    both = meet(definitions, a, b)
    for value in VALUES:
        expected = admits({}, a, value) and admits({}, b, value)
        assert admits(definitions, both, value) == expected, value


@given(random_nodes(), random_nodes())
@FEW
def test_a_difference_is_what_only_the_first_node_admits(a: Node, b: Node) -> None:
    definitions = Definitions()
    try:
        rest = minus(definitions, a, b)
    except Unrepresentable:
        return
    for value in VALUES:
        expected = admits({}, a, value) and not admits({}, b, value)
        assert admits(definitions, rest, value) == expected, value


@given(random_nodes(), random_nodes())
@FEW
def test_disjoint_nodes_share_no_value(a: Node, b: Node) -> None:
    if disjoint(Definitions(), a, b):
        assert not any(admits({}, a, value) and admits({}, b, value) for value in VALUES)


@given(random_nodes())
@FEW
def test_an_empty_node_admits_nothing(node: Node) -> None:
    if is_empty(Definitions(), node):
        assert not any(admits({}, node, value) for value in VALUES)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Integer(0, None), Number(maximum=9.5), Integer(0, 9)),
        (Fixed(0, 100, 1, 5), Integer(None, None), Integer(0, 10)),
        (Fixed(-100, 100, 0, 4), Fixed(-100, 100, 0, 6), Fixed(-96, 96, 0, 12)),
        (Number(1.0, 2.0, exclusive_minimum=True), Number(1.0, None), Number(1.0, 2.0, True)),
        (String(1, 5), String(3, None), String(3, 5)),
        (Labels((b"1", b'"a"')), String(), Labels((b'"a"',))),
        (AnyJson(), String(), String()),
    ],
)
def test_intersections_are_simple(a: Node, b: Node, expected: Node) -> None:
    assert meet(Definitions(), a, b) == expected


def test_properties_keep_the_order_of_the_first_object_then_of_the_second() -> None:
    everything = (Extra(String(), AnyJson()),)
    first = Object((Property("b", String()), Property("a", String(), False)), everything)
    second = Object((Property("c", Integer()), Property("a", String(1))), everything)
    both = meet(Definitions(), first, second)
    assert isinstance(both, Object)
    assert [(p.name, p.required) for p in both.properties] == [
        ("b", True),
        ("a", True),
        ("c", True),
    ]


def test_properties_of_a_recursive_intersection_refer_to_it() -> None:
    definitions = Definitions()
    definitions.nodes["list"] = Object((Property("next", Ref("list"), False),), ())
    definitions.nodes["tree"] = Object(
        (Property("next", Ref("tree"), False),), (Extra(String(), Integer()),)
    )
    both = meet(definitions, Ref("list"), Ref("tree"))
    assert both == Ref("list & tree")
    definitions.settle()
    assert admits(definitions.nodes, both, {"next": {"next": {}}})
    assert not admits(definitions.nodes, both, {"next": {"next": {"more": 1}}})


def test_numbers_that_are_not_whole_and_back() -> None:
    fractions = minus(Definitions(), Number(0.0, None), Integer())
    assert fractions == Number(0.0, None, gaps=(Fraction(1),))
    assert minus(Definitions(), Number(0.0, None), fractions) == Integer(0, None)


def test_a_pattern_is_negated_rather_than_its_automaton() -> None:
    pattern = Pattern("^a", "ecma")
    assert minus(Definitions(), String(), String(patterns=(pattern,))) == String(
        patterns=(Pattern("^a", "ecma", negated=True),)
    )


def test_some_item_is_wrong() -> None:
    rest = minus(Definitions(), Array(AnyJson()), Array(String()))
    assert admits({}, rest, ["a", 1])
    assert not admits({}, rest, ["a"])
    assert not isinstance(rest, Never)


def test_a_required_property_stays_required_where_another_is_not_declared() -> None:
    first = Object((Property("a", AnyJson()),), (Extra(String(), AnyJson()),))
    rest = minus(Definitions(), first, Object((Property("a", AnyJson(), required=False),)))
    assert admits({}, rest, {"a": 1, "b": 2})
    assert not admits({}, rest, {"b": 2})
