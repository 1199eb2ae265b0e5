"""How long new processes take to import things."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

from structgen.bench.measure import rounded
from structgen.bench.plan import Run

STATEMENTS = {
    "structgen": "import structgen",
    "structgen's engine": "import structgen; structgen.compile, structgen.Vocabulary",
    "torch": "import torch",
    "torch and transformers": (
        "import torch; from transformers import PreTrainedModel, PreTrainedTokenizerBase"
    ),
    "structgen with torch": "import structgen; structgen.Generator",
    "structgen with torch and transformers": "import structgen; structgen.load",
    "llguidance": "import llguidance",
    "xgrammar": "import xgrammar",
    "outlines-core": "import outlines_core",
    "lm-format-enforcer": "import lmformatenforcer",
}
TIMED = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"


def measure(run: Run) -> dict[str, Any]:
    """Seconds by what is imported, in turns; the first round only warms the disk."""
    chosen = {name: code for name, code in STATEMENTS.items() if name not in run.plan.absent}
    samples: dict[str, list[float]] = {name: [] for name in chosen}
    for number in range(-1, run.plan.rounds.imports):
        run.say(f"imports: round {number + 1} of {run.plan.rounds.imports}")
        for name, code in chosen.items():
            seconds = _seconds(code)
            if number >= 0:
                samples[name].append(seconds)
    return {"seconds": {name: rounded(statistics.median(s)) for name, s in samples.items()}}


def _seconds(code: str) -> float:
    done = subprocess.run(  # noqa: S603  # the code is ours
        [sys.executable, "-c", TIMED.format(code)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)
