"""The hierarchy of a taxonomy: which paths there are, and which stands below which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tree:
    """All paths, the labels and the levels above them, in the order of their first appearance."""

    parents: dict[str, str | None]
    children: dict[str, tuple[str, ...]]
    """Only of paths that have some."""
    roots: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[str], separator: str | None) -> Tree:
        """The tree of labels; without a separator each is a root.

        Example: `Tree.of(["A > B"], " > ").parents` -> `{"A > B": "A", "A": None}`
        """
        if not separator:
            roots = tuple(labels)
            return cls(dict.fromkeys(roots), {}, roots)
        parents: dict[str, str | None] = {}
        children: dict[str, list[str]] = {}
        roots_found: list[str] = []
        for label in labels:
            path: str | None = label
            while path is not None and path not in parents:
                above, found, _ = path.rpartition(separator)
                parent = parents[path] = above if found else None
                if parent is None:
                    roots_found.append(path)
                else:
                    children.setdefault(parent, []).append(path)
                path = parent
        below = {path: tuple(found) for path, found in children.items()}
        return cls(parents, below, tuple(roots_found))

    def above(self, path: str) -> Iterator[str]:
        """The levels above a path, the nearest first."""
        parent = self.parents[path]
        while parent is not None:
            yield parent
            parent = self.parents[parent]

    def below(self, path: str) -> Iterator[str]:
        """All paths below one, each before what stands below it."""
        pending = list(reversed(self.children.get(path, ())))
        while pending:
            at = pending.pop()
            yield at
            pending.extend(reversed(self.children.get(at, ())))
