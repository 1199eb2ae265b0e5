"""The figures that structgen promises, next to those that were measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from structgen.bench.applying import PLAIN, fastest_peer
from structgen.bench.measure import rounded
from structgen.bench.tasks import STRUCTURE_HEAVY

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """One promise."""

    name: str
    measured: float
    reach: str
    """The bound as it is shown, e.g. `<= 30`."""
    held: bool


def figures(results: Results) -> list[dict[str, Any]]:
    """All promises about what was measured."""
    found: list[Figure] = []
    for name, of in (
        ("masks", _masks), ("compiling", _compiling), ("applying", _applying),
        ("writing", _writing), ("imports", _imports),
    ):  # fmt: skip
        if name in results:
            found += of(results[name])
    return [asdict(figure) for figure in found]


FREE = {"free": "plain text of the same length", "even": "plain text in rows of equal length"}
"""What objects are compared with: each row waits for the longest one, or none does."""


def at_most(name: str, measured: float, bound: float) -> Figure:
    """A figure that must not be larger."""
    return Figure(name, rounded(measured), f"<= {bound:.4g}", measured <= bound)


def at_least(name: str, measured: float, bound: float) -> Figure:
    """A figure that must not be smaller."""
    return Figure(name, rounded(measured), f">= {bound:.4g}", measured >= bound)


def _masks(masks: Results) -> Iterator[Figure]:
    engines = masks["engines"]
    ours = engines.get("structgen")
    if not ours or not ours["warm"]["n"]:
        return
    for peer, kind, label, bound in (
        ("llguidance", "warm", "warm", 10),
        ("xgrammar", "warm", "warm", 10),
        ("llguidance", "new", "first visit", 3),
    ):
        ratio = _ratio(ours, engines.get(peer), f"{kind}_models")
        if ratio is not None:
            name = f"mask + advance, {label}, mean: times faster than {peer}"
            yield at_least(name, ratio, bound)
    yield at_most("mask + advance, warm, p99, us", ours["warm"]["p99"], 30)
    if ours["rows"]["n"]:
        yield at_most("64 warm mask rows, us", ours["rows"]["p50"], 100)


def _ratio(ours: Results, theirs: Results | None, kind: str) -> float | None:
    """Mean of theirs over mean of ours, over the models that both can do."""
    both = sorted(ours[kind].keys() & theirs[kind].keys()) if theirs else []
    if not theirs or not both:
        return None
    means = [
        sum(one[kind][model]["mean"] * one[kind][model]["n"] for model in both)
        for one in (theirs, ours)
    ]
    return means[0] / means[1]


def _compiling(compiling: Results) -> Iterator[Figure]:
    engines = compiling["engines"]
    ours, theirs = (engines.get(name) for name in ("structgen", "llguidance"))
    if ours and theirs and ours["from_class_ms"]["n"] and theirs["from_class_ms"]["n"]:
        bound = theirs["from_class_ms"]["p50"]
        name = "schema to first mask, nothing cached, median, ms (llguidance's)"
        yield at_most(name, ours["from_class_ms"]["p50"], bound)
    if "from_disk" in compiling:
        name = "schema to first mask, from disk in a new process, median, ms"
        yield at_most(name, compiling["from_disk"]["stored_ms"]["p50"], 1)


def _applying(applying: Results) -> Iterator[Figure]:
    for case in applying["cases"]:
        ours, best = case["us_per_row"].get("structgen"), fastest_peer(case)
        if ours and best:
            name = f"applying {case['mask']} masks to {case['rows']} rows, us a row ({best[0]})"
            yield at_most(name, ours["p50"], best[1])
        elif ours:
            bound = case["us_per_row"][PLAIN[0]]["p50"]
            name = f"applying {case['mask']} masks to {case['rows']} rows, us a row (masked_fill_)"
            yield at_most(name, ours["p50"], bound)


def _writing(writing: Results) -> Iterator[Figure]:
    for case in writing["cases"]:
        ours = case["engines"].get("structgen")
        if ours:
            structured = case["task"] in STRUCTURE_HEAVY
            label = f"{case['task']}, batch {case['batch']}"
            for kind, what in FREE.items():
                if f"times_faster_than_{kind}" in ours:
                    ratio = ours[f"times_faster_than_{kind}"]
                    name = f"{label}: objects/s over {what}"
                    yield at_least(name, ratio, 1.5 if structured else 1.0)
            if structured:
                yield at_most(f"{label}: forward passes a token", ours["passes_per_token"], 0.6)


def _imports(imports: Results) -> Iterator[Figure]:
    seconds = imports["seconds"]
    yield at_most("import structgen, s", seconds["structgen"], 0.2)
    bound = rounded(seconds["torch"] + 0.3)
    yield at_most("import structgen with torch, s", seconds["structgen with torch"], bound)
