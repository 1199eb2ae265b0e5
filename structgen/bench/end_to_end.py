"""Objects written by the default model, beside plain text of the same length."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from structgen.bench.measure import rounded
from structgen.bench.plan import Run
from structgen.bench.tasks import TASKS
from structgen.bench.workers import Failed, Job, Worker

LIMIT_S = 300.0
"""For one call, which writes up to sixteen objects."""


def measure(run: Run) -> dict[str, Any]:
    """By task, batch and engine: time, tokens, forward passes; peers as logits processors.

    structgen and plain text are written in one process, by the same model.
    """
    cases: list[dict[str, Any]] = []
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker(Job(name), LIMIT_S)) for name in run.plan.present
        }
        for task in run.plan.tasks or tuple(TASKS):
            able = {
                name: worker
                for name, worker in workers.items()
                if _prepare(run, name, worker, task)
            }
            for batch in run.plan.batches:
                run.say(f"writing: {task}, batch {batch}")
                cases.append(_case(run, able, task, batch))
                able = {n: w for n, w in able.items() if n in cases[-1]["engines"]}
    return {"cases": cases}


def _prepare(run: Run, name: str, worker: Worker, task: str) -> bool:
    """Let an engine compile a task, within the limit of all calls; whether it did."""
    worker.limit_s = run.plan.limit_s
    try:
        worker.call("prepare", task=task)
    except Failed as error:
        run.refuse(name, f"writing: {task}", error)
        return False
    finally:
        worker.limit_s = LIMIT_S
    return True


def _case(run: Run, workers: dict[str, Worker], task: str, batch: int) -> dict[str, Any]:
    """One task: the engines take turns; the first round is not counted."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    able = dict(workers)
    for number in range(-1, run.plan.rounds.writing):
        for name, worker in tuple(able.items()):
            try:
                written = worker.call("write", task=task, batch=batch)
                if name == "structgen":
                    written |= _free(worker, task, written["tokens"], batch)
            except Failed as error:
                run.refuse(name, f"writing: {task}, batch {batch}", error)
                del able[name]
                continue
            if number >= 0:
                found[name].append(written)
    engines = {name: _figures(runs) for name, runs in found.items() if runs}
    return {"task": task, "batch": batch, "engines": engines}


def _free(worker: Worker, task: str, lengths: list[int], batch: int) -> dict[str, float]:
    """Seconds of plain text of these lengths, and of rows that all have the mean length."""
    options = {"task": task, "lengths": lengths, "batch": batch}
    seconds = {"free_seconds": worker.call("write_free", even=False, **options)}
    if batch > 1:
        seconds["even_seconds"] = worker.call("write_free", even=True, **options)
    return seconds


def _figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds, in which the same objects are written."""
    last = runs[-1]
    n_objects, n_tokens = len(last["tokens"]), sum(last["tokens"])
    seconds = statistics.median(run["seconds"] for run in runs)
    figures: dict[str, Any] = {
        "objects": n_objects,
        "valid": last["valid"],
        "tokens_per_object": rounded(n_tokens / n_objects),
        "seconds_per_object": rounded(seconds / n_objects),
        "tokens_per_second": rounded(n_tokens / seconds),
        "passes_per_token": rounded(last["passes"] / n_tokens),
    }
    if "free_seconds" in last:
        free = statistics.median(run["free_seconds"] for run in runs)
        figures["free_seconds_per_object"] = rounded(free / n_objects)
        figures["free_tokens_per_second"] = rounded(n_tokens / free)
        figures["times_faster_than_free"] = rounded(
            statistics.median(run["free_seconds"] / run["seconds"] for run in runs)
        )
        if "even_seconds" in last:
            even = statistics.median(run["even_seconds"] for run in runs)
            figures["even_seconds_per_object"] = rounded(even / n_objects)
            figures["even_tokens_per_second"] = rounded(n_tokens / even)
            figures["times_faster_than_even"] = rounded(
                statistics.median(run["even_seconds"] / run["seconds"] for run in runs)
            )
        shares = [run["mask_share"] for run in runs]
        figures["mask_share"] = rounded(statistics.median(shares))
    return figures
