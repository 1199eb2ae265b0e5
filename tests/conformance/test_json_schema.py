"""A ratchet over public JSON Schema suites: no case may get worse.

`ratchet.json` holds for each suite the refused schemas with their reason and the instances that
are decided wrongly. `STRUCTGEN_RATCHET=write` records a new state, which is reviewed as a diff.
`reasons.json` says for each of these instances' cases why it is meant to be so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import suites

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
RATCHET = Path(__file__).with_name("ratchet.json")
REASONS = Path(__file__).with_name("reasons.json")
SUITES: dict[str, Callable[[Path], Iterator[suites.Case]]] = {
    "jsonschema_test_suite": suites.test_suite,
    "maskbench-dev": suites.maskbench,
}
MOST_REFUSED = {"jsonschema_test_suite": 0.1, "maskbench-dev": 0.02}

pytestmark = pytest.mark.skipif(
    not (DATA / "jsonschema_test_suite").is_dir(),
    reason="the suites are not in the folder that STRUCTGEN_DATA names",
)


@pytest.fixture(scope="module", params=SUITES)
def state(request: pytest.FixtureRequest) -> tuple[str, int, dict[str, Any]]:
    name = request.param
    cases = list(SUITES[name](DATA))
    outcomes = {case.name: suites.outcome(case) for case in cases}
    found = {
        "refused": {key: o.refused for key, o in outcomes.items() if o.refused},
        "wrong": {key: o.wrong for key, o in outcomes.items() if o.wrong},
    }
    if os.environ.get("STRUCTGEN_RATCHET") == "write":
        known = json.loads(RATCHET.read_text()) if RATCHET.exists() else {}
        known[name] = found
        RATCHET.write_text(json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    return name, len(cases), found


def test_no_schema_is_refused_that_was_compiled_before(state):
    name, _, found = state
    known = json.loads(RATCHET.read_text(encoding="utf-8"))[name]["refused"]
    new = {key: why for key, why in found["refused"].items() if key not in known}
    assert not new, "refused, but were compiled before"


def test_no_instance_is_decided_wrongly_that_was_right_before(state):
    name, _, found = state
    known = json.loads(RATCHET.read_text(encoding="utf-8"))[name]["wrong"]
    new = {
        key: [text for text in wrong if text not in known.get(key, ())]
        for key, wrong in found["wrong"].items()
    }
    assert not any(new.values()), "decided wrongly, but were right before"


def test_few_schemas_are_refused(state):
    name, total, found = state
    assert len(found["refused"]) <= MOST_REFUSED[name] * total


@pytest.mark.parametrize("name", SUITES)
def test_every_wrong_case_has_a_reason(name):
    known = json.loads(RATCHET.read_text(encoding="utf-8"))[name]["wrong"]
    groups = json.loads(REASONS.read_text(encoding="utf-8"))[name]
    assert all(len(group["reason"]) > 40 for group in groups)
    assert sorted(case for group in groups for case in group["cases"]) == sorted(known)
