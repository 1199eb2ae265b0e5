"""Tree -> automaton with empty moves, some of them only at certain places."""

from __future__ import annotations

from typing import TypeAlias

from structgen.regex.charsets import ALL, CharSet
from structgen.regex.limits import Meter
from structgen.regex.syntax import (
    At,
    Chain,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Rest,
    always_reads,
    nfa_size,
)

Condition: TypeAlias = At | Look

Span: TypeAlias = tuple[int, int, int]
"""(first state, states a round, rounds) of the optional rounds of a counted repeat."""


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
        self.spans: list[Span] = []
        """The counted repeats."""
        self.alike: list[Span] = []
        """Those that `shifts` can use, in ascending order."""
        self.loops: set[int] = set()
        """States that read the characters of a set over and over."""
        self.final = -1
        self.depth = 0
        """How many repeats enclose what is being added."""
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
            ends = [_add(nfa, option, at) for option in options]
            return _joined(nfa, ends)
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


def _joined(nfa: Nfa, ends: list[int]) -> int:
    """A state behind all of `ends`; made last, so that its number is above all that lead to it."""
    end = nfa.state()
    for state in ends:
        nfa.empty[state].append(end)
    return end


def _add_repeat(nfa: Nfa, body: Node, least: int, most: int | None, at: int) -> int:
    """Unroll a repeat; the optional rounds are nested, so each has one way out only."""
    is_repeated = most != 1
    nfa.depth += is_repeated
    at = _add_rounds(nfa, body, least, at)[-1]
    if most is None:
        loop = nfa.state()
        nfa.empty[at].append(loop)
        nfa.empty[_add(nfa, body, loop)].append(loop)
        if isinstance(body, Chars):
            nfa.loops.add(loop)
        nfa.depth -= is_repeated
        return loop
    first = len(nfa.moves)
    ends = _add_rounds(nfa, body, most - least, at)
    nfa.depth -= is_repeated
    rounds = most - least
    size = (len(nfa.moves) - first) // max(rounds, 1)
    if rounds > 1 and size:
        nfa.spans.append((first, size, rounds))
        if not nfa.depth and always_reads(body):
            nfa.alike.append((first, size, rounds))
    return _joined(nfa, ends)


def _add_rounds(nfa: Nfa, body: Node, count: int, at: int) -> list[int]:
    """Add rounds one behind the other and return where each starts, and where the last one ends."""
    if not count:
        return [at]
    fragment = _Fragment(nfa, at)
    end = _add(nfa, body, at)
    size = len(nfa.moves) - fragment.first
    if size:
        fragment.repeat(nfa, count - 1, end)
    return [at, *(end + size * index for index in range(count))]


class _Fragment:
    """Copies what was added since it was made, which takes less time than to add it again."""

    def __init__(self, nfa: Nfa, at: int) -> None:
        self.first = len(nfa.moves)
        self._at = at
        self._moves = len(nfa.moves[at])
        self._empty = len(nfa.empty[at])
        self._conditional = len(nfa.conditional.get(at, ()))
        self._spans = len(nfa.spans)

    def repeat(self, nfa: Nfa, count: int, end: int) -> None:
        """Add it `count` times more, first from `end` on and then from where each copy ends."""
        first, stop = self.first, len(nfa.moves)
        size = stop - first
        moves = [nfa.moves[self._at][self._moves :], *map(list, nfa.moves[first:])]
        empty = [nfa.empty[self._at][self._empty :], *map(list, nfa.empty[first:])]
        inside = {n: list(nfa.conditional[n]) for n in range(first, stop) if n in nfa.conditional}
        from_start = nfa.conditional.get(self._at, [])[self._conditional :]
        spans = nfa.spans[self._spans :]
        loops = [state for state in nfa.loops if first <= state < stop]
        rests = [state for state in nfa.rests if first <= state < stop]
        for by in range(size, size * (count + 1), size):
            start = end + by - size
            new_moves, *more_moves = [[(chars, to + by) for chars, to in row] for row in moves]
            new_empty, *more_empty = [[to + by for to in row] for row in empty]
            nfa.moves[start].extend(new_moves)
            nfa.empty[start].extend(new_empty)
            nfa.moves.extend(more_moves)
            nfa.empty.extend(more_empty)
            for state, pairs in (*inside.items(), (start - by, from_start)):
                if pairs:
                    new = [(condition, to + by) for condition, to in pairs]
                    nfa.conditional.setdefault(state + by, []).extend(new)
            nfa.spans.extend((state + by, period, rounds) for state, period, rounds in spans)
            nfa.loops.update(state + by for state in loops)
            nfa.rests.update(state + by for state in rests)


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
