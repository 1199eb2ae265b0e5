"""A content hash of a schema and of how it is compiled."""

from __future__ import annotations

import hashlib
from operator import itemgetter

from structgen.options import Options
from structgen.schema.nodes import Array, Node, Object, Ref, Schema, String, Union

FORMAT = 2
"""Raised whenever the same schema would compile to something else, or is written otherwise."""


def fingerprint(schema: Schema, options: Options) -> str:
    """Hex sha256 over the nodes, the definitions and the options."""
    lines = _Lines()
    root = lines.number(schema.root)
    definitions = sorted(schema.definitions.items(), key=itemgetter(0))
    named = [(name, lines.number(node)) for name, node in definitions]
    content = "\n".join([f"{FORMAT} {options!r} {root} {named!r}", *lines.numbers])
    return hashlib.sha256(content.encode()).hexdigest()


class _Lines:
    """Nodes as lines of text, each once, in which the parts of a node are the numbers of lines.

    The nodes' own `repr` says the same, but writes out a part in each place that it stands in: of
    some schemas that took a tenth of the time to compile them.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._known: dict[int, int] = {}
        """By the identity of the nodes, which the schema keeps alive."""

    def number(self, node: Node) -> int:
        """The number of a node's line; equal nodes have the same."""
        found = self._known.get(id(node))
        if found is None:
            found = self.numbers.setdefault(self._line(node), len(self.numbers))
            self._known[id(node)] = found
        return found

    def _line(self, node: Node) -> str:
        number = self.number
        if isinstance(node, Ref):
            return f"Ref {node.name!r}"
        if isinstance(node, String) and not node.patterns:
            return f"String {(node.min_length, node.max_length, node.excluded)!r}"
        if isinstance(node, Object):
            named = [(part.name, part.required, number(part.node)) for part in node.properties]
            free = [(number(extra.key), number(extra.value)) for extra in node.extras]
            ends = node.reserved, node.min_properties, node.max_properties
            return f"Object {named!r} {free!r} {ends!r}"
        if isinstance(node, Union):
            return f"Union {list(map(number, node.options))}"
        if isinstance(node, Array) and not (node.contains or node.prefix):
            ends = node.min_items, node.max_items, node.unique, node.antichain, node.separator
            return f"Array {number(node.item)} {ends!r}"
        return repr(node)
