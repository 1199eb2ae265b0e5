"""What a lint rule finds, and the warning that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a schema's design that is likely to make its values worse.

    Example: `Finding("SG108", "capped-strings", "$.name", "the string has no max_length", ...)`
    """

    code: str
    """Never changes its meaning, e.g. `SG108`."""
    rule: str
    """The same in words, e.g. `capped-strings`."""
    path: str
    """JSON path of the part in question, `$` is the value itself."""
    message: str
    """What was found there."""
    suggestion: str
    """What to write instead."""

    def __str__(self) -> str:
        return f"{self.code} {self.path}: {self.message}; {self.suggestion} [{self.rule}]"


class DesignWarning(UserWarning):
    """`structured` has findings about a class; `findings` has them as data."""

    def __init__(self, schema: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        self.schema = schema
        lines = "\n".join(f"  {finding}" for finding in self.findings)
        count = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        super().__init__(f"{schema} has {count} of the design lint:\n{lines}")
