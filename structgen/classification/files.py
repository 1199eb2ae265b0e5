"""A file of texts in, a file of labels out; what is done is never done again.

Output rows stand in the order of the input, each is written at once, and so a run that was killed
goes on where it stopped: whole rows are kept, a row that was cut short is written anew.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias

from structgen.batch import BATCH_SIZE
from structgen.classification.classifier import Classifier
from structgen.classification.results import Classification
from structgen.classification.settings import check_settings, write_settings
from structgen.errors import InvalidTextError, OptionError, UsageError

Row: TypeAlias = dict[str, Any]
FileKind: TypeAlias = Literal["csv", "jsonl", "txt"]

MOST_CHARACTERS = 2**31 - 1
"""Of one cell of a table."""


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


@dataclass(frozen=True, slots=True)
class Columns:
    """What is read and written."""

    text: str = "text"
    """Column or key of the input that holds the text; lines of a .txt file are texts."""
    top: int = 1
    """Labels of the ranking that are written, each with its probability."""
    probabilities: bool = False
    """Write the probability of every label too, as JSON by label."""


def classify_file(
    classifier: Classifier,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    columns: Columns | None = None,
    *,
    batch_size: int = BATCH_SIZE,
    progress: bool | None = None,
) -> FileReport:
    """Classify each row of a .csv, .jsonl or .txt file, and go on where an earlier run stopped.

    The output, a .csv or .jsonl file, has what the row had, and `label`, `probability`,
    `valid_mass`, for `top` > 1 also `label_2`, `probability_2` and so on. Of a text that cannot be
    asked about it has an `error`, and an empty label. What results depend on is kept beside it, in
    a file whose name ends with `.settings.json`.

    Raises:
        OptionError: a file has another ending or no such column, or the output holds rows that do
            not belong to this input, or were made with another model, labels or options.
    """
    columns = columns or Columns()
    source, target = Path(source), Path(target)
    kind, form = _kind(source, ("csv", "jsonl", "txt")), _kind(target, ("csv", "jsonl"))
    if not source.is_file():
        raise OptionError(f"there is no file {str(source)!r} to read texts from")
    if target.exists() and source.samefile(target):
        raise OptionError(f"{str(target)!r} is the input; choose another file for the labels")
    rows = list(_rows(source, kind, columns.text))
    with _Locked(target) as file:
        writer = _Writer(file, form, columns, rows)
        done, end = writer.done()
        settings = {**classifier.settings, **asdict(columns)}
        if done:
            check_settings(target, settings)
        else:
            write_settings(target, settings)
        if done < len(rows) and classifier.compares_texts:
            done, end = 0, 0
        file.seek(end)
        file.truncate()
        if end == 0:
            writer.write_header()
        left = rows[done:]
        found = classifier.each(
            [row[columns.text] for row in left],
            batch_size=batch_size,
            on_error="return",
            progress=progress,
        )
        n_failed = sum(writer.write(row, one) for row, one in zip(left, found, strict=True))
        file.flush()
        os.fsync(file.fileno())
    return FileReport(len(left) - n_failed, n_failed, done)


def _kind(path: Path, allowed: tuple[FileKind, ...]) -> FileKind:
    for kind in allowed:
        if path.suffix.lower() == f".{kind}":
            return kind
    shown = ", ".join(f".{kind}" for kind in allowed)
    raise OptionError(f"{str(path)!r} must end with one of {shown}")


def _rows(source: Path, kind: FileKind, text: str) -> Iterator[Row]:
    """The rows of the input, each with its text."""
    with source.open(encoding="utf-8-sig", newline="") as file:
        try:
            yield from _checked(_read(file, kind, text), source, text)
        except (UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
            raise InvalidTextError(f"{str(source)!r} cannot be read: {error}") from error


def _read(file: TextIO, kind: FileKind, text: str) -> Iterator[Any]:
    match kind:
        case "csv":
            csv.field_size_limit(MOST_CHARACTERS)
            reader = csv.DictReader(file, strict=True, restval="")
            if len(set(reader.fieldnames or ())) < len(reader.fieldnames or ()):
                raise OptionError(f"{file.name!r} has two columns of the same name")
            yield from reader
        case "jsonl":
            yield from (json.loads(line) for line in file if line.strip())
        case "txt":
            yield from ({text: line.rstrip("\r\n")} for line in file)


def _checked(rows: Iterator[Any], source: Path, text: str) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not isinstance(row.get(text), str) or None in row:
            raise OptionError(f"row {number} of {str(source)!r} has no text in {text!r}")
        try:
            _shown(row).encode()
        except UnicodeEncodeError as error:
            raise InvalidTextError(
                f"row {number} of {str(source)!r} is not valid Unicode text: {error}"
            ) from error
        yield row


class _Locked:
    """The output, which one process writes at a time."""

    def __init__(self, target: Path) -> None:
        if not target.parent.is_dir() or target.is_dir():
            raise OptionError(f"{str(target)!r} cannot be written: it is a folder, or in none")
        self._target = target

    def __enter__(self) -> BinaryIO:
        self._target.touch()
        self._file = self._target.open("r+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise OptionError(f"another run is writing to {str(self._target)!r}") from error
        return self._file

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class _Writer:
    """The output: the rows of the input with what was found."""

    def __init__(self, file: BinaryIO, form: FileKind, columns: Columns, rows: list[Row]) -> None:
        self._file, self._form, self._columns, self._rows = file, form, columns, rows
        own = _names(columns)
        self._names = [*dict.fromkeys(name for row in rows for name in row), *own]
        taken = sorted({*own} & {name for row in rows for name in row})
        if taken:
            raise OptionError(f"the input has columns that the output adds, {taken}; rename them")

    def done(self) -> tuple[int, int]:
        """(rows of the output that are whole, its bytes with them alone).

        Raises:
            OptionError: it is not what this run would have written up to there.
        """
        data = self._file.read()
        header = self._header()
        if not data.startswith(header[: len(data)]):
            raise self._foreign("it does not begin as such an output does")
        count, end = 0, min(len(header), len(data))
        while end < len(data):
            if count == len(self._rows):
                raise self._foreign("it has more rows than the input")
            start = self._start(self._rows[count])
            rest = data[end : end + len(start)]
            if not start.startswith(rest):
                raise self._foreign(f"row {count + 1} is no row of this input")
            after = data.find(b"\n", end + len(start))
            if after < 0:  # it was cut
                break
            count, end = count + 1, after + 1
        return count, end if len(data) >= len(header) else 0

    def write_header(self) -> None:
        """Begin a file."""
        self._file.write(self._header())

    def write(self, row: Row, result: Classification | UsageError) -> bool:
        """Append one row; whether it has failed."""
        is_error = isinstance(result, UsageError)
        figures = _failure(result, self._form) if is_error else _figures(result, self._columns)
        if self._form == "jsonl":
            line = json.dumps({**row, **figures}, ensure_ascii=False).encode() + b"\n"
        else:
            cells = [_shown(figures.get(name, "")) for name in _names(self._columns)]
            line = self._start(row) + _csv_line(cells)
        self._file.write(line)
        self._file.flush()
        return is_error

    def _header(self) -> bytes:
        return b"" if self._form == "jsonl" else _csv_line(self._names)

    def _start(self, row: Row) -> bytes:
        """How the line of a row begins, up to what was found."""
        if self._form == "jsonl":
            return json.dumps(row, ensure_ascii=False).encode()[:-1] + b', "label": '
        n_own = len(_names(self._columns))
        cells = [_shown(row.get(name, "")) for name in self._names[:-n_own]]
        return _csv_line(cells)[:-1] + b","

    def _foreign(self, why: str) -> OptionError:
        return OptionError(
            f"{self._file.name!r} is no output of this run: {why}; choose another output"
        )


def _csv_line(cells: list[str]) -> bytes:
    """One line; what holds a carriage return is quoted too."""
    buffer = io.StringIO(newline="")
    returns = any("\r" in cell for cell in cells)
    quoting = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    csv.writer(buffer, lineterminator="\n", quoting=quoting).writerow(cells)
    return buffer.getvalue().encode()


def _names(columns: Columns) -> list[str]:
    """The columns that are added."""
    found = ["label", "probability", "valid_mass"]
    for place in range(2, columns.top + 1):
        found += [f"label_{place}", f"probability_{place}"]
    return [*found, *["probabilities"] * columns.probabilities, "error"]


def _figures(result: Classification, columns: Columns) -> Row:
    found: Row = {
        "label": result.label or "",
        "probability": round(result.probability, 6),
        "valid_mass": float(f"{result.valid_mass:.6g}"),
    }
    for place in range(2, columns.top + 1):
        ranked = result.ranking[place - 1] if place <= len(result.ranking) else None
        found[f"label_{place}"] = ranked.label if ranked else ""
        found[f"probability_{place}"] = round(ranked.probability, 6) if ranked else ""
    if columns.probabilities:
        found["probabilities"] = {one.label: round(one.probability, 6) for one in result.ranking}
    return found


def _failure(error: UsageError, form: str) -> Row:
    kind, message = type(error).__name__, str(error)
    # A row of CSV stays one line, so that a run that goes on finds where each one ends.
    line = " ".join(f"{kind}: {message}".split())
    told = {"type": kind, "message": message} if form == "jsonl" else line
    return {"label": "", "error": told}


def report_of(report: FileReport) -> str:
    """One line about a run."""
    return ", ".join(f"{count} {what}" for what, count in asdict(report).items())
