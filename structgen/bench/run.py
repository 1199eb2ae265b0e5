"""One run: measure, keep the results as JSON, draw them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    plan: Plan,
    *,
    date: str = "",
    command: str = "",
    say: Callable[[str], None] = lambda _: None,
    known: Mapping[str, Any] | None = None,
    keep: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """Everything that the plan asks for.

    Args:
        date: when, for the report.
        command: how this was started, for the report.
        say: told what is being measured.
        known: the results of an earlier run: what it measured is not measured again.
        keep: given what there is after each measure, so that a run that is stopped loses little.
    """
    known = known or {}
    results: dict[str, Any] = {
        "format": FORMAT,
        "about": {"date": date, "command": command, **about()},
        "vocabulary": {"tokenizer": _short(plan.tokenizer), "width": plan.width},
        "not_installed": plan.absent,
    }
    begun = Run(plan, say)
    for name, measure in MEASURE.items():
        if name in known:
            results[name] = known[name]
        elif name in plan.only:
            results[name] = measure(begun)
        else:
            continue
        results["refused"] = _joined(known.get("refused", {}), begun.refused)
        results["figures"] = figures(results)
        keep(results)
    return results


def _joined(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """What engines did not do, in two runs."""
    engines = [*before, *(name for name in now if name not in before)]
    return {name: {**before.get(name, {}), **now.get(name, {})} for name in engines}


def _short(tokenizer: str) -> str:
    """Enough of a path to tell tokenizers apart, without where a user keeps them."""
    return "/".join(Path(tokenizer).parts[-2:])


def write(results: dict[str, Any], folder: Path) -> Path:
    """Keep the results in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RESULTS
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
