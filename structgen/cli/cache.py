"""`structgen cache`: what is kept on disk."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, TypeAlias

Parsers: TypeAlias = Any
"""What argparse's `add_subparsers` returns, which has no public type."""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = parsers.add_parser("cache", help="show or clear what is kept on disk")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("ls", help="kinds, numbers, sizes and ages of the entries")
    listing.set_defaults(run=_cache_ls)
    clearing = actions.add_parser("clear", help="remove entries, and say which")
    clearing.set_defaults(run=_cache_clear)
    actions.add_parser("path", help="print the folder").set_defaults(run=_cache_path)
    for action in (listing, clearing):
        action.add_argument("--kind", choices=_kinds(), help="only entries of this kind")


def _kinds() -> tuple[str, ...]:
    from structgen.cache_folder import KINDS

    return KINDS


def _cache_path(_: argparse.Namespace) -> None:
    from structgen.cache import cache_dir

    print(cache_dir())


def _cache_ls(options: argparse.Namespace) -> None:
    """One line a kind; with a kind, one line an entry."""
    from structgen.cache import cache_dir, capacity_bytes
    from structgen.cache_folder import entries

    found = entries(cache_dir(), options.kind)
    print(f"{cache_dir()}, at most {_size(capacity_bytes())}")
    if options.kind:
        for entry in found:
            print(f"{_name(entry.path):20} {_size(entry.n_bytes):>10}  {_age(entry.used_at)}")
    for kind in (options.kind,) if options.kind else _kinds():
        own = [entry for entry in found if entry.kind == kind]
        since = f"  used {_age(own[-1].used_at)}, the oldest {_age(own[0].used_at)}" if own else ""
        print(f"{kind:12} {len(own):7} {_size(sum(entry.n_bytes for entry in own)):>10}{since}")


def _cache_clear(options: argparse.Namespace) -> None:
    from structgen.cache import cache_dir
    from structgen.cache_folder import entries, remove

    for kind in (options.kind,) if options.kind else _kinds():
        doomed = entries(cache_dir(), kind)
        print(f"removed {len(doomed)} of kind {kind}, {_size(remove(doomed))}")


def _name(path: Path) -> str:
    return path.name[:16]


def _size(n_bytes: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes} bytes"


def _age(then: float) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max(time.time() - then, 0.0)
    for unit, factor in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= factor:
            return f"{seconds / factor:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
