"""Questions about sets of strings, answered with automata: only this file asks for those."""

from __future__ import annotations

from functools import lru_cache

from structgen.regex import (
    Dfa,
    PatternTooLarge,
    bounded,
    complement,
    endless,
    intersect,
    is_empty,
    literals,
    matches,
    search,
    shortest,
)
from structgen.schema.nodes import Pattern, String


@lru_cache(maxsize=1024)
def automaton(pattern: Pattern) -> Dfa:
    """The automaton of a pattern.

    Raises:
        PatternError: it is not a regular expression of its dialect, or not a regular one.
        PatternTooLarge: it needs too many states.
    """
    found = search(pattern.source, pattern.dialect)
    return complement(found) if pattern.negated else found


def fits(pattern: Pattern, text: str) -> bool:
    """Whether a text fits a pattern."""
    return matches(automaton(pattern), text)


@lru_cache(maxsize=4096)
def is_impossible(node: String) -> bool:
    """Whether no string fits; where that would take too much work to say, it is False."""
    if not node.patterns:
        return node.max_length == 0 and "" in node.excluded
    try:
        language = automaton(node.patterns[0])
        for pattern in node.patterns[1:]:
            language = intersect(language, automaton(pattern))
        first = shortest(language)
        if first is None or (node.max_length is not None and len(first) > node.max_length):
            return True
        if len(first) >= node.min_length and first not in node.excluded:
            return False
        if node.max_length is None and endless(language) and not node.excluded:
            return False
        if node.min_length or node.max_length is not None:
            language = bounded(language, node.min_length, node.max_length)
        if node.excluded:
            language = intersect(language, complement(literals(node.excluded)))
        return is_empty(language)
    except PatternTooLarge:
        return False
