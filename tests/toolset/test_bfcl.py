"""The tools of the Berkeley leaderboard: each is accepted, and no call can be wrong in form."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import structgen as sg
from structgen.compiler import forget_schemas
from structgen.testing import RandomLM, byte_vocabulary

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = DATA / "tool_calling" / "bfcl_v4" / "test.jsonl.gz"
EVERY = 16
"""In the tests; the benchmark takes all rows."""

pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="BFCL is not in the folder that STRUCTGEN_DATA names"
)


def rows() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def check(row: dict[str, Any], vocabulary: sg.Vocabulary, seed: int) -> int:
    """Calls with random logits, as the category asks; their number."""
    parallel = "parallel" in row["category"]
    tools: sg.Tools[Any] = sg.tools(row["tools"], parallel=parallel)
    lm = RandomLM(vocabulary, seed)
    options: dict[str, Any] = {"do_sample": True, "temperature": 2.0, "seed": seed}
    compiled = sg.compile(tools, vocabulary)
    budget = compiled.min_tokens + 150
    value = sg.Generator(tools, lm, max_new_tokens=budget, **options)(row["messages"][-1:])
    forget_schemas()
    calls = value if parallel else [value]
    for call in calls:
        (schema,) = (t["parameters"] for t in row["tools"] if t["name"] == call.name)
        jsonschema.validate(call.arguments, schema)
    return len(calls)


def test_every_tool_is_accepted():
    found = rows()
    assert sum(len(sg.tools(row["tools"])) for row in found) == 561
    assert len(found) == 320


def test_calls_with_random_logits_are_valid():
    vocabulary = byte_vocabulary()
    assert all(check(row, vocabulary, seed) for seed, row in enumerate(rows()[::EVERY]))


@pytest.mark.bench
def test_calls_with_random_logits_are_valid_on_all_rows():
    vocabulary = byte_vocabulary()
    calls = [check(row, vocabulary, seed) for seed, row in enumerate(rows())]
    print(f"\n{sum(calls)} calls of {len(calls)} rows, all with valid names and arguments")
