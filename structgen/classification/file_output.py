"""The output of a file of texts: the rows of the input, each with what was found."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
from collections.abc import Generator as Generating
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from structgen.classification.file_rows import FileKind, Row, shown
from structgen.classification.results import Classification
from structgen.errors import OptionError, UsageError


@dataclass(frozen=True, slots=True)
class Columns:
    """What is read and written."""

    text: str = "text"
    """Column or key of the input that holds the text; lines of a .txt file are texts."""
    top: int = 1
    """Labels of the ranking that are written, each with its probability."""
    probabilities: bool = False
    """Write the probability of every label too, as JSON by label."""


@dataclass(frozen=True, slots=True)
class Known:
    """A line that an earlier run has written."""

    line: bytes
    failed: bool
    """It holds an error in place of a label."""


class Layout:
    """What the output of some rows looks like.

    Raises:
        OptionError: the input has a column that the output adds.
    """

    def __init__(self, form: FileKind, columns: Columns, rows: Sequence[Row]) -> None:
        self._form, self._columns, self._rows = form, columns, rows
        self._own = _names(columns)
        given = dict.fromkeys(name for row in rows for name in row)
        self._given = list(given)
        taken = [name for name in self._own if name in given]
        if taken:
            raise OptionError(
                f"the input has columns {taken}, which are names of columns that the output adds; "
                "rename them in the input, for instance to "
                f"{[f'given_{name}' for name in taken]}"
            )

    def header(self) -> bytes:
        """How the output begins."""
        return b"" if self._form == "jsonl" else _csv_line([*self._given, *self._own])

    def known(self, file: BinaryIO) -> tuple[list[Known], int]:
        """(lines of the file that are whole, its bytes with them alone).

        Raises:
            OptionError: it is not what would have been written up to there.
        """
        data, header, name = file.read(), self.header(), file.name
        if not data.startswith(header[: len(data)]):
            raise _foreign(name, "it does not begin as such an output does")
        if len(data) < len(header):
            return [], 0
        found: list[Known] = []
        end = len(header)
        while end < len(data):
            if len(found) == len(self._rows):
                raise _foreign(name, "it has more rows than the input")
            start = self._start(self._rows[len(found)])
            if not start.startswith(data[end : end + len(start)]):
                raise _foreign(name, f"row {len(found) + 1} is no row of this input")
            after = self._end_of_line(data, end + len(start))
            if after is None:  # it was cut
                break
            is_error = self._has_error(data[end + len(start) : after])
            found.append(Known(data[end:after], is_error))
            end = after
        return found, end

    def line(self, row: Row, result: Classification | UsageError) -> bytes:
        """What is written of a row."""
        is_error = isinstance(result, UsageError)
        figures = _failure(result, self._form) if is_error else _figures(result, self._columns)
        if self._form == "jsonl":
            return json.dumps({**row, **figures}, ensure_ascii=False).encode() + b"\n"
        return self._start(row) + _csv_line([shown(figures.get(name, "")) for name in self._own])

    def _start(self, row: Row) -> bytes:
        """How the line of a row begins, up to what was found."""
        if self._form == "jsonl":
            return json.dumps(row, ensure_ascii=False).encode()[:-1] + b', "label": '
        return _csv_line([shown(row.get(name, "")) for name in self._given])[:-1] + b","

    def _end_of_line(self, data: bytes, begin: int) -> int | None:
        """Behind the line that goes on at `begin`, None where it was cut."""
        place, n_quotes = begin, 0
        while (end := data.find(b"\n", place)) >= 0:
            n_quotes += data.count(b'"', place, end)
            if self._form == "jsonl" or n_quotes % 2 == 0:  # no line end within a cell
                return end + 1
            place = end + 1
        return None

    def _has_error(self, figures: bytes) -> bool:
        """Whether what was found, the end of a line as `line` writes it, is an error."""
        if self._form == "jsonl":
            return figures.startswith(b'"", "error": ')
        return not figures.endswith((b",\n", b',""\n'))


def _foreign(name: str, why: str) -> OptionError:
    return OptionError(f"{name!r} is no output of this run: {why}; choose another output")


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
    line = " ".join(f"{kind}: {message}".split())  # easier to read in a table
    told = {"type": kind, "message": message} if form == "jsonl" else line
    return {"label": "", "error": told}


def check_target(target: Path) -> None:
    """Refuse an output that cannot be written."""
    if not target.parent.is_dir() or target.is_dir():
        raise OptionError(f"{str(target)!r} cannot be written: it is a folder, or in none")


@contextmanager
def locked(target: Path) -> Generating[BinaryIO]:
    """The output, which one process writes at a time.

    Raises:
        OptionError: another one does.
    """
    target.touch()
    with target.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_current = os.path.samestat(os.fstat(file.fileno()), target.stat())
        except OSError as error:
            raise OptionError(f"another run is writing to {str(target)!r}") from error
        if not is_current:  # it was replaced between opening and locking
            raise OptionError(f"another run is writing to {str(target)!r}")
        yield file


@contextmanager
def replacing(target: Path) -> Generating[BinaryIO]:
    """A file beside a locked output, in whose place it is put when the block ends well.

    Where it does not, the file stays for the next run, with all that was written to it.
    """
    fresh = retried_path(target)
    fresh.touch()
    with fresh.open("r+b") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    fresh.chmod(target.stat().st_mode)
    fresh.replace(target.resolve())


def retried_path(target: Path) -> Path:
    """Where rows stand while some of them are done again: `out.csv` -> `out.csv.retried`."""
    target = target.resolve()
    return target.with_name(target.name + ".retried")
