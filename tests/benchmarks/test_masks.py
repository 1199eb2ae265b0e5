"""Masks and compilation, beside llguidance in the same run."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.conftest import EOS
from tests.benchmarks.engines import Engine, LLGuidance, Structgen
from tests.benchmarks.reporting import Report, summary
from tests.benchmarks.workload import Order

pytestmark = pytest.mark.bench

Walks = list[tuple[type, list[int]]]
ROUNDS = 20


@pytest.fixture(scope="module")
def ours(vocabulary: Vocabulary) -> Structgen:
    return Structgen(vocabulary)


@pytest.fixture(scope="module")
def llguidance(tokenizer_json: Path, vocabulary: Vocabulary) -> LLGuidance:
    pytest.importorskip("llguidance", reason="peers are installed by `make bench`")
    return LLGuidance(tokenizer_json, vocabulary.width, EOS)


def walk(engine: Engine, walks: Walks) -> tuple[list[float], list[float]]:
    """Seconds of each mask and each step over all values; every token must be allowed."""
    masks: list[float] = []
    steps: list[float] = []
    clock = time.perf_counter
    for model, token_ids in walks:
        walker = engine.start(model)
        for token_id in token_ids:
            t0 = clock()
            walker.fill()
            t1 = clock()
            assert walker.allows(token_id), (engine.name, model, token_id)
            t2 = clock()
            walker.take(token_id)
            t3 = clock()
            masks.append(t1 - t0)
            steps.append(t3 - t2)
    return masks, steps


def test_warm_masks(report: Report, walks: Walks, ours: Structgen, llguidance: LLGuidance) -> None:
    """States that were all seen before; the engines take turns."""
    for engine in (ours, llguidance):
        walk(engine, walks)
    seconds: dict[str, tuple[list[float], list[float]]] = {
        "structgen": ([], []),
        "llguidance": ([], []),
    }
    for _ in range(ROUNDS):
        for engine in (ours, llguidance):
            masks, steps = walk(engine, walks)
            seconds[engine.name][0].extend(masks)
            seconds[engine.name][1].extend(steps)
    for name, (masks, steps) in seconds.items():
        report.add(f"mask, warm, us: {name}", summary(masks), "<= 5 us mean")
        report.add(f"advance, warm, us: {name}", summary(steps))
    ratio = sum(seconds["llguidance"][0]) / sum(seconds["structgen"][0])
    report.add("mask, warm: times faster than llguidance", round(ratio, 1), ">= 4")


def test_first_visits(report: Report, walks: Walks, ours: Structgen) -> None:
    """New schemas over a vocabulary whose string masks are known."""
    walk(ours, walks)
    masks: list[float] = []
    steps: list[float] = []
    for _ in range(ROUNDS):
        ours.forget()
        for one in {model: (model, ids) for model, ids in reversed(walks)}.values():
            more_masks, more_steps = walk(ours, [one])
            masks.extend(more_masks)
            steps.extend(more_steps)
    report.add("mask, first visit, us: structgen", summary(masks), "<= 40 mean, 300 p99")
    report.add("advance, first visit, us: structgen", summary(steps))


def test_schema_to_first_mask(report: Report, ours: Structgen, llguidance: LLGuidance) -> None:
    """The ten-field model, class given, in turns."""
    seconds: dict[str, list[float]] = {"structgen": [], "llguidance": [], "cached": []}
    for _ in range(10 * ROUNDS):
        ours.forget()
        for name, engine in (("structgen", ours), ("cached", ours), ("llguidance", llguidance)):
            t0 = time.perf_counter()
            engine.start(Order).fill()
            seconds[name].append(time.perf_counter() - t0)
    for name, values in seconds.items():
        reach = "<= 50 us" if name == "cached" else ""
        report.add(f"schema to first mask, us: {name}", summary(values), reach)
    halves = {name: sorted(values)[len(values) // 2] for name, values in seconds.items()}
    ratio = halves["structgen"] / halves["llguidance"]
    report.add("schema to first mask: ours / llguidance, medians", round(ratio, 2), "<= 1.5")


def test_vocabulary_set_up(
    report: Report, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    for what, reach in (("first time", "<= 2 s"), ("from cache", "<= 0.2 s")):
        t0 = time.perf_counter()
        Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])
        report.add(f"vocabulary set-up, {what}, s", round(time.perf_counter() - t0, 3), reach)


def test_memory(report: Report, tokenizer: Any, walks: Walks) -> None:
    """A vocabulary and ten schemas, all their values walked; numpy reports to tracemalloc."""
    sg.clear_cache()
    models = {model for model, _ in walks}
    tracemalloc.start()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])
    engine = Structgen(vocabulary)
    for copy in range(-(-10 // len(models))):
        renamed = {m: type(f"{m.__name__}{copy}", (m,), {}) for m in models}
        walk(engine, [(renamed[model], ids) for model, ids in walks])
    used, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    figures = {"held": round(used / 2**20, 1), "peak": round(peak / 2**20, 1)}
    report.add("memory of a 129k vocabulary and ten schemas, MiB", figures, "<= 150")
