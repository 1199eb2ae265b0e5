"""Rules about shapes: depth, open objects, strings without an end, large patterns."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.automata.calls import NO_LIMIT
from structgen.automata.patterns import pattern_frame
from structgen.linter.design import Design, Problem
from structgen.regex import endless
from structgen.schema.nodes import Array, Embedded, Node, Object, Parts, Ref, Schema, String, Union
from structgen.schema.strings import content_dfa, has_string, string_dfa

DEEPEST = 4
"""Objects inside each other."""
MOST_STATES = 1_000
"""States of a pattern's automaton."""


def flat_over_deep(design: Design) -> Iterator[Problem]:
    """Objects are nested too deeply; the deepest chain is reported."""
    depth, path = _Depths(design.schema).below(design.schema.root)
    if depth > DEEPEST:
        message = f"{depth} objects are nested inside each other"
        yield Problem("$" + path, message, f"flatten the schema to at most {DEEPEST}")


class _Depths:
    """How many objects are nested in each other, with the path of the innermost."""

    def __init__(self, schema: Schema) -> None:
        self._definitions = schema.definitions
        self._known: dict[str, tuple[int, str]] = {}

    def below(self, node: Node) -> tuple[int, str]:
        """The longest chain from a node on; a recursion counts once."""
        match node:
            case Ref():
                return self._definition(node.name)
            case Object():
                named = [(f".{prop.name}", prop.node) for prop in node.properties]
                others = [(".*", extra.value) for extra in node.extras]
                depth, path = self._deepest([*named, *others])
                return (depth + 1, path) if depth else (1, "")
            case Array():
                first = [(f"[{index}]", item) for index, item in enumerate(node.prefix)]
                rest = [node.item, *(part.item for part in node.contains)]
                return self._deepest([*first, *(("[*]", item) for item in rest)])
            case Union():
                return self._deepest([("", option) for option in node.options])
            case Embedded():
                return self.below(node.node)
            case Parts():
                return self._deepest([(part.step, part.node) for part in node.parts])
            case _:
                return 0, ""

    def _deepest(self, parts: list[tuple[str, Node]]) -> tuple[int, str]:
        best = (0, "")
        for step, node in parts:
            depth, path = self.below(node)
            if depth > best[0]:
                best = (depth, step + path)
        return best

    def _definition(self, name: str) -> tuple[int, str]:
        if name not in self._known:
            self._known[name] = (0, "")  # what it contains of itself adds nothing
            self._known[name] = self.below(self._definitions[name])
        return self._known[name]


def closed_objects(design: Design) -> Iterator[Problem]:
    """Properties besides the declared ones are allowed."""
    for site, node in design.objects:
        if node.extras:
            message = "the model may add properties that nobody declared"
            advice = 'close it: drop `extra="allow"`, or set `additionalProperties` to false'
            yield design.at(site, message, advice)


def capped_strings(design: Design) -> Iterator[Problem]:
    """A string may go on until the budget is spent."""
    open_keys = {f"{site.path}.<key>" for site, node in design.objects if node.extras}
    for site in design.sites:
        node = site.node
        if not isinstance(node, String) or node.name or node.max_length is not None:
            continue
        if site.path in open_keys or (node.patterns and not endless(string_dfa(node))):
            continue
        advice = "set `max_length`, in characters"
        if site.path.endswith(".<key>"):
            yield design.at(site, "the keys have no max_length", advice)
        else:
            yield design.at(site, "the string has no max_length", advice)


def large_patterns(design: Design) -> Iterator[Problem]:
    """A pattern needs a large automaton."""
    for site in design.sites:
        # The pattern of a type with a name, such as a URL, is not the author's.
        if isinstance(site.node, String) and site.node.patterns and not site.node.name:
            if not has_string(site.node):
                continue  # nothing is compiled for it
            states = _n_states(site.node)
            if states > MOST_STATES:
                message = f"the pattern needs an automaton of {states:,} states"
                advice = "use smaller repetition counts, or check the rest in a validator"
                yield design.at(site, message, advice)


def _n_states(node: String) -> int:
    """States of a pattern as it is compiled: lengths that registers count add none."""
    _, need, room = pattern_frame(node)
    is_counted = (need, room) != (0, NO_LIMIT)
    return len(content_dfa(node.patterns, node.excluded) if is_counted else string_dfa(node))
