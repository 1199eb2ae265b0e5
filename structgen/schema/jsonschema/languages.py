"""Questions about sets of strings, answered with automata: only this file asks for those."""

from __future__ import annotations

from functools import lru_cache

from structgen.regex import PatternTooLarge, matches
from structgen.schema.nodes import Pattern, String
from structgen.schema.strings import has_string, pattern_dfa


def fits(pattern: Pattern, text: str) -> bool:
    """Whether a text fits a pattern.

    Raises:
        PatternError: it is not a regular expression of its dialect, or not a regular one.
        PatternTooLarge: it needs too many states.
    """
    return matches(pattern_dfa(pattern), text)


@lru_cache(maxsize=4096)
def is_impossible(node: String) -> bool:
    """Whether no string fits; where that would take too much work to say, it is False."""
    if not node.patterns:
        return node.max_length == 0 and "" in node.excluded
    try:
        return not has_string(node)
    except PatternTooLarge:
        return False
