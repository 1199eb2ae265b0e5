"""Masks and steps along the values of the workload: states met for the first time, and again.

Also what the processes of the engines take by then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structgen.bench.measure import US, flat, rounded, settled, summary
from structgen.bench.plan import Run
from structgen.bench.workers import Failed, Worker

N_ROWS = 64
WARM_UPS = 2


Walks = dict[str, list[list[float]]]
"""By model: in each round the seconds of each mask and the step behind it."""


def measure(run: Run) -> dict[str, Any]:
    """Microseconds by engine: of all positions, and of each model.

    A figure is the median over the rounds at each position; `..._all` has every sample.
    """
    plan = run.plan
    with plan.workers() as workers:
        for number in range(WARM_UPS):
            run.say(f"masks: warming up, {number + 1} of {WARM_UPS}")
            _take_turns(run, workers, {}, new=False)
        # A process that was stopped and began anew has walked all models now, too.
        mib = {name: _memory(run, name, worker) for name, worker in workers.items()}
        warm: dict[str, Walks] = {name: {} for name in workers}
        for number in range(plan.rounds.warm):
            run.say(f"masks: warm, round {number + 1} of {plan.rounds.warm}")
            _take_turns(run, workers, warm, new=False)
        rows = {name: _fill_rows(run, name, worker) for name, worker in workers.items()}
        new: dict[str, Walks] = {name: {} for name in workers}
        for number in range(plan.rounds.new):
            run.say(f"masks: first visits, round {number + 1} of {plan.rounds.new}")
            _take_turns(run, workers, new, new=True)
    engines: dict[str, Any] = {}
    for name in workers:
        usable = run.usable(name)
        engines[name] = _figures("warm", warm[name], usable) | _figures("new", new[name], usable)
        engines[name] |= {"rows": summary(rows[name], US), "mib": mib[name]}
    return {"engines": engines}


def _take_turns(
    run: Run, workers: dict[str, Worker], found: dict[str, Walks], *, new: bool
) -> None:
    """One round: the engines take turns, model by model."""
    for model in run.models:
        for name, worker in workers.items():
            if model not in run.usable(name):
                continue
            try:
                options = {"model": model, "new": new, "times": run.plan.rounds.times}
                seconds = worker.call("walk", **options)
            except Failed as error:
                run.refuse(name, model, error)
            else:
                if found:
                    found[name].setdefault(model, []).extend(seconds)


def _memory(run: Run, name: str, worker: Worker) -> dict[str, float]:
    """MiB of an engine with its vocabulary, and of all models; empty if that failed."""
    try:
        return {part: rounded(value) for part, value in worker.call("memory").items()}
    except Failed as error:
        run.refuse(name, "memory", error)
        return {}


def _fill_rows(run: Run, name: str, worker: Worker) -> list[float]:
    """Seconds for the masks of a whole batch, at places that were all met before."""
    options = {"models": run.usable(name), "n_rows": N_ROWS, "rounds": run.plan.rounds.filling}
    try:
        return worker.call("fill_rows", **options)
    except Failed as error:
        run.refuse(name, f"{N_ROWS} rows", error)
        return []


def _figures(kind: str, walks: Walks, models: list[str]) -> dict[str, Any]:
    middle = {model: settled(walks[model]) for model in models}
    every = flat(flat(walks[model]) for model in models)
    positions = flat(middle.values())
    return {
        kind: summary(positions, US),
        f"{kind}_all": summary(every, US),
        f"{kind}_models": {model: summary(seconds, US) for model, seconds in middle.items()},
        f"{kind}_percentiles": _percentiles(positions),
    }


def _percentiles(seconds: list[float]) -> list[float]:
    """Microseconds at 0, 1, ... 100 %; empty if there are none."""
    if not seconds:
        return []
    return [rounded(float(q) * US) for q in np.percentile(np.array(seconds), range(101))]
