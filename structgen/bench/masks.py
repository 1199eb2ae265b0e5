"""Masks and steps along the values of the workload: states met for the first time, and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structgen.bench.measure import US, flat, rounded, settled, summary
from structgen.bench.plan import Plan
from structgen.bench.workers import Failed, Worker
from structgen.bench.workload import MODELS

N_ROWS = 64
WARM_UPS = 2


@dataclass
class Walks:
    """What one engine took for each model: seconds of mask and step together."""

    warm: dict[str, list[list[float]]] = field(default_factory=dict[str, list[list[float]]])
    new: dict[str, list[list[float]]] = field(default_factory=dict[str, list[list[float]]])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    rows: list[float] = field(default_factory=list[float])


def measure(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """Microseconds by engine: of all positions, and of each model.

    A figure is the median over the rounds at each position; `..._all` has every sample.
    """
    models = list(plan.models or (model.__name__ for model in MODELS))
    with plan.workers() as workers:
        found = {name: Walks() for name in workers}
        for number in range(-WARM_UPS, plan.rounds.warm):
            say(f"masks: warm, round {number + 1} of {plan.rounds.warm}")
            _take_turns(workers, found, models, plan.rounds.times, new=False, kept=number >= 0)
        _fill_rows(workers, found, models, plan.rounds.filling)
        for number in range(plan.rounds.new):
            say(f"masks: first visits, round {number + 1} of {plan.rounds.new}")
            _take_turns(workers, found, models, plan.rounds.times, new=True, kept=True)
    return {"engines": {name: _figures(walks) for name, walks in found.items()}}


def _take_turns(
    workers: dict[str, Worker],
    found: dict[str, Walks],
    models: list[str],
    times: int,
    *,
    new: bool,
    kept: bool,
) -> None:
    for model in models:
        for name, worker in workers.items():
            walks = found[name]
            if model in walks.refused:
                continue
            try:
                seconds = worker.call("walk", model=model, new=new, times=times)
            except Failed as error:
                walks.refused[model] = str(error)
                continue
            if kept:
                (walks.new if new else walks.warm).setdefault(model, []).extend(seconds)


def _fill_rows(
    workers: dict[str, Worker], found: dict[str, Walks], models: list[str], rounds: int
) -> None:
    """Masks of a whole batch, at places that were all met before."""
    for name, worker in workers.items():
        usable = [model for model in models if model not in found[name].refused]
        try:
            seconds = worker.call("fill_rows", models=usable, n_rows=N_ROWS, rounds=rounds)
        except (Failed, ZeroDivisionError) as error:
            found[name].refused[f"{N_ROWS} rows"] = str(error)
        else:
            found[name].rows = seconds


def _figures(walks: Walks) -> dict[str, Any]:
    figures: dict[str, Any] = {"refused": walks.refused}
    for kind, by_model in (("warm", walks.warm), ("new", walks.new)):
        by_model = {m: rounds for m, rounds in by_model.items() if m not in walks.refused}
        middle = {model: settled(rounds) for model, rounds in by_model.items()}
        positions = flat(middle.values())
        figures[kind] = summary(positions, US)
        figures[f"{kind}_all"] = summary(flat(flat(r) for r in by_model.values()), US)
        figures[f"{kind}_models"] = {model: summary(m, US) for model, m in middle.items()}
        figures[f"{kind}_percentiles"] = _percentiles(positions)
    figures["rows"] = summary(walks.rows, US)
    return figures


def _percentiles(seconds: list[float]) -> list[float]:
    """Microseconds at 0, 1, ... 100 %; empty if there are none."""
    if not seconds:
        return []
    return [rounded(float(q) * US) for q in np.percentile(np.array(seconds), range(101))]
