"""A file of texts in, a file of labels out; what is done is never done again.

Output rows stand in the order of the input, each is written at once, and so a run that was killed
goes on where it stopped: whole rows are kept, a row that was cut short is written anew. Where rows
in between are done again, all are written to a second file, which then takes the place of the first
one; it is gone on with in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from structgen.batch import BATCH_SIZE, check_batch_options
from structgen.classification.classifier import Classifier
from structgen.classification.file_output import (
    Columns,
    Layout,
    check_target,
    locked,
    replacing,
    retried_path,
)
from structgen.classification.file_rows import Row, kind_of, read_rows
from structgen.classification.options import check_flag
from structgen.classification.settings import check_settings, plain_settings, write_settings
from structgen.errors import OptionError, UsageError


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a run did.

    Example: `FileReport(written=120, failed=1, skipped=0)`
    """

    written: int
    """Rows that were added to the output, each with what was found."""
    failed: int
    """Rows that were added with an error, for instance because the text is too long."""
    skipped: int
    """Rows that were there already."""


def classify_file(
    classifier: Classifier,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    columns: Columns | None = None,
    *,
    batch_size: int = BATCH_SIZE,
    retry_errors: bool = False,
    progress: bool | None = None,
) -> FileReport:
    """Classify each row of a .csv, .jsonl or .txt file, and go on where an earlier run stopped.

    The output, a .csv or .jsonl file, has what the row had, and `label`, `probability`,
    `valid_mass`, for `top` > 1 also `label_2`, `probability_2` and so on. Of a text that cannot be
    asked about it has an `error`, and an empty label. What results depend on is kept beside it, in
    a file whose name ends with `.settings.json`.

    Args:
        retry_errors: do rows again that are in the output with an error; the others stay.

    Raises:
        OptionError: a file has another ending or no such column, the input has a column that the
            output adds, or the output holds rows that do not belong to this input, or were made
            with another model, labels or options. Also if a function of the caller, such as
            `prompt`, fails or gives something wrong; nothing is written of that text then.
    """
    check_batch_options(batch_size, "return", progress)
    check_flag("retry_errors", retry_errors)
    columns = columns or Columns()
    source, target = Path(source), Path(target)
    kind, form = kind_of(source, ("csv", "jsonl", "txt")), kind_of(target, ("csv", "jsonl"))
    if not source.is_file():
        raise OptionError(f"there is no file {str(source)!r} to read texts from")
    if target.exists() and source.samefile(target):
        raise OptionError(f"{str(target)!r} is the input; choose another file for the labels")
    check_target(target)
    settings = {**classifier.settings, **plain_settings(asdict(columns))}
    rows = list(read_rows(source, kind, columns.text))
    layout = Layout(form, columns, rows)
    run = _Run(classifier, layout, rows, columns.text, batch_size, progress)
    with locked(target) as file:
        known, end = layout.known(file)
        if known:
            check_settings(target, settings)
        else:
            write_settings(target, settings)
            retried_path(target).unlink(missing_ok=True)  # of an output that is gone
        left = len(rows) - len(known)
        again = retry_errors and any(one.failed for one in known)
        if classifier.compares_texts and known and (left or again):
            return run.anew(target)
        if again:
            kept = [None if one.failed else one.line for one in known]
            return run.over(target, [*kept, *[None] * left])
        return run.on(file, end, [one.line for one in known])


@dataclass(frozen=True, slots=True)
class _Run:
    """The rows of one input on their way to their output."""

    classifier: Classifier
    layout: Layout
    rows: Sequence[Row]
    text: str
    batch_size: int
    progress: bool | None

    def on(self, file: BinaryIO, end: int, known: Sequence[bytes]) -> FileReport:
        """Append the rows that are not known, behind the first `end` bytes."""
        return self._fill(file, end, len(known), [None] * (len(self.rows) - len(known)))

    def over(self, target: Path, kept: Sequence[bytes | None]) -> FileReport:
        """Write all rows, of which those are done again that have no line; gone on with."""
        with replacing(target) as file:
            known, end = self.layout.known(file)
            return self._fill(file, end, len(known), kept[len(known) :])

    def anew(self, target: Path) -> FileReport:
        """Write all rows, none of which are kept."""
        with replacing(target) as file:
            return self._fill(file, 0, 0, [None] * len(self.rows))

    def _fill(
        self, file: BinaryIO, end: int, n_there: int, lines: Sequence[bytes | None]
    ) -> FileReport:
        """Write the lines of the last rows; None is one that has to be made."""
        file.seek(end)
        file.truncate()
        if end == 0:
            file.write(self.layout.header())
        rows = self.rows[n_there:]
        places = [place for place, line in enumerate(lines) if line is None]
        found = self.classifier.each(
            [rows[place][self.text] for place in places],
            batch_size=self.batch_size,
            on_error="return",
            progress=self.progress,
        )
        n_failed = written = 0
        for place, one in zip(places, found, strict=True):
            file.writelines(line for line in lines[written:place] if line is not None)
            file.write(self.layout.line(rows[place], one))
            file.flush()
            n_failed += isinstance(one, UsageError)
            written = place + 1
        file.writelines(line for line in lines[written:] if line is not None)
        file.flush()
        os.fsync(file.fileno())
        return FileReport(len(places) - n_failed, n_failed, len(self.rows) - len(places))


def report_of(report: FileReport) -> str:
    """One line about a run."""
    return ", ".join(f"{count} {what}" for what, count in asdict(report).items())
