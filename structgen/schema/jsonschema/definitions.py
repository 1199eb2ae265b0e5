"""The named parts of a schema while it is read: made at first use, shared, safe in recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from structgen.deadline import check_deadline
from structgen.errors import Fault, LimitError
from structgen.schema.jsonschema.walk import references
from structgen.schema.nodes import Never, Node, Ref, Union

MOST_NODES = 200_000
"""How many nodes one schema may be read and combined into."""

COUNTS_PER_LOOK = 16
"""Calls of `Definitions.count` between two looks at the clock, which take a microsecond."""

MOST_COMBINATIONS = 1000
"""How many combinations of definitions there may be."""

Thunk: TypeAlias = Callable[[], Node]
Parts: TypeAlias = tuple[tuple[Node, bool], ...]
"""Nodes that a value must match (True) or must not match, in order."""


class Unrepresentable(Exception):
    """A set of values that no node describes; it becomes a fault at the keyword that asked."""


class InProgress(Exception):
    """A definition was asked for while it is being made."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


@dataclass(slots=True)
class Definitions:
    """State of one conversion: what is wrong, what is defined, what is still to be made."""

    faults: dict[Fault, None] = field(default_factory=dict[Fault, None])
    ignored: dict[Fault, None] = field(default_factory=dict[Fault, None])
    """What the schema says that is no assertion to anybody."""
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    path: str = "$"
    """Where the reader is; combinations that are made later are reported there."""
    contains: bool = False
    """Whether some array must contain items."""
    _pending: dict[str, tuple[Thunk, str]] = field(
        default_factory=lambda: dict[str, tuple[Thunk, str]]()
    )
    _running: set[str] = field(default_factory=set[str])
    _used: set[str] = field(default_factory=set[str])
    _taken: dict[str, int] = field(default_factory=dict[str, int])
    _memo: dict[Parts, Node | Unrepresentable] = field(
        default_factory=lambda: dict[Parts, Node | Unrepresentable]()
    )
    _parts: dict[str, Parts] = field(default_factory=lambda: dict[str, Parts]())
    _work: int = 0
    _counts: int = 0

    def refuse(self, path: str, problem: str, advice: str = "") -> Never:
        """Note a fault; the part counts as impossible from here on."""
        self.faults[Fault(path, problem, advice)] = None
        return Never(problem, path)

    def count(self, n: int = 1) -> None:
        """Count nodes that were made.

        Raises:
            LimitError: there are too many of them, or it takes too long.
        """
        self._counts += 1
        if self._counts % COUNTS_PER_LOOK == 1:
            check_deadline()
        self._work += n
        if self._work > MOST_NODES:
            raise LimitError(
                f"the schema expands to more than {MOST_NODES:,} nodes, at {self.path[:60]}; "
                "combine fewer alternatives"
            )

    def define(self, hint: str, thunk: Thunk, path: str) -> Ref:
        """A reference to a definition that is made when it is first looked into."""
        name = self._fresh(hint)
        self._pending[name] = (thunk, path)
        return Ref(name)

    def resolve(self, node: Node) -> Node:
        """What a reference refers to; any other node is itself.

        Raises:
            InProgress: it is just being made.
        """
        if isinstance(node, Ref):
            check_deadline()
        while isinstance(node, Ref):
            if node.name not in self.nodes:
                self._force(node.name)
            node = self.nodes[node.name]
        return node

    def settle(self) -> None:
        """Make everything that was put off."""
        while self._pending:
            self._force(next(iter(self._pending)))

    def parts(self, node: Node) -> Parts:
        """What a node was combined from: nodes that must match, and nodes that must not."""
        known = self._parts.get(node.name) if isinstance(node, Ref) else None
        return ((node, True),) if known is None else known

    def combined(self, key: Parts, hint: str, compute: Thunk, *, lazy: bool = False) -> Node:
        """The combination of recursive parts; inside of itself it is a reference.

        It is known by its parts, so that combinations of combinations come to an end.

        Args:
            lazy: put it off where a part is just being made, else that raises `InProgress`.
        """
        known = self._memo.get(key)
        if isinstance(known, Unrepresentable):
            raise known
        if known is not None:
            if isinstance(known, Ref):
                self._used.add(known.name)
            return known
        if len(self._parts) >= MOST_COMBINATIONS:
            raise LimitError(
                f"the schema's recursive parts are combined in more than {MOST_COMBINATIONS:,} "
                f"ways, at {self.path[:60]}; combine fewer of them"
            )
        name = self._fresh(hint)
        self._memo[key] = Ref(name)
        self._parts[name] = key
        try:
            node = self._run(name, compute)
        except InProgress:
            if not lazy:
                del self._memo[key]
                self.nodes[name] = Never("abandoned")
                raise
            self._pending[name] = (compute, self.path)
            return Ref(name)
        except Unrepresentable as error:
            self._memo[key] = error
            self.nodes[name] = Never(str(error))
            raise
        if name not in self._used and next(references(node), None) is None:
            self._memo[key] = node
            return node
        # What holds references stays a reference, so that its parts are known when it is combined.
        self.nodes[name] = node
        return Ref(name)

    def _run(self, name: str, thunk: Thunk) -> Node:
        self._running.add(name)
        try:
            return thunk()
        finally:
            self._running.discard(name)

    def _force(self, name: str) -> None:
        if name in self._running:
            raise InProgress(name)
        thunk, path = self._pending[name]
        outer, self.path = self.path, path
        try:
            node = self._run(name, thunk)
        except InProgress as error:
            if error.name != name:
                raise
            node = self._loop(path)
        except Unrepresentable as error:
            node = self.refuse(path, str(error))
        finally:
            self.path = outer
        self._pending.pop(name, None)
        self.nodes[name] = self._loop(path) if name in self._unguarded(node) else node

    def _loop(self, path: str) -> Never:
        return self.refuse(
            path,
            "the reference leads back to itself with nothing in between",
            "refer to it from inside a property or an item",
        )

    def _unguarded(self, node: Node) -> set[str]:
        """Names that a value must match itself, not with one of its parts."""
        found: set[str] = set()
        todo: list[Node] = [node]
        while todo:
            for name in _names(todo.pop()):
                if name not in found:
                    found.add(name)
                    todo.append(self.nodes.get(name, Never("not made yet")))
        return found

    def _fresh(self, hint: str) -> str:
        name, count = hint, self._taken.get(hint, 0)
        while name in self._taken:
            count += 1
            name = f"{hint}#{count + 1}"
        self._taken[hint] = count
        self._taken[name] = 0
        return name


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, Ref):
        yield node.name
    elif isinstance(node, Union):
        for option in node.options:
            yield from _names(option)
