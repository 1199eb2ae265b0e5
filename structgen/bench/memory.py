"""What an engine's process takes: set up for a vocabulary, and after the whole workload."""

from __future__ import annotations

from typing import Any

from structgen.bench.measure import rounded
from structgen.bench.plan import Run
from structgen.bench.workers import Failed, Worker


def measure(run: Run) -> dict[str, Any]:
    """MiB of resident memory by engine, each in a new process."""
    found: dict[str, Any] = {}
    with run.plan.workers() as workers:
        for name, worker in workers.items():
            run.say(f"memory: {name}")
            found[name] = _of(run, name, worker)
    return {"engines": found}


def _of(run: Run, name: str, worker: Worker) -> dict[str, float]:
    """The figures of one engine; a model that ends its process makes them begin anew."""
    while True:
        for model in run.usable(name):
            try:
                worker.call("walk", model=model, new=False, times=1)
            except Failed as error:
                run.refuse(name, model, error)
                worker.close()
                break
        else:
            return {part: rounded(value) for part, value in worker.call("memory").items()}
