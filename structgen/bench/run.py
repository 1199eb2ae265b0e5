"""One run: measure, keep the results as JSON, draw them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from structgen.bench import applying, compiling, end_to_end, imports, masks
from structgen.bench.figures import figures
from structgen.bench.machine import about
from structgen.bench.plan import Plan, Run

FORMAT = 1
RESULTS = "results.json"

MEASURE: dict[str, Callable[[Run], dict[str, Any]]] = {
    "imports": imports.measure,
    "compiling": compiling.measure,
    "masks": masks.measure,
    "applying": applying.measure,
    "writing": end_to_end.measure,
}


def run(
    plan: Plan, *, date: str = "", command: str = "", say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Everything that the plan asks for.

    Args:
        date: when, for the report.
        command: how this was started, for the report.
        say: told what is being measured.
    """
    results: dict[str, Any] = {
        "format": FORMAT,
        "about": {"date": date, "command": command, **about()},
        "vocabulary": {"tokenizer": _short(plan.tokenizer), "width": plan.width},
        "not_installed": plan.absent,
    }
    begun = Run(plan, say)
    for name in MEASURE:
        if name in plan.only:
            results[name] = MEASURE[name](begun)
    results["refused"] = begun.refused
    results["figures"] = figures(results)
    return results


def _short(tokenizer: str) -> str:
    """Enough of a path to tell tokenizers apart, without where a user keeps them."""
    return "/".join(Path(tokenizer).parts[-2:])


def write(results: dict[str, Any], folder: Path) -> Path:
    """Keep the results in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RESULTS
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
