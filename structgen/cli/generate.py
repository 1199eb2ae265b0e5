"""`structgen generate`: a file of prompts in, a file of values out."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import traceback
from pathlib import Path
from typing import Any, TypeAlias

from structgen.errors import OptionError

logger = logging.getLogger("structgen")

Parsers: TypeAlias = Any
"""What argparse's `add_subparsers` returns, which has no public type."""

OPTIONS = (
    ("max_new_tokens", int, "tokens that a value takes at most"),
    ("temperature", float, "as in transformers; implies sampling"),
    ("top_k", int, "as in transformers; implies sampling"),
    ("top_p", float, "as in transformers; implies sampling"),
    ("min_p", float, "as in transformers; implies sampling"),
    ("seed", int, "row i is seeded with SEED + i; implies sampling"),
    ("repetition_penalty", float, "as in transformers"),
    ("num_beams", int, "as in transformers"),
    ("retries", int, "how often a value that a validator rejects is written anew"),
)
SAMPLED = ("temperature", "top_k", "top_p", "min_p", "seed")


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = parsers.add_parser(
        "generate",
        help="generate a value for each line of a JSONL file",
        description="Generates a value for each row of a JSONL file. A run that was stopped goes "
        "on where it stopped when it is called again.",
    )
    needed = parser.add_argument
    needed("--schema", required=True, help="a Python name, module:Name, or a JSON Schema file")
    needed("--in", dest="source", required=True, metavar="FILE", help="a prompt a line")
    needed("--out", dest="target", required=True, metavar="FILE", help="a value a line")
    needed("--model", help="a Hub id or a folder; the default model if left out")
    needed("--device", help="auto, cpu, cuda, ...")
    needed("--dtype", help="auto, float32, bfloat16, ...")
    needed("--batch-size", type=int, default=8, help="rows that the model reads at a time")
    needed("--retry-errors", action="store_true", help="do rows again that ended in an error")
    for name, kind, text in OPTIONS:
        needed("--" + name.replace("_", "-"), type=kind, help=text)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Run the rows; the exit status is 1 if any of them ended in an error."""
    schema = open_schema(options.schema)
    from structgen.api import check, default_lm
    from structgen.generator import Generator
    from structgen.runner import run_jsonl
    from structgen.runtime.hf import load

    check(schema)
    chosen = {name: getattr(options, name) for name, _, _ in OPTIONS}
    given = {name: value for name, value in chosen.items() if value is not None}
    given["do_sample"] = any(name in given for name in SAMPLED)
    plain = options.model is None and options.device is None and options.dtype is None
    lm = default_lm() if plain else load(options.model, device=options.device, dtype=options.dtype)
    report = run_jsonl(
        Generator[Any](schema, lm, **given),
        options.source,
        options.target,
        batch_size=options.batch_size,
        retry_errors=options.retry_errors,
    )
    print(
        f"{report.written} values and {report.failed} errors written, "
        f"{report.skipped} rows were there already"
    )
    return int(report.failed > 0)


def open_schema(name: str) -> Any:
    """What `--schema` names: an object of a module, or the JSON Schema in a file.

    Raises:
        OptionError: there is no such object, its module cannot be imported, or the file is not
            JSON.
    """
    if name.endswith(".json"):
        try:
            return json.loads(Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OptionError(f"--schema {name}: {error}") from error
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise OptionError(f"--schema {name!r} is neither module:Name nor a .json file")
    sys.path.insert(0, "")  # as `python -m` does: modules of the current folder
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        # Importing runs the user's own code, which may raise anything, or be a script that exits.
        logger.debug("--schema %s", name, exc_info=True)
        raise OptionError(f"--schema {name}: {_told(module, error)}") from error
    finally:
        sys.path.remove("")
    return found


def _told(module: str, error: BaseException) -> str:
    """What was raised, and the line that did; not where it is just that there is no such name.

    Example: `importing schemas raised ZeroDivisionError: division by zero (schemas.py, line 7)`
    """
    places = [
        f"{frame.filename}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen ", __file__, importlib.__file__))
    ]
    if not places and isinstance(error, ImportError | AttributeError):
        return str(error)
    raised = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"importing {module} raised {raised}" + (f" ({places[-1]})" if places else "")
