"""Where and with what a benchmark ran."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from structgen.bench.engines import ENGINES

PACKAGES = ("numpy", "numba", "pydantic", "torch", "transformers", "tokenizers")


def about() -> dict[str, Any]:
    """Processor, system, versions; None for what is not installed."""
    distributions = (*PACKAGES, *(engine.distribution for engine in ENGINES.values()))
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in distributions},
    }


def _processor() -> str:
    """The name that Linux knows, elsewhere Python's."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
