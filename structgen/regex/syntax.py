"""The tree of a parsed pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from structgen.regex.charsets import CharSet

Dialect: TypeAlias = Literal["rust", "ecma"]
"""`rust`: what pydantic's default engine reads; `ecma`: ECMA-262 with the u flag."""

Where: TypeAlias = Literal[
    "text start", "text end", "line start", "line end",
    "word edge", "no word edge", "word start", "word end", "no word before", "no word after",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Chain:
    """One part after the other; no parts match the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of the options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body at least `least` and at most `most` times; None is no bound."""

    body: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class At:
    """Matches the empty text at certain places."""

    where: Where


@dataclass(frozen=True, slots=True)
class Look:
    """Look-around: matches the empty text where the body matches (or not) ahead or behind."""

    body: Node
    ahead: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """Any text up to the end; stands last."""


Node: TypeAlias = Chars | Chain | Choice | Repeat | At | Look | Rest

NOTHING = Chain(())


def chain(parts: list[Node]) -> Node:
    """The parts in a row, as simply as possible."""
    return parts[0] if len(parts) == 1 else Chain(tuple(parts))


def choice(options: list[Node]) -> Node:
    """Any of the options, as simply as possible."""
    return options[0] if len(options) == 1 else Choice(tuple(options))


def repeat(body: Node, least: int, most: int | None) -> Node:
    """The repeated body; a bound of zero leaves nothing."""
    if most == 0:
        return NOTHING
    if isinstance(body, Repeat) and body.least == 0 and body.most in (1, None):
        # (x?){2,5} = x{0,5} and (x*){2,5} = x*: keeps empty rounds out of the automaton.
        return Repeat(body.body, 0, most if body.most == 1 else None)
    return Repeat(body, 0 if nullable(body) else least, most)


def nullable(node: Node) -> bool:
    """Whether the node matches the empty text at any place."""
    match node:
        case Chain(parts):
            return all(map(nullable, parts))
        case Choice(options):
            return any(map(nullable, options))
        case Repeat(body, least, _):
            return least == 0 or nullable(body)
        case _:
            return isinstance(node, Rest)


def always_reads(node: Node) -> bool:
    """Whether every way through the node reads a character and no place matters to it."""
    match node:
        case Chars():
            return True
        case Chain(parts):
            return any(map(always_reads, parts)) and all(map(_is_plain, parts))
        case Choice(options):
            return all(map(always_reads, options))
        case Repeat(body, least, _):
            return least > 0 and always_reads(body)
        case _:
            return False


def _is_plain(node: Node) -> bool:
    """Whether the node has no conditions and leads somewhere."""
    match node:
        case Chain(parts) | Choice(parts):
            return all(map(_is_plain, parts))
        case Repeat(body, _, _):
            return _is_plain(body)
        case _:
            return isinstance(node, Chars)


def nfa_size(node: Node) -> int:
    """About how many states the automaton of a tree has, repeats unrolled."""
    match node:
        case Chain(parts):
            return sum(map(nfa_size, parts))
        case Choice(options):
            return 1 + sum(map(nfa_size, options))
        case Repeat(body, least, most):
            return nfa_size(body) * max(least + 1 if most is None else most, 1) + 1
        case _:
            return 1
