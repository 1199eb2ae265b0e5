"""The command `structgen`.

Each command is a file with a function `add`, which adds its parser, with what to run as the default
of `run`; it imports what it needs only when it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from structgen.cli import bench, cache, classify, generate
from structgen.errors import StructgenError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status, 1 for an error that was printed."""
    parser = argparse.ArgumentParser(prog="structgen", description="Exact structured generation.")
    parsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in (generate.add, classify.add, bench.add, cache.add):
        add(parsers)
    options = parser.parse_args(arguments)
    try:
        return options.run(options) or 0
    except BrokenPipeError:  # `structgen cache ls | head`
        sys.stderr.close()
        return 1
    except (StructgenError, OSError) as error:
        print(f"structgen: {error}", file=sys.stderr)
        return 1
