"""Rows with a text each, read from a .csv, .jsonl or .txt file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

from structgen.errors import InvalidTextError, OptionError

Row: TypeAlias = dict[str, Any]
FileKind: TypeAlias = Literal["csv", "jsonl", "txt"]

MOST_CHARACTERS = 2**31 - 1
"""Of one cell of a table."""


def kind_of(path: Path, allowed: tuple[FileKind, ...]) -> FileKind:
    """What a file is, by the end of its name."""
    for kind in allowed:
        if path.suffix.lower() == f".{kind}":
            return kind
    shown = ", ".join(f".{kind}" for kind in allowed)
    raise OptionError(f"{str(path)!r} must end with one of {shown}")


def read_rows(source: Path, kind: FileKind, text: str) -> Iterator[Row]:
    """The rows of a file, each with its text under the key `text`.

    Raises:
        OptionError: a row has no text there.
        InvalidTextError: the file is damaged, or not valid Unicode.
    """
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
            shown(row).encode()
        except UnicodeEncodeError as error:
            raise InvalidTextError(
                f"row {number} of {str(source)!r} is not valid Unicode text: {error}"
            ) from error
        yield row


def shown(value: object) -> str:
    """A value as one cell of a table."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
