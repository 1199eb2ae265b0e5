"""From a schema to its first mask: nothing remembered, and from the disk in a new process."""

from __future__ import annotations

import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from structgen.bench.measure import MS, SLOW_S, rounded, summary
from structgen.bench.plan import Plan, Run
from structgen.bench.workers import Failed, Worker

NO_DISK = {"STRUCTGEN_CACHE_BYTES": "0"}

Samples = dict[str, list[dict[str, float]]]
"""By model: the seconds of each round."""


def measure(run: Run) -> dict[str, Any]:
    """Milliseconds by engine and model; structgen also with its disk cache."""
    with run.plan.workers(NO_DISK) as workers:
        engines = _cold(run, workers)
    found: dict[str, Any] = {"engines": engines}
    if "structgen" in run.plan.present:
        run.say("compiling: from the disk, in new processes")
        found["from_disk"] = _from_disk(run.plan, run.models)
    return found


def _cold(run: Run, workers: dict[str, Worker]) -> dict[str, Any]:
    """The engines take turns, model by model; nothing that was compiled is remembered."""
    rounds = run.plan.rounds
    samples: dict[str, Samples] = {name: {} for name in workers}
    for number in range(rounds.compiling):
        run.say(f"compiling: round {number + 1} of {rounds.compiling}")
        for model in run.models:
            for name, worker in workers.items():
                known = samples[name].setdefault(model, [])
                slow = known and known[-1]["first_mask"] > SLOW_S
                if slow or model not in run.usable(name):
                    continue
                options = {"model": model, "forget": True, "times": rounds.times}
                try:
                    known += worker.call("first_mask", **options)
                except Failed as error:
                    run.refuse(name, model, error)
    return {name: _figures(samples[name], run.usable(name)) for name in workers}


def _figures(samples: Samples, models: list[str]) -> dict[str, Any]:
    each = {
        model: {
            part: rounded(MS * statistics.median(found[part] for found in samples[model]))
            for part in samples[model][0]
        }
        for model in models
    }
    whole = [times["first_mask"] / MS for times in each.values()]
    own = [(times["first_mask"] - times["json_schema"]) / MS for times in each.values()]
    return {
        "models_ms": each,
        "from_class_ms": summary(whole, MS),
        "from_schema_ms": summary(own, MS),
        "processor_ms": summary([times["processor"] / MS for times in each.values()], MS),
    }


def _from_disk(plan: Plan, models: list[str]) -> dict[str, Any]:
    """Of processes that begin with structgen, after another one stored all models."""
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
