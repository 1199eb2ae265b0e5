"""The language of a `String` node: its patterns, exclusions and lengths as one automaton."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.regex import (
    Dfa,
    PatternTooLarge,
    bounded,
    complement,
    dfa_size,
    distances,
    full,
    intersect,
    is_empty,
    is_everything,
    literals,
    remembered,
    search,
)
from structgen.schema.known import known_dfa
from structgen.schema.nodes import Pattern, String

MOST_STEPS = 1_000_000
"""Bound on the work of finding out whether some text has an allowed length."""


@remembered(dfa_size, capacity=1_000_000)
def pattern_dfa(pattern: Pattern) -> Dfa:
    """Texts that agree with one pattern.

    Raises:
        PatternError: it is not a regular expression, or not one that can be enforced.
    """
    read = full if pattern.whole else search
    found = read(pattern.source, pattern.dialect)
    return complement(found) if pattern.negated else found


@remembered(dfa_size, capacity=1_000_000)
def content_dfa(patterns: tuple[Pattern, ...], excluded: tuple[str, ...]) -> Dfa:
    """Texts that agree with all of `patterns` and are none of `excluded`."""
    parts = list(_parts(patterns))
    if excluded:
        parts.append(complement(literals(excluded)))
    return _all_of(parts)


def worked_out(patterns: tuple[Pattern, ...]) -> Dfa:
    """Texts that agree with all of `patterns`, even where that is known from a file."""
    return _all_of([pattern_dfa(pattern) for pattern in patterns])


def _parts(patterns: tuple[Pattern, ...]) -> Iterator[Dfa]:
    """The automata of all patterns; those of a format are one."""
    while patterns:
        dfa, length = known_dfa(patterns) or (pattern_dfa(patterns[0]), 1)
        yield dfa
        patterns = patterns[length:]


def _all_of(parts: list[Dfa]) -> Dfa:
    dfa, *others = parts
    for other in others:
        dfa = intersect(dfa, other)
    return dfa


@remembered(dfa_size, capacity=1_000_000)
def string_dfa(node: String) -> Dfa:
    """Texts of a string with patterns or exclusions, lengths included."""
    dfa = content_dfa(node.patterns, node.excluded)
    if node.min_length or node.max_length is not None:
        dfa = bounded(dfa, node.min_length, node.max_length)
    return dfa


def has_string(node: String) -> bool:
    """Whether any text agrees with the patterns, exclusions and lengths of a node.

    The automaton of the lengths, which can be large, is not needed to know that.

    Raises:
        PatternTooLarge: it takes too much work to find out.
    """
    if not node.patterns and not node.excluded:
        return True
    dfa = content_dfa(node.patterns, node.excluded)
    if is_empty(dfa):
        return False
    left = distances(dfa)
    if left[0] >= node.min_length:
        return node.max_length is None or left[0] <= node.max_length
    states = _after(dfa, node.min_length)
    if not states or node.max_length is None:
        return bool(states)
    return min(left[state] for state in states) <= node.max_length - node.min_length


def is_any_text(patterns: tuple[Pattern, ...]) -> bool:
    """Whether every text agrees with all of some patterns, such as `.*`."""
    return not patterns or is_everything(content_dfa(patterns, ()))


def _after(dfa: Dfa, length: int) -> frozenset[int]:
    """The states that some text of exactly this length leads to."""
    steps = 0
    states = frozenset({0})
    seen: dict[frozenset[int], int] = {}
    for at in range(length):
        if states in seen:  # from here on the sets come round again
            round_ = at - seen[states]
            return list(seen)[seen[states] + (length - at) % round_]
        seen[states] = at
        states = frozenset(to for state in states for _, to in dfa.arcs[state])
        steps += len(states)
        if steps > MOST_STEPS:
            raise PatternTooLarge(f"texts of {length} characters take too much work to look for")
    return states
