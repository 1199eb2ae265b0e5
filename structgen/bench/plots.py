"""Results as PNG files, drawn by matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from structgen.bench.applying import BATCHES
from structgen.errors import MissingDependencyError

Results = dict[str, Any]

COLOURS = {
    "structgen": "#1b6ca8",
    "llguidance": "#e07a1f",
    "xgrammar": "#4c9f70",
    "outlines-core": "#9467bd",
    "lm-format-enforcer": "#8c564b",
}
OTHERS = "#9a9a9a"
DPI = 120


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what was measured; the files.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        figures: Any = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        install = "pip install 'structgen-toolkit[bench]'"
        raise MissingDependencyError("matplotlib", "drawing plots", install) from error
    plots: dict[str, tuple[str, Callable[[Any, Results], bool]]] = {
        "compiling": ("compiling", _compiling),
        "masks": ("masks", _masks),
        "memory": ("masks", _memory),
        "applying": ("applying", _applying),
        "writing": ("writing", _writing),
    }
    written: list[Path] = []
    for name, (measure, plot) in plots.items():
        figure: Any = figures.Figure(layout="constrained")
        if measure in results and plot(figure, results[measure]):
            path = folder / f"{name}.png"
            # Without a date and a version, so that the same results give the same file.
            figure.savefig(path, dpi=DPI, metadata={"Software": None})
            written.append(path)
    return written


def _compiling(figure: Any, compiling: Results) -> bool:
    """A bar for each engine, from the median to the maximum over the models."""
    rows = {name: found["from_class_ms"] for name, found in compiling["engines"].items()}
    if "from_disk" in compiling:
        rows["structgen, from disk"] = compiling["from_disk"]["stored_ms"]
    rows = {name: found for name, found in rows.items() if found["n"]}
    figure.set_size_inches(8, 0.55 * len(rows) + 1.2)
    axes = figure.subplots()
    for position, (name, found) in enumerate(rows.items()):
        colour = _colour(name)
        axes.barh(position, found["p50"], color=colour)
        axes.plot([found["p50"], found["max"]], [position, position], color=colour, linewidth=1.5)
        axes.plot(found["max"], position, "|", color=colour, markersize=12)
        label = f" {found['p50']:.3g} ms, max {found['max']:.3g}"
        axes.text(found["max"], position, label, va="center", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(right=axes.get_xlim()[1] * 12)
    _names(axes, list(rows))
    axes.set_xlabel("ms")
    axes.set_title("Schema to first mask: median over the models, line to the slowest")
    return bool(rows)


def _masks(figure: Any, masks: Results) -> bool:
    """What share of all masks takes at most so long."""
    figure.set_size_inches(10, 4)
    both = figure.subplots(1, 2, sharey=True)
    for axes, kind, title in zip(
        both, ("warm", "new"), ("seen before", "first visit"), strict=True
    ):
        for name, found in masks["engines"].items():
            percentiles: Sequence[float] = found[f"{kind}_percentiles"]
            if percentiles:
                label = f"{name}, mean {found[kind]['mean']:.3g} us"
                axes.plot(percentiles, range(101), color=_colour(name), label=label)
        axes.set_xscale("log")
        axes.set_xlabel("us")
        axes.set_title(f"Mask and advance, {title}")
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=8)
    both[0].set_ylabel("% of all masks take at most")
    return True


def _applying(figure: Any, applying: Results) -> bool:
    """Bars for each kind of mask and number of rows."""
    figure.set_size_inches(10, 4.5)
    grid = figure.subplots(1, len(BATCHES), sharey=True)
    names = list(dict.fromkeys(n for case in applying["cases"] for n in case["us_per_row"]))
    for axes, n_rows in zip(grid, BATCHES, strict=True):
        cases = [case for case in applying["cases"] if case["rows"] == n_rows]
        for index, name in enumerate(names):
            heights = [case["us_per_row"].get(name, {}).get("p50", 0) for case in cases]
            places = [at + 0.85 * index / len(names) for at in range(len(cases))]
            shade = _shade(name, names)
            axes.bar(places, heights, 0.8 / len(names), color=shade[0], alpha=shade[1], label=name)
        axes.set_xticks([at + 0.38 for at in range(len(cases))], [case["mask"] for case in cases])
        axes.set_yscale("log")
        axes.set_title(f"{n_rows} row" + "s" * (n_rows > 1))
    grid[0].set_ylabel("us a row")
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"Applying packed masks to float32 logits of {applying['width']} columns")
    return True


def _memory(figure: Any, masks: Results) -> bool:
    """Bars of two parts for each engine."""
    rows = {name: found["mib"] for name, found in masks["engines"].items() if found["mib"]}
    figure.set_size_inches(8, 0.5 * len(rows) + 1.4)
    axes = figure.subplots()
    for position, (name, mib) in enumerate(rows.items()):
        axes.barh(position, mib["set_up"], color=_colour(name))
        axes.barh(position, mib["models"], left=mib["set_up"], color=_colour(name), alpha=0.5)
        label = f" {mib['set_up']:.0f} + {mib['models']:.0f}"
        axes.text(mib["set_up"] + mib["models"], position, label, va="center", fontsize=8)
    axes.margins(x=0.12)
    _names(axes, list(rows))
    axes.set_xlabel("MiB")
    axes.set_title("Memory: engine with its vocabulary, and the workload's models")
    return bool(rows)


def _writing(figure: Any, writing: Results) -> bool:
    """Seconds an object by task; plain text of the same length beside them."""
    cases = writing["cases"]
    figure.set_size_inches(10, 4.5)
    axes = figure.subplots()
    names = list(dict.fromkeys(name for case in cases for name in case["engines"]))
    bars = ["plain text", *names]
    for index, name in enumerate(bars):
        heights = [_seconds_an_object(case, name) for case in cases]
        places = [at + 0.85 * index / len(bars) for at in range(len(cases))]
        axes.bar(places, heights, 0.8 / len(bars), color=_colour(name), label=name)
    labels = [f"{case['task']}\nbatch {case['batch']}" for case in cases]
    axes.set_xticks([at + 0.38 for at in range(len(cases))], labels, fontsize=8)
    axes.set_ylabel("s an object")
    axes.set_title("Objects written by SmolLM2-135M, float32 on the CPU")
    axes.legend(fontsize=8)
    return bool(cases)


def _seconds_an_object(case: Results, name: str) -> float:
    if name == "plain text":
        return case["engines"].get("structgen", {}).get("free_seconds_per_object", 0)
    return case["engines"].get(name, {}).get("seconds_per_object", 0)


def _names(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def _colour(name: str) -> str:
    """Of an engine, also where the name goes on."""
    return COLOURS.get(name.partition(",")[0], OTHERS)


def _shade(name: str, names: list[str]) -> tuple[str, float]:
    """Colour and opacity: kernels of one engine share the colour."""
    alike = [other for other in names if _colour(other) == _colour(name)]
    return _colour(name), 1 - 0.5 * alike.index(name) / len(alike)
