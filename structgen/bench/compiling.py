"""From a schema to its first mask: nothing remembered, and from the disk in a new process."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from structgen.bench.measure import MS, rounded, summary
from structgen.bench.plan import Plan, Rounds
from structgen.bench.workers import Failed, Worker
from structgen.bench.worker import SLOW_S
from structgen.bench.workload import MODELS

NO_DISK = {"STRUCTGEN_CACHE_BYTES": "0"}

Samples = dict[str, list[dict[str, float]]]
"""By model: the seconds of each round."""


def measure(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """Milliseconds by engine and model; structgen also with its disk cache."""
    models = list(plan.models or (model.__name__ for model in MODELS))
    with plan.workers(NO_DISK) as workers:
        engines = _cold(workers, models, plan.rounds, say)
    found: dict[str, Any] = {"engines": engines}
    if "structgen" in plan.present:
        say("compiling: from the disk, in new processes")
        found["from_disk"] = _from_disk(plan, models)
    return found


def _cold(
    workers: dict[str, Worker], models: list[str], rounds: Rounds, say: Callable[[str], None]
) -> dict[str, Any]:
    """The engines take turns, model by model; nothing that was compiled is remembered."""
    samples: dict[str, Samples] = {name: {model: [] for model in models} for name in workers}
    refused: dict[str, dict[str, str]] = {name: {} for name in workers}
    for number in range(rounds.compiling):
        say(f"compiling: round {number + 1} of {rounds.compiling}")
        for model in models:
            for name, worker in workers.items():
                known = samples[name][model]
                if model in refused[name] or (known and known[-1]["first_mask"] > SLOW_S):
                    continue
                options = {"model": model, "forget": True, "times": rounds.times}
                try:
                    known += worker.call("first_mask", **options)
                except Failed as error:
                    refused[name][model] = str(error)
    return {name: _by_model(samples[name], refused[name]) for name in workers}


def _by_model(samples: Samples, refused: dict[str, str]) -> dict[str, Any]:
    each = {
        model: {
            part: rounded(MS * statistics.median(found[part] for found in rounds))
            for part in rounds[0]
        }
        for model, rounds in samples.items()
        if rounds and model not in refused
    }
    whole = [(times["first_mask"] + times["json_schema"]) / MS for times in each.values()]
    alone = [times["first_mask"] / MS for times in each.values()]
    return {
        "models_ms": each,
        "refused": refused,
        "from_class_ms": summary(whole, MS),
        "from_schema_ms": summary(alone, MS),
        "processor_ms": summary([times["processor"] / MS for times in each.values()], MS),
    }


def _from_disk(plan: Plan, models: list[str]) -> dict[str, Any]:
    """structgen in processes that begin, after another one stored all models."""
    with TemporaryDirectory() as folder:
        with Worker(plan.job("structgen", {"STRUCTGEN_CACHE_DIR": folder}), plan.limit_s) as worker:
            worker.call("store")
        stored = [_new_process(plan, models, folder) for _ in range(plan.rounds.compiling)]
        for path in Path(folder, "schema").iterdir():
            path.unlink()
        unstored = [_new_process(plan, models, folder) for _ in range(plan.rounds.compiling)]
    return {
        "stored_ms": _middle([seconds for seconds, _ in stored]),
        "not_stored_ms": _middle([seconds for seconds, _ in unstored]),
        "loads": stored[0][1],
    }


def _new_process(plan: Plan, models: list[str], folder: str) -> tuple[dict[str, float], int]:
    """Seconds of each model, and how many came from the disk."""
    with Worker(plan.job("structgen", {"STRUCTGEN_CACHE_DIR": folder}), plan.limit_s) as worker:
        seconds = {
            model: worker.call("first_mask", model=model, forget=False, times=1)[0]["first_mask"]
            for model in models
        }
        return seconds, worker.call("loads")


def _middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Over the models, of each one's median over the rounds."""
    each = [statistics.median(found[model] for found in rounds) for model in rounds[0]]
    return summary(each, MS)
