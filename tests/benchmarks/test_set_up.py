"""Setting up a vocabulary: how long it takes, and what it holds with ten schemas."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from structgen.bench.workload import MODELS, token_walks
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.conftest import EOS
from tests.benchmarks.reporting import Report

pytestmark = pytest.mark.bench


def test_vocabulary_set_up(
    report: Report, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    for what, reach in (("first time", "<= 2 s"), ("from cache", "<= 0.2 s")):
        t0 = time.perf_counter()
        Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])
        report.add(f"vocabulary set-up, {what}, s", round(time.perf_counter() - t0, 3), reach)


def test_memory_of_arrays(report: Report, tokenizer: Any) -> None:
    """A vocabulary and the workload, all its values walked; numpy reports to tracemalloc."""
    sg.clear_cache()
    tracemalloc.start()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])
    walks = token_walks(vocabulary)
    for model in MODELS:
        for token_ids in walks[model.__name__]:
            session = sg.compile(model, vocabulary).session()
            for token_id in token_ids:
                session.mask()
                session.advance(token_id)
    used, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    figures = {"held": round(used / 2**20, 1), "peak": round(peak / 2**20, 1)}
    report.add("memory of a 129k vocabulary and a dozen schemas, MiB", figures, "<= 150")
