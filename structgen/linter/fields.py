"""Rules about fields: their order, names and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structgen.linter.design import Design, Problem
from structgen.linter.words import listed, words
from structgen.schema.nodes import Array, Labels, Object, Property, String
from structgen.schema.sites import Site
from structgen.schema.written import Composed

REASONING = frozenset(
    {
        "reason", "reasons", "reasoning", "rationale", "explanation", "explanations", "explain",
        "thought", "thoughts", "thinking", "because", "justification", "analysis",
    }
)  # fmt: skip
"""A field with one of these words in its name is there to think in."""
ANSWERS = frozenset(
    {
        "answer", "result", "verdict", "decision", "label", "category", "classification", "class",
        "score", "rating", "grade", "conclusion", "prediction", "choice",
    }
)  # fmt: skip
"""Names of what a field of reasoning leads to, where the type does not tell."""
FIXED_SETS = frozenset(
    {
        "category", "type", "kind", "status", "label", "priority", "language", "country",
        "currency", "sentiment", "severity", "gender", "mood", "tone",
    }
)  # fmt: skip
"""Names that end in one of these words suggest a fixed set of values."""

_EMPTY_NAME = re.compile(
    r"(?:[a-z]|field|value|val|data|item|obj|object|thing|stuff|foo|bar|baz|tmp|temp|misc|var|"
    r"variable|param|parameter|arg|argument|attr|attribute|prop|property|key|str|string|info)_?\d*"
)


_CONVENTIONS = tuple(map(frozenset, ("xy", "rgb", "hsv", "hsl", "ij", "wh", {"key", "value"})))
"""Names that say enough beside each other."""


def reasoning_before_answer(design: Design) -> Iterator[Problem]:
    """An answer is written before any text that could lead to it."""
    for site, node in design.objects:
        answered = [prop for prop in node.properties if _is_answer(design, prop)]
        late = _late_reasoning(design, node, answered)
        if late is not None:
            first = answered[0].name
            yield design.at_field(
                site,
                node,
                late,
                f"it is written after {first!r}, which it can no longer change",
                f"declare {late.name!r} before {first!r}",
            )
        elif not _follows_text(design, site):
            yield from _bare_label(design, site, node)


def _late_reasoning(design: Design, node: Object, answered: list[Property]) -> Property | None:
    """The first field of reasoning, if it stands behind an answer."""
    names = [prop.name for prop in node.properties]
    reasoning = next((p for p in node.properties if _is_reasoning(design, p)), None)
    if reasoning is None or not answered:
        return None
    return reasoning if names.index(answered[0].name) < names.index(reasoning.name) else None


def _bare_label(design: Design, site: Site, node: Object) -> Iterator[Problem]:
    """The first field with a choice, if no free text stands before it."""
    for prop in node.properties:
        if _is_text(design, prop):
            return
        if _is_choice(design, prop):
            message = "the label is chosen before anything was written that could lead to it"
            yield design.at_field(
                site, node, prop, message, "put a field such as `reasoning: str` before it"
            )
            return


def _is_reasoning(design: Design, prop: Property) -> bool:
    """Whether a field is there to think in: named so, and neither a number nor a label."""
    wordy = any(isinstance(n, String | Array | Object) for n in design.options(prop.node))
    return wordy and bool(REASONING & {*words(prop.name)})


def _is_answer(design: Design, prop: Property) -> bool:
    if REASONING & {*words(prop.name)}:
        return False
    labels = any(isinstance(n, Labels) and _size(n) > 1 for n in design.options(prop.node))
    return labels or bool(ANSWERS & {*words(prop.name)[-1:]})


def _is_choice(design: Design, prop: Property) -> bool:
    """Whether a field is a label out of several, true and false not counted as such."""
    return any(
        isinstance(node, Labels) and _size(node) > 1 and not _is_bool(node)
        for node in design.options(prop.node)
    )


def _size(node: Labels) -> int:
    return len({*node.texts} - {b"null"})


def _is_bool(node: Labels) -> bool:
    return {*node.texts} <= {b"true", b"false", b"null"}


def _is_text(design: Design, prop: Property) -> bool:
    """Whether a field is free text, or a list of such."""
    for node in design.options(prop.node):
        inner = design.options(node.item) if isinstance(node, Array) else (node,)
        if any(isinstance(part, String) and not part.name for part in inner):
            return True
    return False


def _follows_text(design: Design, site: Site) -> bool:
    """Whether an object around, at a part of this path, has free text before this one."""
    for other, node in design.objects:
        for index, prop in enumerate(node.properties):
            path = f"{other.path}.{prop.name}"
            inside = site.path == path or site.path.startswith((f"{path}.", f"{path}["))
            if inside and any(_is_text(design, before) for before in node.properties[:index]):
                return True
    return False


def telling_field_names(design: Design) -> Iterator[Problem]:
    """A name says nothing about what belongs into the field."""
    for site, node in design.objects:
        usual = _conventional(node)
        for prop in node.properties:
            name = prop.name.casefold()
            if _EMPTY_NAME.fullmatch(name) and name not in usual:
                message = f"the name {prop.name!r} does not say what belongs there"
                advice = "name the content, e.g. `order_number`"
                yield design.at_field(site, node, prop, message, advice)


def _conventional(node: Object) -> set[str]:
    """Short names that are usual together, such as x, y and z."""
    names = {prop.name.casefold() for prop in node.properties}
    found = [group for group in _CONVENTIONS if group <= names]
    more = {"z", "a"} if any(group in found for group in _CONVENTIONS[:2]) else set[str]()
    return more.union(*found)


def descriptions(design: Design) -> Iterator[Problem]:
    """Fields that nobody described; one finding for an object."""
    for site, node in design.objects:
        bare = [prop.name for prop in node.properties if _lacks_description(design, node, prop)]
        if bare:
            noun = "this field has" if len(bare) == 1 else f"{len(bare)} fields have"
            message = f"{noun} no description: {listed(bare)}"
            advice = "add `Field(description=...)`, which goes into the prompt"
            yield design.at(site, message, advice)


def _lacks_description(design: Design, owner: Object, prop: Property) -> bool:
    if prop.description or {"SG103", "descriptions"} & design.silences.of(owner, prop):
        return False
    if _is_call(design, owner):
        return False  # nobody has declared it, and the tool's own description stands beside it
    constant = all(
        isinstance(node, Labels) and len(node.texts) == 1 for node in design.options(prop.node)
    )
    return not constant


def _is_call(design: Design, node: Object) -> bool:
    """Whether an object is what calls a tool: the tool's name, and its arguments."""
    if not isinstance(design.source, Composed):
        return False
    name, *others = node.properties
    is_name = name.name == "name" and isinstance(name.node, Labels) and _size(name.node) == 1
    return is_name and [prop.name for prop in others] == ["arguments"]


def enum_over_free_text(design: Design) -> Iterator[Problem]:
    """A free string whose name suggests a fixed set."""
    for site in design.sites:
        if not isinstance(site.node, String) or site.field is None:
            continue
        is_free = not site.node.patterns and not site.node.name
        direct = site.node in design.options(site.field.node)
        name = site.field.name
        if is_free and direct and FIXED_SETS & {*words(name)[-1:]}:
            yield design.at(
                site,
                f"{name!r} is free text, but its name suggests a fixed set",
                "list the values in a `Literal` or an `Enum`",
            )
