"""Tools: a thousand of them to the first mask, and how often a small model calls the right one."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.compiler import forget_schemas
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.reporting import Report, summary

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = DATA / "tool_calling" / "bfcl_v4" / "test.jsonl.gz"
SAMPLE = 40
"""Rows that the default model answers: each takes seconds on two cores."""
SINGLE = ("simple_python", "multiple", "live_simple", "live_multiple")

pytestmark = pytest.mark.bench

VERBS = ("get", "set", "list", "create", "delete", "find", "send", "read", "open", "close")
KINDS = ("current", "last", "next", "daily", "local", "remote", "public", "private")
THINGS = ("weather", "user", "file", "order", "ticket", "song", "movie", "flight", "hotel", "car")
ENDS = ("", "_now")


def described(name: str, index: int) -> dict[str, Any]:
    properties = {
        "city": {"type": "string", "description": "the city"},
        "days": {"type": "integer"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        f"extra_{index % 50}": {"type": "string", "maxLength": 40},
    }
    parameters = {"type": "object", "properties": properties, "required": ["city", "days"]}
    return {"name": name, "description": name.replace("_", " "), "parameters": parameters}


def test_a_thousand_tools(vocabulary: Vocabulary, report: Report) -> None:
    names = [f"{a}_{b}_{c}{d}" for a in VERBS for b in KINDS for c in THINGS for d in ENDS]
    random.Random(3).shuffle(names)
    items = [described(name, index) for index, name in enumerate(names[:1000])]
    sg.compile(sg.tools(items[:8]), vocabulary).session(200).mask()  # kernels are loaded
    forget_schemas()
    row = np.zeros(vocabulary.n_words, np.int32)
    started = time.perf_counter()
    tools = sg.tools(items)
    read = time.perf_counter()
    compiled = sg.compile(tools, vocabulary)
    built = time.perf_counter()
    compiled.session(200).fill_mask(row)
    masked = time.perf_counter()
    sg.compile(tools.only(*names[:5]), vocabulary)
    chosen = time.perf_counter()
    sg.compile(tools.only(*names[:5]), vocabulary)
    again = time.perf_counter()
    report.add("1,000 tools: sg.tools, ms", round((read - started) * 1e3), "")
    report.add("1,000 tools: compile, ms", round((built - read) * 1e3), "with the above < 2000")
    report.add("1,000 tools: first mask, ms", round((masked - built) * 1e3, 2))
    report.add("5 of 1,000: compile, ms", round((chosen - masked) * 1e3, 2))
    report.add("5 of 1,000: the same again, ms", round((again - chosen) * 1e3, 3))
    report.add("masks in 20 calls, first visits, us", summary(_steps(compiled, names)))
    report.add("masks in 20 calls, warm, us", summary(_steps(compiled, names)))


def _steps(compiled: sg.CompiledSchema[Any], names: list[str]) -> list[float]:
    """Seconds of each mask and step along some calls."""
    encode = compiled.vocabulary.encode
    assert encode is not None
    row = np.zeros(compiled.vocabulary.n_words, np.int32)
    times: list[float] = []
    for name in names[:1000:50]:
        session = compiled.session(200)
        for token in encode(f'{{"name": "{name}", "arguments": {{"city": "Porto", "days": 3}}}}'):
            started = time.perf_counter()
            session.fill_mask(row)
            session.advance(token)
            times.append(time.perf_counter() - started)
    return times


@pytest.mark.skipif(not FILE.is_file(), reason="BFCL is not in the folder of STRUCTGEN_DATA")
@pytest.mark.parametrize("told", [True, False])
def test_accuracy_of_the_default_model(told: bool, report: Report) -> None:
    """Greedy, on a sample of the requests that want one call."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    wanted = [row for row in rows if row["category"] in SINGLE and len(row["expected"]) == 1]
    lm = sg.default_lm()
    named = right = 0
    for row in random.Random(3).sample(wanted, SAMPLE):
        tools = sg.tools(row["tools"])
        call = sg.Generator(tools, lm, max_new_tokens=150, schema_prompt=told)(row["messages"])
        ((name, arguments),) = row["expected"][0].items()
        assert call.name in tools
        named += call.name == name
        right += call.name == name and fits(call.arguments, arguments)
    figures = {"name": f"{named} of {SAMPLE}", "name and arguments": f"{right} of {SAMPLE}"}
    report.add(f"BFCL, SmolLM2-135M, tools {'told' if told else 'not told'}", figures)


def fits(arguments: dict[str, Any], accepted: dict[str, list[Any]]) -> bool:
    """Whether every argument has an accepted value; '' among these: it may be left out."""
    missing = accepted.keys() - arguments.keys()
    if arguments.keys() - accepted.keys() or any("" not in accepted[key] for key in missing):
        return False
    return all(any(same(arguments[key], v) for v in accepted[key]) for key in arguments)


def same(value: Any, wanted: Any) -> bool:
    """Equal as the leaderboard compares: texts without case, blanks and punctuation."""
    if isinstance(value, str) and isinstance(wanted, str):
        return plain(value) == plain(wanted)
    if isinstance(value, list) and isinstance(wanted, list):
        pairs = zip(value, wanted, strict=False)
        return len(value) == len(wanted) and all(same(a, b) for a, b in pairs)
    if isinstance(value, dict) and isinstance(wanted, dict):
        return fits(value, {key: v if isinstance(v, list) else [v] for key, v in wanted.items()})
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def plain(text: str) -> str:
    return "".join(char for char in text.lower() if char not in " ,./-_*^'\"")
