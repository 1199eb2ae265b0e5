"""What an engine's process takes: set up for a vocabulary, and after the whole workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structgen.bench.measure import rounded
from structgen.bench.plan import Plan
from structgen.bench.workers import Failed, Worker
from structgen.bench.workload import MODELS


def measure(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """MiB of resident memory by engine, each in a new process."""
    models = list(plan.models or (model.__name__ for model in MODELS))
    found: dict[str, Any] = {}
    with plan.workers() as workers:
        for name, worker in workers.items():
            say(f"memory: {name}")
            found[name] = _of(worker, models)
    return {"engines": found}


def _of(worker: Worker, models: list[str]) -> dict[str, Any]:
    """The figures of one engine; a model that ends its process makes them begin anew."""
    refused: dict[str, str] = {}
    while True:
        try:
            worker.call("ready")
        except Failed as error:
            return {"failed": str(error)}
        for model in (m for m in models if m not in refused):
            try:
                worker.call("walk", model=model, new=False, times=1)
            except Failed as error:
                refused[model] = str(error)
                break
        else:
            mib = {part: rounded(value) for part, value in worker.call("memory").items()}
            return {"mib": mib, "refused": refused}
        worker.close()
