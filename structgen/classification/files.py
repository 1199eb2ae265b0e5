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
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias

from structgen.batch import BATCH_SIZE
from structgen.classification.classifier import Classifier
from structgen.classification.results import Classification
from structgen.errors import InvalidTextError, OptionError

Row: TypeAlias = dict[str, Any]
FileKind: TypeAlias = Literal["csv", "jsonl", "txt"]


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a run did.

    Example: `FileReport(written=120, skipped=0)`
    """

    written: int
    """Rows that were added to the output."""
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
    `valid_mass`, for `top` > 1 also `label_2`, `probability_2` and so on.

    Raises:
        OptionError: a file has another ending or no such column, or the output holds rows that do
            not belong to this input.
    """
    columns = columns or Columns()
    source, target = Path(source), Path(target)
    kind, form = _kind(source, ("csv", "jsonl", "txt")), _kind(target, ("csv", "jsonl"))
    if not source.is_file():
        raise OptionError(f"there is no file {str(source)!r} to read texts from")
    if target.exists() and source.samefile(target):
        raise OptionError(f"{str(target)!r} is the input; choose another file for the labels")
    n_rows = sum(1 for _ in _rows(source, kind, columns.text))
    with _Locked(target) as file:
        done, end = _done(file, form, _rows(source, kind, columns.text))
        file.truncate(end)
        file.seek(end)
        rows = list(islice(_rows(source, kind, columns.text), done, None))
        texts = [row[columns.text] for row in rows]
        writer = _Writer(file, form, columns, header=done == 0 and end == 0)
        found = classifier.each(texts, batch_size=batch_size, progress=progress)
        for row, result in zip(rows, found, strict=True):
            writer.write(row, result)
        file.flush()
        os.fsync(file.fileno())
    return FileReport(n_rows - done, done)


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
            yield from csv.DictReader(file, strict=True)
        case "jsonl":
            yield from (json.loads(line) for line in file if line.strip())
        case "txt":
            yield from ({text: line.rstrip("\r\n")} for line in file)


def _checked(rows: Iterator[Any], source: Path, text: str) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not isinstance(row.get(text), str) or None in row:
            raise OptionError(f"row {number} of {str(source)!r} has no text in {text!r}")
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


def _done(file: BinaryIO, form: FileKind, rows: Iterator[Row]) -> tuple[int, int]:
    """(rows of the output that are whole, its bytes with them alone).

    Raises:
        OptionError: they are not the input's first rows.
    """
    lines = [line + b"\n" for line in file.read().split(b"\n")[:-1]]
    try:
        header, found = (0, _objects(lines)) if form == "jsonl" else _records(lines)
    except (ValueError, csv.Error) as error:
        raise OptionError(f"{file.name!r} is no output of such a run: {error}") from error
    end = header
    for number, (written, size) in enumerate(found, 1):
        row = next(rows, None)
        if row is None or any(_shown(written.get(name)) != _shown(row[name]) for name in row):
            raise OptionError(
                f"row {number} of {file.name!r} is no row of this input; choose another output"
            )
        end += size
    return len(found), end


def _objects(lines: list[bytes]) -> list[tuple[Row, int]]:
    """The rows of JSON lines with their sizes."""
    found = [(json.loads(line), len(line)) for line in lines]
    if not all(isinstance(row, dict) for row, _ in found):
        raise ValueError("a line holds no object")
    return found


def _records(lines: list[bytes]) -> tuple[int, list[tuple[Row, int]]]:
    """(bytes of the header, the rows of CSV lines with their sizes); one that was cut is left."""
    records: list[tuple[list[str], int]] = []
    part = b""
    for line in lines:
        part += line
        if part.count(b'"') % 2 == 0:  # else a quoted text goes on in the next line
            reader = csv.reader(io.StringIO(part.decode(), newline=""), strict=True)
            records.append((next(reader, []), len(part)))
            part = b""
    if not records:
        return 0, []
    (names, header), *rest = records
    return header, [(dict(zip(names, cells, strict=False)), size) for cells, size in rest]


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class _Writer:
    """Writes rows, each at once."""

    def __init__(self, file: BinaryIO, form: FileKind, columns: Columns, *, header: bool) -> None:
        self._file, self._form, self._columns, self._header = file, form, columns, header

    def write(self, row: Row, result: Classification) -> None:
        """Append one row."""
        full = {**row, **_figures(result, self._columns)}
        if self._form == "jsonl":
            self._file.write(json.dumps(full, ensure_ascii=False).encode() + b"\n")
        else:
            buffer = io.StringIO(newline="")
            writer = csv.writer(buffer, lineterminator="\n")
            if self._header:
                writer.writerow(full)
                self._header = False
            writer.writerow([_shown(value) for value in full.values()])
            self._file.write(buffer.getvalue().encode())
        self._file.flush()


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


def report_of(report: FileReport) -> str:
    """One line about a run."""
    return ", ".join(f"{count} {what}" for what, count in asdict(report).items())
