"""Random schemas compile exactly or are refused: no other error, no invalid value, no hang."""

from __future__ import annotations

import copy
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.suites import maskbench
from tests.conformance.test_json_schema import DATA
from tests.fuzz.grammar import mutate, schemas
from tests.strategies import examples

check = pytest.importorskip("tests.fuzz.check", exc_type=ImportError)

SEEDS = st.integers(0, 2**32)


@examples(100)
@given(schemas(), SEEDS)
def test_schemas_by_a_grammar(schema, seed):
    check.exact_or_refused(schema, seed)


@cache
def real_schemas() -> list[Any]:
    """Those of MaskBench that are small enough to be tried often."""
    return [case.schema for case in maskbench(DATA) if len(str(case.schema)) < 4000]


@pytest.mark.skipif(
    not (DATA / "maskbench-dev").is_dir(),
    reason="MaskBench is not in the folder that STRUCTGEN_DATA names",
)
@examples(60)
@given(st.data())
def test_real_schemas_with_changes(data):
    schema = copy.deepcopy(data.draw(st.sampled_from(real_schemas())))
    seed = data.draw(SEEDS)
    mutate(schema, random.Random(seed))
    check.exact_or_refused(schema, seed, count=1)
