"""The language of a `String` node: its patterns, exclusions and lengths as one automaton."""

from __future__ import annotations

from functools import lru_cache

from structgen.regex import Dfa, bounded, complement, intersect, literals, search
from structgen.schema.nodes import Pattern, String


@lru_cache(maxsize=512)
def pattern_dfa(pattern: Pattern) -> Dfa:
    """Texts that agree with one pattern.

    Raises:
        PatternError: it is not a regular expression, or not one that can be enforced.
    """
    found = search(pattern.source, pattern.dialect)
    return complement(found) if pattern.negated else found


@lru_cache(maxsize=512)
def content_dfa(patterns: tuple[Pattern, ...], excluded: tuple[str, ...]) -> Dfa:
    """Texts that agree with all of `patterns` and are none of `excluded`."""
    parts = [pattern_dfa(pattern) for pattern in patterns]
    if excluded:
        parts.append(complement(literals(excluded)))
    dfa, *others = parts
    for other in others:
        dfa = intersect(dfa, other)
    return dfa


@lru_cache(maxsize=512)
def string_dfa(node: String) -> Dfa:
    """Texts of a string with patterns or exclusions, lengths included."""
    dfa = content_dfa(node.patterns, node.excluded)
    if node.min_length or node.max_length is not None:
        dfa = bounded(dfa, node.min_length, node.max_length)
    return dfa
