"""Schema to first mask without any cache, and from the disk in a new process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from structgen.compiler import Compiler
from structgen.options import Options
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.conftest import EOS
from tests.benchmarks.engines import LLGuidance
from tests.benchmarks.models import MODELS
from tests.benchmarks.reporting import Report

pytestmark = pytest.mark.bench

ROUNDS = 5

CHILD = """
import json, sys, time
import structgen as sg
from tests.benchmarks.models import MODELS
vocabulary = sg.Vocabulary.from_tokenizer(sys.argv[1], eos_token_ids=[int(sys.argv[2])])
if sys.argv[3] == "store":
    sg.warmup(*MODELS, vocabulary=vocabulary)
sg.compile(bool, vocabulary).session().mask()  # loads the kernels
seconds = {}
for model in MODELS:
    start = time.perf_counter()
    sg.compile(model, vocabulary).session().mask()
    seconds[model.__name__] = time.perf_counter() - start
print(json.dumps([seconds, sg.cache_info().schemas.loads]))
"""


def child(tokenizer_json: Path, task: str) -> tuple[dict[str, float], int]:
    """Seconds of each model in a process of its own, and how many came from the disk."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tokenizer_json), str(EOS), task],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, n_loads = json.loads(done.stdout)
    return seconds, n_loads


def middle(rounds: list[dict[str, float]]) -> float:
    """Milliseconds: the median over the models of each model's median over the rounds."""
    each = [statistics.median(found[name] for found in rounds) for name in rounds[0]]
    return round(1e3 * statistics.median(each), 3)


def test_first_masks_of_new_processes(
    report: Report, tokenizer_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    child(tokenizer_json, "store")
    found = [child(tokenizer_json, "load") for _ in range(ROUNDS)]
    assert {n_loads for _, n_loads in found} == {len(MODELS)}
    figure = middle([seconds for seconds, _ in found])
    report.add("schema to first mask, new process, from disk, ms", figure, "<= 1")
    for path in (tmp_path / "schema").iterdir():
        path.unlink()
    found = [child(tokenizer_json, "compile") for _ in range(ROUNDS)]
    figure = middle([seconds for seconds, _ in found])
    report.add("schema to first mask, new process, nothing cached, ms", figure)


def test_schema_to_first_mask(report: Report, vocabulary: Vocabulary, tokenizer_json: Path) -> None:
    """In one process, in turns; nothing compiled is kept between the rounds."""
    pytest.importorskip("llguidance", reason="peers are installed by `make bench`")
    peer = LLGuidance(tokenizer_json, vocabulary.width, EOS)

    def ours(model: Any) -> None:
        Compiler().compile(model, vocabulary, Options()).session().mask()

    def theirs(model: Any) -> None:
        peer.start(model).fill()

    engines: dict[str, Callable[[Any], None]] = {"structgen": ours, "llguidance": theirs}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
    for _ in range(ROUNDS + 1):
        for name, start in engines.items():
            rounds[name].append({})
            for model in MODELS:
                begun = time.perf_counter()
                start(model)
                rounds[name][-1][model.__name__] = time.perf_counter() - begun
    for name, found in rounds.items():
        report.add(f"schema to first mask, workload, ms: {name}", middle(found[1:]))
