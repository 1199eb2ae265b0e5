"""Pattern -> automaton of the texts in which it is found."""

from __future__ import annotations

from structgen.regex.charsets import ALL
from structgen.regex.dfa import Dfa, dfa_size
from structgen.regex.kinds import EDGE, Kind
from structgen.regex.limits import STATES, Meter
from structgen.regex.lookaround import Sides, determinise_with_conditions
from structgen.regex.nfa import build_nfa
from structgen.regex.parser import parse
from structgen.regex.recent import remembered
from structgen.regex.subsets import determinise
from structgen.regex.syntax import (
    NOTHING,
    At,
    Chain,
    Chars,
    Choice,
    Dialect,
    Node,
    Repeat,
    Rest,
    choice,
)


@remembered(dfa_size, capacity=1_000_000)
def search(pattern: str, dialect: Dialect, limit: int = STATES) -> Dfa:
    """Accepts exactly the texts in which the pattern is found somewhere.

    Example: `search("^a+$", "ecma")` accepts `a`, `aa`, ...; `search("a", "ecma")` also `bab`.

    Raises:
        PatternError: The pattern is invalid or not supported.
        PatternTooLarge: Its automaton would pass `limit` states or a bound on work.
    """
    return _compiled(_open_end(_open_start(parse(pattern, dialect))), dialect, Meter(limit))


def full(pattern: str, dialect: Dialect, limit: int = STATES) -> Dfa:
    """Accepts exactly the texts that the pattern matches from start to end; raises as `search`."""
    return _compiled(parse(pattern, dialect), dialect, Meter(limit))


def _compiled(node: Node, dialect: Dialect, meter: Meter, sides: Sides = (EDGE, EDGE)) -> Dfa:
    """The automaton of a tree; in a look-around, something may stand on its sides."""

    def inner(body: Node, before: Kind, after: Kind) -> Dfa:
        return _compiled(body, dialect, meter, (before, after))

    nfa = build_nfa(node, meter)
    if nfa.conditional:
        return determinise_with_conditions(nfa, dialect, meter, inner, sides)
    return determinise(nfa, meter)


def _open_start(node: Node) -> Node:
    """Let any text come first, where the pattern does not begin with `^`."""
    match node:
        case At("text start"):
            return NOTHING
        case Chain((first, *others)) if isinstance(first, At | Choice | Chain):
            if isinstance(first, At) and first.where == "text start":
                return Chain(tuple(others))
            if not isinstance(first, At):
                return Chain((_open_start(first), *others))
        case Choice(options):
            opened = [_open_start(option) for option in options]
            anchored = [new for old, new in zip(options, opened, strict=True) if _anchored(old)]
            floating = [old for old in options if not _anchored(old)]
            if not anchored:
                return _after_any(node)
            return choice([*anchored, *([_after_any(choice(floating))] if floating else [])])
        case _:
            pass
    return _after_any(node)


def _after_any(node: Node) -> Node:
    return Chain((Repeat(Chars(ALL), 0, None), node))


def _anchored(node: Node) -> bool:
    """Whether some option of the node begins with `^`."""
    match node:
        case At(where):
            return where == "text start"
        case Chain((first, *_)):
            return _anchored(first)
        case Choice(options):
            return any(map(_anchored, options))
        case _:
            return False


def _open_end(node: Node) -> Node:
    """Let any text come last, where the pattern does not end with `$`."""
    match node:
        case At("text end"):
            return NOTHING
        case Chain((*others, last)) if isinstance(last, At | Choice | Chain):
            return Chain((*others, _open_end(last)))
        case Choice(options):
            return choice([_open_end(option) for option in options])
        case _:
            return Chain((node, Rest()))
