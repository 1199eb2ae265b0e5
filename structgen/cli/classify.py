"""`structgen classify`: a file of texts in, a file of labels out."""

from __future__ import annotations

import argparse
from typing import Any, TypeAlias

Parsers: TypeAlias = Any
"""What argparse's `add_subparsers` returns, which has no public type."""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = parsers.add_parser(
        "classify",
        help="classify the texts of a file",
        description="Gives each text of a file a label of a taxonomy, with its probability. A run "
        "that was stopped goes on where it was, if nothing else was changed.",
    )
    option = parser.add_argument
    option("--labels", required=True, metavar="FILE", help="labels, one a line, or .csv or .tsv")
    option("--in", dest="source", required=True, metavar="FILE", help=".csv, .jsonl or .txt")
    option("--out", dest="target", required=True, metavar="FILE", help=".csv or .jsonl")
    option("--text", default="text", metavar="COLUMN", help="where texts are (default: text)")
    option("--separator", default=" > ", help="between the levels of a label (default: ' > ')")
    option("--model", help="a model's id or folder (default: SmolLM2-135M-Instruct)")
    option("--device", help="where the model runs, such as cuda")
    option("--dtype", help="of the model's weights, such as float32")
    option("--instructions", help="what the model is asked to decide")
    option("--top", type=int, default=1, metavar="N", help="labels to write for each text")
    option("--probabilities", action="store_true", help="write the probability of every label")
    option("--descriptions", action="store_true", help="tell the model what labels mean")
    option("--calibrate", choices=("content_free", "pmi"), help="see the documentation")
    option("--shortlist", type=int, metavar="N", help="ask about the N labels that BM25 finds")
    option("--none-of-these", action="store_true", help="offer a way out as one more label")
    option("--min-probability", type=float, default=0.0, help="under it a text gets no label")
    option("--batch-size", type=int, default=8, help="texts read at a time (default: 8)")
    option("--retry-errors", action="store_true", help="do rows again that ended in an error")
    option("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Classify the rows; the exit status is 1 if any of them could not be asked about."""
    from structgen.classification.classifier import Classifier
    from structgen.classification.files import Columns, classify_file, report_of
    from structgen.classification.options import ClassifierOptions
    from structgen.runtime.hf import load
    from structgen.taxonomy import Taxonomy

    taxonomy = Taxonomy.from_file(options.labels, separator=options.separator or None)
    columns = Columns(options.text, options.top, options.probabilities)
    made = ClassifierOptions(
        calibrate=options.calibrate,
        descriptions=options.descriptions,
        min_probability=options.min_probability,
    )
    if options.none_of_these:
        made["none_of_these"] = True
    if options.instructions:
        made["instructions"] = options.instructions
    if options.shortlist:
        made["shortlist"], made["shortlist_size"] = "bm25", options.shortlist
    if options.probabilities:
        made["strategy"] = "full"
    elif options.top > 1:
        made["top_k"] = options.top
    lm = load(options.model, device=options.device, dtype=options.dtype)
    classifier = Classifier(taxonomy, lm, **made)
    report = classify_file(
        classifier,
        options.source,
        options.target,
        columns,
        batch_size=options.batch_size,
        retry_errors=options.retry_errors,
        progress=False if options.quiet else None,
    )
    print(report_of(report))
    return int(report.failed > 0)
