"""`structgen bench`: how fast this is here, beside other engines."""

from __future__ import annotations

import argparse
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from structgen.errors import MissingDependencyError

if TYPE_CHECKING:
    from structgen.bench.plan import Plan

Parsers: TypeAlias = Any
"""What argparse's `add_subparsers` returns, which has no public type."""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = parsers.add_parser(
        "bench",
        help="measure speed and memory, beside other engines",
        description="Measures structgen beside the engines that are installed, and writes "
        "results.json and plots. It takes about 15 minutes, or 3 with --quick.",
    )
    option = parser.add_argument
    option("--out", default="bench", metavar="DIR", help="where results go (default: bench)")
    option("--only", type=_names, metavar="A,B", help="some of: " + ", ".join(_measures()))
    option("--engines", type=_names, metavar="A,B", help="some of: structgen, llguidance, ...")
    option("--quick", action="store_true", help="fewer rounds; the figures are rougher")
    option("--tokenizer", metavar="PATH", help="a tokenizer.json, for your own vocabulary")
    option("--eos", type=_ids, default=(), metavar="IDS", help="end tokens of that tokenizer")
    option("--width", type=int, help="columns of the logits (default: 151936)")
    option("--limit", type=float, default=20, help="seconds that a call may take (default: 20)")
    option("--date", default=None, help="of the report (default: today)")
    option("--check", action="store_true", help="exit status 1 if a promised figure is missed")
    option("--page", metavar="FILE", help="put the tables into a Markdown page, between its marks")
    option("--go-on", action="store_true", help="keep what results.json in DIR already holds")
    option("--draw", metavar="FILE", help="measure nothing, show and draw the results in a file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from structgen.bench.run import RESULTS, run, write
    from structgen.bench.tables import into_page, report

    folder = Path(options.out)
    if options.draw:
        results = _read(Path(options.draw))
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        date = options.date or datetime.now(UTC).date().isoformat()
        known = _read(folder / RESULTS) if options.go_on and (folder / RESULTS).exists() else None
        results = run(
            _plan(options, folder),
            date=date,
            command=shlex.join(["structgen", *sys.argv[1:]]),
            say=_say,
            known=known,
            keep=lambda results: write(results, folder),
        )
        _say(f"wrote {write(results, folder)}")
    print(report(results))
    _draw(results, folder)
    if options.page:
        page = Path(options.page)
        page.write_text(into_page(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    return int(options.check and not all(figure["held"] for figure in results["figures"]))


def _plan(options: argparse.Namespace, folder: Path) -> Plan:
    from structgen.bench.engines import ENGINES
    from structgen.bench.plan import MEASURES, QUICK, QWEN3_WIDTH, Plan, Rounds, default_tokenizer

    if options.tokenizer:
        tokenizer, eos = options.tokenizer, options.eos
    else:
        tokenizer, eos = default_tokenizer(folder)
    return Plan(
        tokenizer,
        eos,
        options.width or QWEN3_WIDTH,
        engines=options.engines or tuple(ENGINES),
        only=options.only or MEASURES,
        rounds=QUICK if options.quick else Rounds(),
        limit_s=options.limit,
    )


def _draw(results: dict[str, Any], folder: Path) -> None:
    from structgen.bench.plots import draw

    try:
        for path in draw(results, folder):
            _say(f"wrote {path}")
    except MissingDependencyError as error:
        _say(f"no plots: {error}")


def _read(path: Path) -> dict[str, Any]:
    import json

    from structgen.errors import OptionError

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} holds no results: {error}") from error


def _measures() -> tuple[str, ...]:
    return ("imports", "compiling", "masks", "applying", "writing")


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
