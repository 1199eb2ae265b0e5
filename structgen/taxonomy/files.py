"""Files of labels become rows: one path a line, or a table with names in its first line."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from structgen.errors import Fault, OptionError
from structgen.taxonomy.rows import Rows

TABLES = {".csv": ",", ".tsv": "\t"}
"""Tables by suffix, with what stands between their cells."""
NAMES = {
    "label": ("label", "name", "path", "title", "category"),
    "code": ("code", "id"),
    "description": ("description", "definition", "text"),
}
"""Columns that are looked for where none is named, the first that is there counts."""


def read_file(path: Path, *, label: str | None, code: str | None, description: str | None) -> Rows:
    """The rows of a file, which may be compressed with gzip.

    Raises:
        OptionError: it is not UTF-8, or lacks a column.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    suffix = next(iter(suffixes[-2 if packed else -1 :]), "")
    try:
        with _opened(path, packed=packed) as file:
            if suffix in TABLES:
                return _table(file, path, TABLES[suffix], (label, code, description))
            if label or code or description:
                raise OptionError(f"{path} is no table (.csv or .tsv) and has no columns")
            return _lines(file)
    except UnicodeDecodeError as error:
        raise OptionError(f"{path} is not UTF-8: {error}") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise OptionError(f"{path} is no whole gzip file: {error}") from error


@contextmanager
def _opened(path: Path, *, packed: bool) -> Generator[TextIO]:
    """The file's text; a byte order mark at its beginning is left out."""
    with gzip.open(path) if packed else path.open("rb") as data:
        yield io.TextIOWrapper(io.BufferedReader(data), encoding="utf-8-sig", newline="")


def _lines(file: TextIO) -> Rows:
    """One label a line, whatever ends it; a blank line is a row without a label."""
    text = file.read().replace("\r\n", "\n")
    lines = text.removesuffix("\n").split("\n") if text else []
    return Rows(lines, place=_line)


def _line(row: int) -> str:
    return f"line {row + 1}"


def _table(
    file: TextIO, path: Path, delimiter: str, asked: tuple[str | None, str | None, str | None]
) -> Rows:
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise OptionError(f"{path} is empty; its first line names the columns")
        label, code, description = (
            _column(path, header, kind, name) for kind, name in zip(NAMES, asked, strict=True)
        )
        assert label is not None, "a table without it was refused"
        cells: list[list[str]] = []
        lines: list[int] = []
        faults: list[Fault] = []
        for row in reader:
            if not row:
                continue  # csv's own reading of an empty line
            if len(row) == len(header):
                cells.append(row)
                lines.append(reader.line_num)
            else:
                problem = f"{len(row)} cells, where the first line names {len(header)} columns"
                faults.append(Fault(f"line {reader.line_num}", problem))
    except csv.Error as error:
        raise OptionError(f"{path}, line {reader.line_num}: {error}") from error

    def column(index: int | None) -> list[str] | None:
        return None if index is None else [row[index] for row in cells]

    return Rows(
        column(label) or [],
        column(code),
        column(description),
        lambda row: f"line {lines[row]}",
        faults,
    )


def _column(path: Path, header: Sequence[str], kind: str, asked: str | None) -> int | None:
    """The index of the column that was asked for, or of the first that has a usual name."""
    if asked is not None:
        wanted: Sequence[str] = [asked]
        same: Callable[[str], str] = str
    else:
        wanted = NAMES[kind]
        same = str.casefold
    found = [same(name.strip()) for name in header]
    for name in wanted:
        if found.count(name) > 1:
            raise OptionError(f"{path} has several columns {name!r}")
        if name in found:
            return found.index(name)
    if asked is None and kind != "label":
        return None
    shown = ", ".join(map(repr, header[:20]))
    name = asked or "label"
    raise OptionError(f"{path} has no column {name!r}, only {shown}; name one with {kind}=")
