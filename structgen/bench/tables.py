"""Results as Markdown tables, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from structgen.errors import OptionError

Results = dict[str, Any]
Row = Sequence[object]


def report(results: Results) -> str:
    """All tables of a run."""
    return "\n\n".join(f"{title}\n\n{table(rows)}" for title, rows in tables(results)) + "\n"


BEGIN, END = "<!-- results: written by structgen bench --page -->", "<!-- end of results -->"


def into_page(page: str, results: Results) -> str:
    """A Markdown page with the results in the place of those between its two marks.

    Raises:
        OptionError: it lacks the marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise OptionError(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{_about(results)}\n\n{report(results)}\n{END}{after}"


def _about(results: Results) -> str:
    """Where the figures are from, as a sentence or two."""
    about = results["about"]
    versions = ", ".join(
        f"{name} {version}" for name, version in about["versions"].items() if version
    )
    return (
        f"Written by `{about['command']}` on {about['date']}: {about['processor']}, "
        f"{about['cores']} cores, Python {about['python']}, {versions}. "
        f"Masks: the vocabulary `{results['vocabulary']['tokenizer']}`, "
        f"{results['vocabulary']['width']:,} columns."
    )


def tables(results: Results) -> Iterator[tuple[str, list[Row]]]:
    """(title, rows) of everything that was measured; the first row is the head."""
    for name, of in (
        ("imports", _imports), ("compiling", _compiling), ("masks", _masks),
        ("applying", _applying), ("writing", _writing),
    ):  # fmt: skip
        if name in results:
            yield from of(results[name])
    if refusals := list(_refusals(results)):
        yield "What engines did not do", [("engine", "what", "why"), *refusals]
    if results["figures"]:
        yield "Figures to reach", [("figure", "measured", "reach", ""), *_figures(results)]


FREE = {"free": "plain text", "even": "plain text, rows of equal length"}
"""What objects are compared with."""


def table(rows: Sequence[Row]) -> str:
    """A Markdown table with columns of even width; the first column is text, others numbers."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(_aligned(cell, widths[i], i) for i, cell in enumerate(row)) + " |"
        for row in cells
    ]
    rule = ("-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths))
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value).replace("|", "\\|")


def _imports(imports: Results) -> Iterator[tuple[str, list[Row]]]:
    rows = [(name, seconds) for name, seconds in imports["seconds"].items()]
    yield "Importing, in a new process", [("what", "s"), *rows]


def _compiling(compiling: Results) -> Iterator[tuple[str, list[Row]]]:
    head: Row = ("from", "models", "mean", "p50", "p99", "max")
    rows: list[Row] = []
    for name, found in compiling["engines"].items():
        rows.append(_spread(name, found["from_class_ms"]))
        if found["from_schema_ms"] != found["from_class_ms"]:
            rows.append(_spread(f"{name}, JSON Schema not counted", found["from_schema_ms"]))
        rows.append(_spread(f"{name}, that in processor time", found["processor_ms"]))
    if "from_disk" in compiling:
        disk = compiling["from_disk"]
        rows.append(_spread("structgen, new process, from disk", disk["stored_ms"]))
        rows.append(_spread("structgen, new process, not stored", disk["not_stored_ms"]))
    yield "Schema to first mask, ms", [head, *rows]


def _masks(masks: Results) -> Iterator[tuple[str, list[Row]]]:
    head: Row = ("engine", "masks", "mean", "p50", "p99", "max")
    for kind, title in (("warm", "warm"), ("new", "first visit")):
        rows: list[Row] = []
        for name, found in masks["engines"].items():
            rows.append(_spread(name, found[kind]))
            rows.append(_spread(f"{name}, every sample", found[f"{kind}_all"]))
        yield f"Mask and advance, {title}, us", [head, *rows]
    rows = [_spread(name, found["rows"]) for name, found in masks["engines"].items()]
    yield "Masks of 64 warm rows, us", [("engine", "calls", *head[2:]), *rows]
    rows = [
        (name, found["mib"]["set_up"], found["mib"]["models"])
        for name, found in masks["engines"].items()
        if found["mib"]
    ]
    yield "Memory, MiB", [("engine", "with its vocabulary", "more after the workload"), *rows]


def _applying(applying: Results) -> Iterator[tuple[str, list[Row]]]:
    cases = applying["cases"]
    head: Row = ("us a row", *(f"{case['mask']}, {case['rows']}" for case in cases))
    names = dict.fromkeys(name for case in cases for name in case["us_per_row"])
    rows = [
        (name, *(case["us_per_row"].get(name, {}).get("p50") for case in cases)) for name in names
    ]
    title = f"Applying masks to {applying['width']} columns (kind of mask, rows)"
    yield title, [head, *rows]


def _writing(writing: Results) -> Iterator[tuple[str, list[Row]]]:
    head: Row = (
        "task, batch", "s an object", "tokens an object", "tokens/s", "passes a token", "valid",
    )  # fmt: skip
    rows: list[Row] = []
    for case in writing["cases"]:
        label = f"{case['task']}, {case['batch']}"
        for name, found in case["engines"].items():
            rows.append((f"{label}: {name}", *_written(found)))
            for kind, text in FREE.items():
                if f"{kind}_seconds_per_object" in found:
                    rows.append((
                        f"{label}: {text}", found[f"{kind}_seconds_per_object"],
                        found["tokens_per_object"], found[f"{kind}_tokens_per_second"], 1.0, None,
                    ))  # fmt: skip
    yield "Objects written by the default model, float32", [head, *rows]


def _written(found: Results) -> Iterable[object]:
    for name in ("seconds_per_object", "tokens_per_object", "tokens_per_second"):
        yield float(found[name])
    yield found["passes_per_token"]
    yield f"{found['valid']} of {found['objects']}"


def _refusals(results: Results) -> Iterator[Row]:
    for name in results["not_installed"]:
        yield name, "everything", "not installed"
    for name, reasons in results["refused"].items():
        yield from ((name, what, why) for what, why in reasons.items())
    for name, why in results.get("applying", {}).get("failed", {}).items():
        yield name, "applying", why


def _figures(results: Results) -> Iterator[Row]:
    for figure in results["figures"]:
        verdict = "held" if figure["held"] else "MISSED"
        yield figure["name"], figure["measured"], figure["reach"], verdict


def _spread(name: str, found: Results) -> Row:
    return (name, found["n"], *(found.get(part) for part in ("mean", "p50", "p99", "max")))
