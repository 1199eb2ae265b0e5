"""A file of prompts in, a file of values out; what is done is never done again.

Both files have one JSON value a line. An output line is written at once when its row is finished,
so that a run that was killed goes on where it stopped: rows that have a whole line are left out,
and a line that was cut short is removed and its row done again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Generator as Generating
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from structgen.batch import BATCH_SIZE, check_batch_options
from structgen.errors import InvalidTextError, OptionError, StructgenError
from structgen.generator import Generator
from structgen.jobs import Job, Refused
from structgen.results import Generation
from structgen.schema.nodes import Choice, Parts, Raw, Selection

logger = logging.getLogger("structgen")

LINE_ENDS = "\x85\u2028\u2029"
"""What Unicode ends a line with, and JSON leaves as it is."""
START = b'{"row": '
"""How every output line begins."""
ROW_OPTIONS = ("id", "max_new_tokens", "prompt", "seed")


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did."""

    written: int
    """Values that were added to the output."""
    failed: int
    """Rows that were added as errors."""
    skipped: int
    """Rows that were there already."""


def run_jsonl(
    generator: Generator[Any],
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    batch_size: int = BATCH_SIZE,
    retry_errors: bool = False,
    progress: bool | None = None,
) -> RunReport:
    """Generate a value for each row of a JSONL file, and go on where an earlier run was stopped.

    A row is a prompt (a text), or an object with `prompt` (a text or chat messages) and optionally
    `id`, `seed` and `max_new_tokens`; row i is seeded with the generator's `seed + i` otherwise.
    An output line is an object with `row` (counted from 0), `key` (a hash of the row and the
    schema), the row's `id`, and `value`, `finish_reason` and `usage`, or `error` with `type` and
    `message`. Lines stand in the order in which rows were finished.

    Args:
        retry_errors: do rows again that are in the output as errors; their old lines stay.

    Raises:
        OptionError: the output belongs to other rows or another schema, or another run is writing
            to it.
    """
    check_batch_options(batch_size, "return", progress)
    source, target = Path(source), Path(target)
    if not source.is_file():
        raise OptionError(f"there is no file {str(source)!r} to read rows from")
    if not target.parent.is_dir() or target.is_dir():
        raise OptionError(f"{str(target)!r} cannot be written: it is a folder, or in none")
    if target.exists() and source.samefile(target):
        raise OptionError(f"{str(target)!r} is the input; choose another file for the values")
    rows = _Rows(source, generator)
    total = sum(1 for _ in rows.lines())
    with _opened(target) as file:
        done = _done(file, rows, retry_errors)
        _cut(file)
        jobs = (rows.job(index, line) for index, line in rows.lines() if index not in done)
        left = total - len(done)
        found = generator.finished(jobs, batch_size=batch_size, progress=progress, total=left)
        n_failed = n_written = 0
        for index, result in found:
            file.write(rows.written(index, result))
            file.flush()
            n_failed += isinstance(result, Exception)
            n_written += not isinstance(result, Exception)
        os.fsync(file.fileno())
    return RunReport(n_written, n_failed, len(done))


class _Rows:
    """The rows of the input, and what their outputs look like."""

    def __init__(self, source: Path, generator: Generator[Any]) -> None:
        self._source = source
        self._generator = generator
        self._is_text = isinstance(generator.compiled.schema.root, Choice | Raw | Parts | Selection)
        self._open: dict[int, tuple[str, Any]] = {}

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(index, line) of each row; empty lines are no rows."""
        with self._source.open("rb") as file:
            yield from enumerate(line for line in map(bytes.strip, file) if line)

    def key(self, line: bytes) -> str:
        """Tells a row of one schema from all others."""
        fingerprint = self._generator.compiled.fingerprint.encode()
        return hashlib.sha256(fingerprint + b"\n" + line).hexdigest()[:16]

    def job(self, index: int, line: bytes) -> Job[Any] | Refused:
        """What there is to do for a row."""
        self._open[index] = self.key(line), None
        try:
            row = _read_row(line, index)
        except StructgenError as error:
            return Refused(index, error)
        self._open[index] = self.key(line), row.get("id")
        return self._generator.job_or_refusal(
            index, row["prompt"], row.get("max_new_tokens"), row.get("seed")
        )

    def written(self, index: int, result: Generation[Any] | Exception) -> bytes:
        """The output line of a row."""
        key, name = self._open.pop(index)
        line: dict[str, Any] = {"row": index, "key": key}
        if name is not None:
            line["id"] = name
        if isinstance(result, Exception):
            line["error"] = {"type": type(result).__name__, "message": str(result)}
        else:
            line["value"] = result.text if self._is_text else json.loads(result.text)
            line["finish_reason"] = result.finish_reason
            line["usage"] = asdict(result.usage)
        return _json_line(line)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _has_surrogates(name: Any) -> bool:
    """Whether a row's name, which comes from its author, is no Unicode text."""
    return not json.dumps(name, ensure_ascii=False).isascii() and "\\ud" in json.dumps(name)


def _json_line(value: dict[str, Any]) -> bytes:
    """A value on one line, also for readers that know more line ends than JSON does."""
    text = json.dumps(value, ensure_ascii=_has_surrogates(value.get("id")))
    for character in LINE_ENDS:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode() + b"\n"


def _read_row(line: bytes, index: int) -> dict[str, Any]:
    """A row as an object with `prompt`.

    Raises:
        InvalidTextError: it is no JSON.
        OptionError: it is neither a text nor an object with a prompt and known options.
    """
    try:
        row: Any = json.loads(line, parse_constant=_refused)
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise InvalidTextError(f"row {index} is not JSON: {error}") from error
    if isinstance(row, str):
        return {"prompt": row}
    if not isinstance(row, dict) or "prompt" not in row:
        raise OptionError(f"row {index} must be a text or an object with 'prompt'")
    unknown = sorted(set(cast("dict[str, Any]", row)) - set(ROW_OPTIONS))
    if unknown:
        raise OptionError(f"row {index} has unknown keys {unknown}; known are {list(ROW_OPTIONS)}")
    return cast("dict[str, Any]", row)


@contextmanager
def _opened(target: Path) -> Generating[BinaryIO]:
    """The output, open for appending; no one else may write to it."""
    with target.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OptionError(f"another run is writing to {str(target)!r}") from error
        yield file


def _cut(file: BinaryIO) -> None:
    """Remove a last line that was cut short."""
    file.seek(0)
    whole = sum(len(line) for line in file if line.endswith(b"\n"))
    file.seek(0, os.SEEK_END)
    if file.tell() > whole:
        logger.info("removed a line that was cut short from %s", file.name)
        file.truncate(whole)


def _done(file: BinaryIO, rows: _Rows, retry_errors: bool) -> set[int]:
    """The rows that need not be done again.

    Raises:
        OptionError: an output line does not fit the row that it names.
    """
    file.seek(0)
    found: dict[int, tuple[object, bool]] = {}
    for number, line in enumerate(file, 1):
        try:
            if not line.endswith(b"\n") and (found or line.startswith(START)):
                break  # a line of ours that was cut short
            output: Any = json.loads(line)
            found[int(output["row"])] = output["key"], "error" in output
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise OptionError(
                f"line {number} of {file.name!r} was not written by structgen; choose another file"
            ) from error
    file.seek(0, os.SEEK_END)
    if found:
        keys = {index: rows.key(line) for index, line in rows.lines() if index in found}
        for index, (key, _) in found.items():
            if keys.get(index) != key:
                raise OptionError(
                    f"{file.name!r} has a value of row {index} that was made from another row or "
                    "schema; choose another file, or remove it"
                )
    return {index for index, (_, is_error) in found.items() if not (is_error and retry_errors)}
