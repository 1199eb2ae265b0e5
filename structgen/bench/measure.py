"""Figures from times: what is shown of many samples, and what remains of them without the noise."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter

import numpy as np

SLOW_S = 1.0
"""What takes longer is not repeated."""
US = 1e6
MS = 1e3


def summary(seconds: Sequence[float], unit: float) -> dict[str, float]:
    """Number, mean, median, 99th percentile and maximum, times `unit`, to four digits.

    Example: `summary([1e-6, 3e-6], US)` -> `{"n": 2, "mean": 2.0, "p50": 2.0, "p99": ..., ...}`
    """
    if not seconds:
        return {"n": 0}
    array = np.array(seconds) * unit
    found = {
        "mean": float(array.mean()),
        "p50": float(np.median(array)),
        "p99": float(np.percentile(array, 99)),
        "max": float(array.max()),
    }
    return {"n": len(array)} | {name: rounded(value) for name, value in found.items()}


def rounded(value: float) -> float:
    """To four significant digits, which is more than timings have."""
    return float(f"{value:.4g}")


def settled(rounds: Sequence[Sequence[float]]) -> list[float]:
    """The median over the rounds at each position: what it takes when nothing else interferes.

    Example: `settled([[1, 5], [2, 5], [9, 4]])` -> `[2, 5]`
    """
    return [statistics.median(samples) for samples in zip(*rounds, strict=True)]


def timed(function: Callable[[], object]) -> float:
    """Seconds of one call."""
    begun = perf_counter()
    function()
    return perf_counter() - begun


def in_turns(
    functions: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Seconds of every call: all functions once, then again, so that noise meets all alike.

    Args:
        before: called before each call, outside of the time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            before()
            seconds[name].append(timed(function))
    return seconds


def flat(lists: Iterable[Iterable[float]]) -> list[float]:
    """All items, in order."""
    return [item for items in lists for item in items]


def resident_mib() -> float:
    """Memory that this process takes right now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20
