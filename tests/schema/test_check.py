"""Which schemas no finite value matches."""

from __future__ import annotations

import pytest
from hypothesis import given

from structgen.schema.check import unsatisfiable
from structgen.schema.nodes import (
    Array,
    Integer,
    Labels,
    Never,
    Object,
    Property,
    Ref,
    Schema,
    String,
    Union,
    map_of,
)
from tests import strategies
from tests.strategies import examples

NULL = Labels((b"null",))


def obj(node, *, required=True):
    return Object((Property("a", node, required),))


FINITE = [
    ({"A": obj(Ref("A"), required=False)}, Ref("A")),
    ({"A": obj(Union((Ref("A"), NULL)))}, Ref("A")),
    ({"A": obj(Array(Ref("A")))}, Ref("A")),
    ({"A": obj(map_of(String(), Ref("A")))}, Ref("A")),
    ({"A": obj(Ref("B")), "B": obj(Union((NULL, Ref("A"))))}, Ref("A")),
    ({"A": obj(Ref("A"))}, Union((Ref("A"), NULL))),
    ({"A": obj(Ref("A"))}, obj(Ref("A"), required=False)),
    ({"A": obj(Ref("A"))}, Array(Ref("A"))),
    ({}, Array(Never("no"))),
]


@pytest.mark.parametrize(("definitions", "root"), FINITE, ids=str)
def test_finite(definitions, root):
    assert unsatisfiable(Schema(root, definitions)) == ()


INFINITE = [
    ({"A": obj(Ref("A"))}, Ref("A"), ["$.a"]),
    ({"A": obj(Ref("B")), "B": obj(Ref("A"))}, Ref("A"), ["$.a.a"]),
    ({"A": Array(Ref("A"), 1)}, Ref("A"), ["$[*]"]),
    ({"A": Union((obj(Ref("A")), Array(Ref("A"), 2)))}, Ref("A"), ["$.a", "$[*]"]),
    ({"A": obj(Ref("A"))}, obj(Array(Ref("A"), 1)), ["$.a[*].a"]),
    ({"A": Ref("B"), "B": Ref("A")}, Ref("A"), ["$"]),
    ({}, Never("why"), ["$"]),
    ({}, obj(Never("why", "$.a")), ["$.a"]),
]


@pytest.mark.parametrize(("definitions", "root", "paths"), INFINITE, ids=str)
def test_infinite(definitions, root, paths):
    faults = unsatisfiable(Schema(root, definitions))
    assert [fault.path for fault in faults] == paths
    assert all(fault.problem for fault in faults)


@examples(100)
@given(strategies.schemas())
def test_random_schemas_have_values(schema):
    assert unsatisfiable(schema) == ()


def test_a_shared_definition_is_reported_once():
    schema = Schema(
        Object((Property("x", Ref("A")), Property("y", Integer()))), {"A": obj(Ref("A"))}
    )
    assert len(unsatisfiable(schema)) == 1
