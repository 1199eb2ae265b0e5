"""The table of rules. A code keeps its meaning for good; a rule that goes leaves a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from structgen.linter import choices, fields, lists, shapes
from structgen.linter.design import Design, Problem


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is looked for."""

    code: str
    name: str
    check: Callable[[Design], Iterator[Problem]]


RULES = (
    Rule("SG101", "reasoning-before-answer", fields.reasoning_before_answer),
    Rule("SG102", "telling-field-names", fields.telling_field_names),
    Rule("SG103", "descriptions", fields.descriptions),
    Rule("SG104", "enum-over-free-text", fields.enum_over_free_text),
    Rule("SG105", "index-over-string", choices.index_over_string),
    Rule("SG106", "flat-over-deep", shapes.flat_over_deep),
    Rule("SG107", "closed-objects", shapes.closed_objects),
    Rule("SG108", "capped-strings", shapes.capped_strings),
    Rule("SG109", "repeated-labels", lists.repeated_labels),
    Rule("SG201", "split-labels", choices.split_labels),
    Rule("SG202", "look-alike-labels", choices.look_alike_labels),
    Rule("SG203", "budget", choices.budget),
    Rule("SG204", "way-out", choices.way_out),
    Rule("SG205", "large-patterns", shapes.large_patterns),
)
"""SG1xx need the schema alone to be understood, SG2xx are about what decoding makes of it."""
