"""Look-around as automata: what may follow a place, and what may come before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from structgen.regex.algebra import complement, translated
from structgen.regex.charsets import ALL, CharSet
from structgen.regex.dfa import Dfa
from structgen.regex.kinds import EDGE, LINE, OTHER, UNKNOWN, WORD, Kind
from structgen.regex.nfa import Condition
from structgen.regex.syntax import At, Chain, Chars, Choice, Look, Node, Repeat, Rest

Compile: TypeAlias = Callable[[Node, Kind, Kind], Dfa]
"""(tree, kind of what comes before the text, kind of what comes after it) -> automaton"""


class Table:
    """A look-around automaton over common letters."""

    def __init__(self, dfa: Dfa, masks: list[int]) -> None:
        self.accepting = dfa.accepting
        self.arcs = translated(dfa, masks)
        self.dead = not dfa.accepting
        self.free = {
            state
            for state, arcs in enumerate(self.arcs)
            if state in dfa.accepting and arcs == [(sum(masks), state)]
        }
        """States after which everything is accepted."""


class Looks:
    """The automata of some look-arounds, one for each kind of character on their other side.

    A look-ahead sees the character before it only in its `^` and word edges.
    """

    def __init__(self, looks: list[Look], compiled: Compile) -> None:
        self._index: dict[tuple[Look, Kind], int] = {}
        self.automata: list[Dfa] = []
        self.tables: list[Table] = []
        for look in looks:
            if _sees_across(look):
                for kind in (EDGE, LINE, WORD, UNKNOWN, OTHER):
                    self._index[look, kind] = len(self.automata)
                    self.automata.append(_look_dfa(look, kind, compiled))
            else:
                for kind in (EDGE, LINE, WORD, UNKNOWN, OTHER):
                    self._index[look, kind] = len(self.automata)
                self.automata.append(_look_dfa(look, EDGE, compiled))

    def sets(self) -> list[CharSet]:
        """All letters of the automata."""
        return [chars for dfa in self.automata for chars in dfa.letters]

    def translate(self, masks: list[int]) -> None:
        """Make the tables; `masks` are those of `sets()` in the common letters."""
        for dfa in self.automata:
            self.tables.append(Table(dfa, masks[: len(dfa.letters)]))
            masks = masks[len(dfa.letters) :]

    def index(self, look: Look, kind: Kind) -> int:
        """Which table holds for a look-around beside a character of this kind."""
        return self._index[look, kind]


def _look_dfa(look: Look, kind: Kind, compiled: Compile) -> Dfa:
    if look.ahead:
        dfa = compiled(Chain((look.body, Rest())), kind, EDGE)
    else:
        dfa = compiled(Chain((Repeat(Chars(ALL), 0, None), look.body)), EDGE, kind)
    return complement(dfa) if look.negative else dfa


def conditions_in(node: Node) -> list[Condition]:
    """All conditions of a tree, those inside of look-around too."""
    match node:
        case At():
            return [node]
        case Look():
            return [node, *conditions_in(node.body)]
        case Repeat(body, _, _):
            return conditions_in(body)
        case Chain(parts) | Choice(parts):
            return [found for part in parts for found in conditions_in(part)]
        case _:
            return []


def _sees_across(look: Look) -> bool:
    """Whether the look-around depends on the kind of the character on its other side."""
    own = ("text end", "line end", "no word after")
    if not look.ahead:
        own = ("text start", "line start", "no word before")
    return any(isinstance(part, At) and part.where not in own for part in conditions_in(look.body))
