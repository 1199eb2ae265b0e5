"""Automata of the formats, which belong to the library: they are read from files, not worked out.

`python -m structgen.schema.known` writes the files anew, after a format was changed; until then
its automaton is worked out as that of any other pattern.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from structgen.regex import Dfa
from structgen.schema.formats import FORMATS, format_node
from structgen.schema.nodes import Pattern

FOLDER = Path(__file__).parent / "automata"


def known_dfa(patterns: Sequence[Pattern]) -> tuple[Dfa, int] | None:
    """The automaton of the format that `patterns` begin with, and how many of them it takes."""
    for length, name in _by_first().get(patterns[0], ()) if patterns else ():
        found = _read(name, tuple(patterns[:length]))
        if found is not None:
            return found, length
    return None


def write_known(of: Callable[[tuple[Pattern, ...]], Dfa]) -> None:
    """Write the files of all formats, whose automata `of` works out."""
    FOLDER.mkdir(exist_ok=True)
    for name, patterns in format_patterns().items():
        dfa = of(patterns)
        content = {
            "patterns": _digest(patterns),
            "letters": dfa.letters,
            "arcs": dfa.arcs,
            "accepting": sorted(dfa.accepting),
        }
        (FOLDER / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


@cache
def format_patterns() -> dict[str, tuple[Pattern, ...]]:
    """The patterns of each format; of formats that are the same, only the first is named."""
    found: dict[tuple[Pattern, ...], str] = {}
    for name in sorted(FORMATS):
        node = format_node(name)
        if node is not None:
            found.setdefault(node.patterns, name)
    return {name: patterns for patterns, name in found.items()}


@cache
def _by_first() -> dict[Pattern, list[tuple[int, str]]]:
    """(number of patterns, name) of the formats by their first pattern."""
    found: dict[Pattern, list[tuple[int, str]]] = {}
    for name, patterns in format_patterns().items():
        found.setdefault(patterns[0], []).append((len(patterns), name))
    return found


def _read(name: str, patterns: tuple[Pattern, ...]) -> Dfa | None:
    path = FOLDER / f"{name}.json"
    if patterns != format_patterns()[name] or not path.exists():
        return None
    content = json.loads(path.read_bytes())
    if content["patterns"] != _digest(patterns):
        return None
    return Dfa(
        tuple(tuple((first, last) for first, last in letter) for letter in content["letters"]),
        tuple(tuple((mask, to) for mask, to in row) for row in content["arcs"]),
        frozenset(content["accepting"]),
    )


def _digest(patterns: tuple[Pattern, ...]) -> str:
    return sha256(repr(patterns).encode()).hexdigest()


if __name__ == "__main__":
    from structgen.schema.strings import worked_out

    write_known(worked_out)
