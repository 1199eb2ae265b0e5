"""The language of a `Raw` node: what its text may be before each of its stop strings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from structgen.regex import Dfa, bounded, complement, distances, intersect, is_empty, search
from structgen.regex.dfa import ANYTHING
from structgen.regex.minimise import minimal
from structgen.schema.nodes import Raw, String
from structgen.schema.strings import content_dfa
from structgen.schema.substrings import containing


@dataclass(frozen=True, slots=True)
class Ending:
    """One way in which a text may end."""

    content: Dfa
    """What may stand before `stops`, without regard to lengths."""
    stops: tuple[str, ...]
    """Any of them comes next; empty where nothing has to."""


@lru_cache(maxsize=256)
def endings(node: Raw) -> tuple[Ending, ...]:
    """The ways in which a text may end.

    The first stop string to occur ends the text, so no stop may occur before it, not even one
    that the content begins and the stop itself completes: before `aa` no text ends with `a`.

    Raises:
        PatternError: a pattern is no regular expression, or its automaton is too large.
    """
    content = plain_dfa(node.content)
    if not node.stops:
        return (Ending(content, ()),)
    found = containing(node.stops)
    without = complement(search(found.source, found.dialect))
    stops_of: dict[frozenset[int], list[str]] = {}
    for stop in node.stops:
        clean = frozenset(p for p in range(len(without)) if _can_read(without, p, stop[:-1]))
        stops_of.setdefault(clean, []).append(stop)
    rows = [list(row) for row in without.arcs]
    return tuple(
        Ending(intersect(minimal(without.letters, rows, clean), content), tuple(stops))
        for clean, stops in stops_of.items()
    )


def plain_dfa(node: String) -> Dfa:
    """The texts of a string, without regard to lengths."""
    if node.patterns or node.excluded:
        return content_dfa(node.patterns, node.excluded)
    return ANYTHING


def within(dfa: Dfa, node: String) -> Dfa:
    """The texts of an automaton that have the lengths of a string."""
    return bounded(dfa, node.min_length, node.max_length)


def has_text(node: Raw) -> bool:
    """Whether there is any such text."""
    return any(has_lengths(ending.content, node.content) for ending in endings(node))


def has_lengths(dfa: Dfa, node: String) -> bool:
    """Whether some text of an automaton has the lengths of a string."""
    if is_empty(dfa):
        return False
    if node.min_length:
        return not is_empty(within(dfa, node))
    return node.max_length is None or distances(dfa)[0] <= node.max_length


def may_be_empty(node: Raw) -> bool:
    """Whether nothing at all is such a text."""
    if node.stops or node.content.min_length:
        return False
    return 0 in plain_dfa(node.content).accepting


def _can_read(dfa: Dfa, state: int, text: str) -> bool:
    for char in text:
        state = dfa.step(state, char)
        if state < 0:
            return False
    return True
