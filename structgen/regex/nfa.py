"""Tree -> automaton with empty moves, some of them only at certain places."""

from __future__ import annotations

from typing import TypeAlias

from structgen.regex.charsets import ALL, CharSet
from structgen.regex.limits import Meter
from structgen.regex.syntax import At, Chain, Chars, Choice, Look, Node, Repeat, Rest, nfa_size

Condition: TypeAlias = At | Look


class Nfa:
    """States are numbers, 0 is the start; built once by `build_nfa`."""

    def __init__(self) -> None:
        self.sets: list[CharSet] = []
        """The sets that moves read, each once."""
        self.moves: list[list[tuple[int, int]]] = []
        """(index of the set, target) by state."""
        self.empty: list[list[int]] = []
        """Targets of unconditional empty moves by state."""
        self.conditional: dict[int, list[tuple[Condition, int]]] = {}
        """(condition, target) by state."""
        self.rests: set[int] = set()
        """States from which any text is accepted."""
        self.spans: list[tuple[int, int, int]] = []
        """(first state, states a round, rounds) of the optional rounds of each counted repeat."""
        self.final = -1
        self._index: dict[CharSet, int] = {}

    def state(self) -> int:
        """Add a state."""
        self.moves.append([])
        self.empty.append([])
        return len(self.moves) - 1

    def move(self, source: int, chars: CharSet, to: int) -> None:
        """Let `source` read a character of `chars`; the empty set leads nowhere."""
        if not chars:
            return
        index = self._index.setdefault(chars, len(self.sets))
        if index == len(self.sets):
            self.sets.append(chars)
        self.moves[source].append((index, to))

    def conditions(self) -> list[Condition]:
        """All conditions of empty moves."""
        return [condition for pairs in self.conditional.values() for condition, _ in pairs]


def build_nfa(node: Node, meter: Meter) -> Nfa:
    """The automaton of a tree."""
    meter.states(nfa_size(node))
    nfa = Nfa()
    nfa.final = _add(nfa, node, nfa.state())
    return nfa


def _add(nfa: Nfa, node: Node, at: int) -> int:
    """Add the paths of `node` from state `at` on and return where they end.

    `at` gets no new incoming moves, and the end has no outgoing ones that leave the node.
    """
    match node:
        case Chars(chars):
            end = nfa.state()
            nfa.move(at, chars, end)
            return end
        case Chain(parts):
            for part in parts:
                at = _add(nfa, part, at)
            return at
        case Choice(options):
            end = nfa.state()
            for option in options:
                nfa.empty[_add(nfa, option, at)].append(end)
            return end
        case Repeat(body, least, most):
            return _add_repeat(nfa, body, least, most, at)
        case Rest():
            loop = nfa.state()
            nfa.empty[at].append(loop)
            nfa.move(loop, ALL, loop)
            nfa.rests.add(loop)
            return loop
        case At() | Look():
            end = nfa.state()
            nfa.conditional.setdefault(at, []).append((node, end))
            return end


def _add_repeat(nfa: Nfa, body: Node, least: int, most: int | None, at: int) -> int:
    """Unroll a repeat; the optional rounds are nested, so each has one way out only."""
    for _ in range(least):
        at = _add(nfa, body, at)
    if most is None:
        loop = nfa.state()
        nfa.empty[at].append(loop)
        nfa.empty[_add(nfa, body, loop)].append(loop)
        return loop
    end = nfa.state()
    first = len(nfa.moves)
    for _ in range(most - least):
        nfa.empty[at].append(end)
        at = _add(nfa, body, at)
    nfa.empty[at].append(end)
    if most - least > 1:
        nfa.spans.append((first, (len(nfa.moves) - first) // (most - least), most - least))
    return end


class Rounds:
    """Drops states from which only texts are accepted that another state of the set accepts too.

    In the optional rounds of a counted repeat, a state allows whatever the same state of a later
    round does, so only the earliest is kept: `a.{0,99}b` then has 100 states, not 2 ** 99.
    """

    def __init__(self, nfa: Nfa, meter: Meter) -> None:
        self._keys: dict[int, list[int]] = {}
        key = 0
        for first, size, rounds in nfa.spans:
            meter.spend(size * rounds)
            for state in range(first, first + size * rounds):
                self._keys.setdefault(state, []).append(key + (state - first) % size)
            key += size

    def earliest(self, states: frozenset[int]) -> frozenset[int]:
        """The states without those that are the same as an earlier one but for the round."""
        if not self._keys or len(states) < 2:
            return states
        first: dict[int, int] = {}
        dropped: list[int] = []
        for state in sorted(states):
            for key in self._keys.get(state, ()):
                if first.setdefault(key, state) != state:
                    dropped.append(state)
                    break
        return states.difference(dropped) if dropped else states


class Closures:
    """For each state, the states that matter among those reached by empty moves alone.

    A state matters if it reads, is final, or has conditional moves.
    """

    def __init__(self, nfa: Nfa, meter: Meter) -> None:
        self._nfa = nfa
        self._meter = meter
        self._known: dict[int, frozenset[int]] = {}

    def __getitem__(self, state: int) -> frozenset[int]:
        known = self._known.get(state)
        if known is None:
            known = self._known[state] = self._compute(state)
        return known

    def _compute(self, state: int) -> frozenset[int]:
        nfa = self._nfa
        seen = {state}
        stack = [state]
        while stack:
            for target in nfa.empty[stack.pop()]:
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        self._meter.spend(len(seen))
        return frozenset(
            found
            for found in seen
            if nfa.moves[found] or found == nfa.final or found in nfa.conditional
        )
