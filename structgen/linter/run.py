"""`lint`: all rules over one schema."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from structgen.errors import OptionError
from structgen.linter.design import Design
from structgen.linter.finding import Finding
from structgen.linter.rules import RULES, Rule
from structgen.linter.silences import silence_class
from structgen.schema.load import load_schema
from structgen.tokens.vocabulary import Vocabulary

_KNOWN = frozenset(name for rule in RULES for name in (rule.code, rule.name))


def lint(
    schema: Any,
    *,
    vocabulary: Vocabulary | None = None,
    max_new_tokens: int | None = None,
    ignore: Collection[str] = (),
) -> list[Finding]:
    """What the design of a schema makes harder than it needs to be, rule by rule.

    Example: `lint(Triage, ignore=["SG103"])` -> `[Finding("SG108", ...), ...]`

    Args:
        vocabulary: also look at how its tokenizer writes the labels.
        max_new_tokens: also compare the shortest value with this budget; needs `vocabulary`.
        ignore: codes or names of rules; a field silences rules for itself with
            `Field(json_schema_extra={"structgen_ignore": ["SG108"]})`.

    Raises:
        SchemaError: the schema cannot be compiled, see `structgen.check`.
        OptionError: an unknown rule, or a budget without a vocabulary.
    """
    if max_new_tokens is not None and vocabulary is None:
        raise OptionError(
            f"max_new_tokens={max_new_tokens!r} counts tokens of a vocabulary; pass vocabulary=..."
        )
    ignored = _known(ignore, "ignore")
    design = Design(schema, load_schema(schema), vocabulary, max_new_tokens)
    _known([*design.silences], "structgen_ignore")
    kept = [rule for rule in RULES if not ignored & {rule.code, rule.name}]
    return [finding for rule in kept for finding in _findings(rule, design)]


def ignore_in_class(owner: type, rules: Collection[str]) -> None:
    """Leave rules out for a class, wherever it is looked at."""
    silence_class(owner, _known(rules, "ignore"))


def _findings(rule: Rule, design: Design) -> list[Finding]:
    found = [
        Finding(rule.code, rule.name, problem.path, problem.message, problem.suggestion)
        for problem in rule.check(design)
        if not problem.silenced & {rule.code, rule.name}
    ]
    return list(dict.fromkeys(found))


def _known(rules: Collection[str], where: str) -> frozenset[str]:
    """The rules named by a user, who should learn of a misspelt one."""
    if isinstance(rules, str):
        raise OptionError(f"{where}={rules!r} must be a list of rules, e.g. [{rules!r}]")
    unknown = sorted({*rules} - _KNOWN)
    if unknown:
        raise OptionError(
            f"{where} names unknown rules: {', '.join(unknown)}; known are "
            f"{', '.join(rule.code for rule in RULES)} and their names"
        )
    return frozenset(rules)
