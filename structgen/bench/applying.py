"""Applying packed masks to float32 logits on the CPU, with every engine's own kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from structgen.bench.engines import ENGINES
from structgen.bench.engines.base import Kernel
from structgen.bench.measure import US, rounded, summary, timed
from structgen.bench.plan import QWEN3_WIDTH, Run

if TYPE_CHECKING:
    from torch import Tensor

BATCHES = (1, 8, 64)
FEW = 200
"""Tokens that a sparse mask allows, and that a dense one forbids."""
PLAIN = ("torch masked_fill_, unpacked mask", "copy of the logits")
"""Yardsticks: neither reads a packed mask."""


def measure(run: Run) -> dict[str, Any]:
    """Microseconds a row by kernel, kind of mask and number of rows; medians over the rounds."""
    import torch

    width = run.plan.width or QWEN3_WIDTH
    kernels, failed = _kernels(run.plan.present)
    cases: list[dict[str, Any]] = []
    for n_rows in BATCHES:
        for kind in ("sparse", "half", "dense"):
            run.say(f"applying: {n_rows} rows, {kind}")
            allowed = torch.from_numpy(_allowed(kind, n_rows, width))
            times, wrong = _case(kernels, allowed, run.plan.rounds.applying)
            failed |= wrong
            per_row = {name: summary([s / n_rows for s in t], US) for name, t in times.items()}
            cases.append({"rows": n_rows, "mask": kind, "us_per_row": per_row})
    return {"width": width, "threads": torch.get_num_threads(), "cases": cases, "failed": failed}


def _kernels(engines: list[str]) -> tuple[dict[str, Kernel], dict[str, str]]:
    found: dict[str, Kernel] = {}
    failed: dict[str, str] = {}
    for name in engines:
        try:
            found |= ENGINES[name].kernels()
        except Exception as error:  # a peer's import may fail in any way
            failed[name] = f"{type(error).__name__}: {error}"
    return found, failed


def _allowed(kind: str, n_rows: int, width: int) -> Any:
    """What a mask of a kind allows, another one for each row: bool [B, W]."""
    rng = np.random.default_rng(0)
    if kind == "half":
        return rng.random((n_rows, width)) < 0.5
    few = np.zeros((n_rows, width), bool)
    for row in few:
        row[rng.choice(width, min(FEW, width), replace=False)] = True
    return few if kind == "sparse" else ~few


def pack(allowed: Any) -> Any:
    """int32 [B, ceil(W / 32)] of bool [B, W]."""
    n_rows, width = allowed.shape
    padded = np.zeros((n_rows, -(-width // 32) * 32), bool)
    padded[:, :width] = allowed
    return np.packbits(padded, axis=1, bitorder="little").view(np.int32)


def _case(
    kernels: dict[str, Kernel], allowed: Tensor, rounds: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Seconds of each call, in turns on logits that were just written; kernels that are wrong."""
    import torch

    source = torch.randn(allowed.shape, generator=torch.Generator().manual_seed(0))
    logits, packed = torch.empty_like(source), torch.from_numpy(pack(allowed.numpy()))
    expected = source.masked_fill(~allowed, float("-inf"))
    usable: dict[str, Callable[[], object]] = {}
    wrong: dict[str, str] = {}
    for name, kernel in kernels.items():
        logits.copy_(source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kernel(logits, packed)
        except Exception as error:  # a peer's kernel may fail in any way
            wrong[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
            continue
        if torch.equal(logits, expected):
            usable[name] = partial(kernel, logits, packed)
        else:
            wrong[name] = "the masked logits are wrong"
    forbidden, target = ~allowed, torch.empty_like(source)
    usable[PLAIN[0]] = lambda: logits.masked_fill_(forbidden, float("-inf"))
    usable[PLAIN[1]] = lambda: target.copy_(logits)
    seconds: dict[str, list[float]] = {name: [] for name in usable}
    random = np.random.default_rng(0)
    for _ in range(rounds):
        # In another order each time: what a kernel finds in the caches depends on the one before.
        for name in random.permutation(list(usable)):
            logits.copy_(source)
            seconds[name].append(timed(usable[name]))
    return seconds, wrong


def fastest_peer(case: dict[str, Any]) -> tuple[str, float] | None:
    """The best kernel of the other engines in a case, and its microseconds a row."""
    others = {
        name: figures["p50"]
        for name, figures in case["us_per_row"].items()
        if name != "structgen" and name not in PLAIN
    }
    best = min(others, key=others.__getitem__, default=None)
    return None if best is None else (best, rounded(others[best]))
