"""The language of a `String` node: its patterns, exclusions and lengths as one automaton."""

from __future__ import annotations

from functools import lru_cache

from structgen import regex
from structgen.schema.nodes import Pattern, String


@lru_cache(maxsize=512)
def pattern_dfa(pattern: Pattern) -> regex.Dfa:
    """Texts that agree with one pattern.

    Raises:
        PatternError: it is not a regular expression, or not one that can be enforced.
    """
    found = regex.search(pattern.source, pattern.dialect)
    return regex.complement(found) if pattern.negated else found


@lru_cache(maxsize=512)
def content_dfa(patterns: tuple[Pattern, ...], excluded: tuple[str, ...]) -> regex.Dfa:
    """Texts that agree with all of `patterns` and are none of `excluded`."""
    parts = [pattern_dfa(pattern) for pattern in patterns]
    if excluded:
        parts.append(regex.complement(regex.literals(excluded)))
    dfa, *others = parts
    for other in others:
        dfa = regex.intersect(dfa, other)
    return dfa


@lru_cache(maxsize=512)
def string_dfa(node: String) -> regex.Dfa:
    """Texts of a string with patterns or exclusions, lengths included."""
    dfa = content_dfa(node.patterns, node.excluded)
    if node.min_length or node.max_length is not None:
        dfa = regex.bounded(dfa, node.min_length, node.max_length)
    return dfa
