"""Collects figures of a benchmark run, prints them and keeps them as JSON."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path("build/bench.json")


def summary(seconds: list[float]) -> dict[str, float]:
    """Microseconds: mean, median, 99th percentile, maximum."""
    us = np.array(seconds) * 1e6
    return {
        "mean": round(float(us.mean()), 2),
        "p50": round(float(np.median(us)), 2),
        "p99": round(float(np.percentile(us, 99)), 2),
        "max": round(float(us.max()), 2),
    }


class Report:
    """Rows of (what was measured, figures, what to reach)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, what: str, figures: object, reach: str = "") -> None:
        self.rows.append({"what": what, "figures": figures, "reach": reach})

    def write(self) -> str:
        """Save the rows, and return them as text."""
        RESULTS.parent.mkdir(exist_ok=True)
        machine = {"machine": platform.processor() or platform.machine()}
        RESULTS.write_text(json.dumps({**machine, "rows": self.rows}, indent=1))
        return "\n".join(f"{row['what']:58} {row['figures']}   {row['reach']}" for row in self.rows)
