"""Every error structgen raises, in one tree, split by who can fix it.

    StructgenError
    ├── SchemaError                 the author of the schema
    │   ├── UnsupportedSchemaError    a type or keyword that cannot be enforced exactly
    │   └── UnsatisfiableSchemaError  no value can ever match
    ├── UsageError                  the caller
    │   ├── OptionError               an unknown option or a value out of its range
    │   ├── BudgetError               the token budget cannot hold the shortest value
    │   ├── PromptTooLongError        the prompt leaves no room in the model's context
    │   ├── IllegalTokenError         a token the automaton does not allow here
    │   └── InvalidTextError          bytes that are not UTF-8, or text that is not a string
    ├── EnvironmentFault            the machine, the model or the tokenizer
    │   ├── VocabularyError           a tokenizer that cannot be read or lacks a byte
    │   ├── ModelError                a model that cannot be loaded or does not fit its tokenizer
    │   └── MissingDependencyError    an optional package that is not installed
    ├── GenerationError             what came out of a finished generation
    │   └── ValidationFailedError     a Python validator rejected a well-formed value
    └── LimitError                  a bound on size or work was reached

An error carries its data as attributes; its message says what was got, where (a JSON path) and
what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MOST_SHOWN, SHOWN = 100, 400
"""Faults in a message, and characters at each end of one."""


class StructgenError(Exception):
    """Base of all errors of this package."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a schema.

    Example: `Fault("$.when", "type 'datetime' is not supported", "use str")`
    """

    path: str
    """JSON path of the offending part, `$` is the value itself."""
    problem: str
    """What was found there."""
    advice: str = ""
    """What the author can do about it."""

    def __str__(self) -> str:
        advice = f" ({self.advice})" if self.advice else ""
        return f"{self.path}: {self.problem}{advice}"


class SchemaError(StructgenError):
    """The schema cannot be compiled; `faults` lists everything that is wrong."""

    def __init__(self, faults: Iterable[Fault], *, schema: str = "schema") -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        self.schema = schema
        lines = [f"\n  {_short(str(fault))}" for fault in self.faults[:MOST_SHOWN]]
        if len(self.faults) > MOST_SHOWN:
            lines.append(f"\n  and {len(self.faults) - MOST_SHOWN} more, see `faults`")
        super().__init__(_printable(f"{schema} cannot be compiled:{''.join(lines)}"))


def _short(text: str) -> str:
    """The text without its middle, where it is very long."""
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]} ... {text[-SHOWN:]}"


def _printable(text: str) -> str:
    r"""The text with `\udXXX` for lone surrogates, which no terminal and no log takes."""
    return text.encode("utf-8", "backslashreplace").decode()


class UnsupportedSchemaError(SchemaError):
    """A type or keyword cannot be enforced exactly, so it is refused rather than ignored."""


class UnsatisfiableSchemaError(SchemaError):
    """No finite value can match the schema."""


class UsageError(StructgenError):
    """The call is wrong; nothing was generated."""


class OptionError(UsageError, ValueError):
    """An option is unknown or its value is out of range."""


class BudgetError(UsageError):
    """The token budget cannot hold even the shortest value."""

    def __init__(self, budget: int, needed: int, *, schema: str = "the schema") -> None:
        self.budget = budget
        self.needed = needed
        super().__init__(
            f"a budget of {budget} tokens cannot hold the shortest value of {schema}, which takes "
            f"{needed}; raise max_new_tokens to at least {needed} or shorten required fields"
        )


class PromptTooLongError(UsageError):
    """The prompt leaves no room for a value in the model's context."""

    def __init__(self, prompt_tokens: int, context_length: int, needed: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.context_length = context_length
        self.needed = needed
        super().__init__(
            f"the prompt has {prompt_tokens} tokens and the shortest value takes {needed}, but the "
            f"model's context holds {context_length}; shorten the prompt or use a model with a "
            "longer context"
        )


class IllegalTokenError(UsageError):
    """A token was fed to a session that does not allow it; the session is unchanged."""

    def __init__(self, token_id: int, why: str) -> None:
        self.token_id = token_id
        super().__init__(f"token {token_id} is not allowed here: {why}")


class InvalidTextError(UsageError, ValueError):
    """Text that is not valid UTF-8 was passed where text is expected."""


class EnvironmentFault(StructgenError):
    """Something outside the call is missing or broken."""


class VocabularyError(EnvironmentFault):
    """The tokenizer cannot be read exactly, or cannot write what the schema needs."""

    def __init__(self, message: str, *, missing_bytes: Sequence[int] = ()) -> None:
        self.missing_bytes = tuple(missing_bytes)
        super().__init__(message)


class ModelError(EnvironmentFault):
    """The model cannot be loaded, or does not fit its tokenizer."""


class MissingDependencyError(EnvironmentFault, ImportError):
    """An optional package is needed for this and is not installed."""

    def __init__(self, package: str, purpose: str, install: str) -> None:
        self.package = package
        super().__init__(f"{purpose} needs the package {package!r}; install it with: {install}")


class GenerationError(StructgenError):
    """Generation ended without a value to return."""


class ValidationFailedError(GenerationError):
    """The text fits the schema, but one of the model's Python validators rejected it."""

    def __init__(
        self, text: str, cause: Exception, *, value: Any = None, rejected: Sequence[str] = ()
    ) -> None:
        self.text = text
        """What was generated last."""
        self.value = value
        """The JSON value of `text`, before any validator ran; None where `text` is no JSON."""
        self.cause = cause
        """Pydantic's `ValidationError`."""
        self.texts: tuple[str, ...] = (*rejected, text)
        """The texts of all attempts, in order."""
        self.attempts = len(self.texts)
        before = "".join(f"\nrejected before: {earlier}" for earlier in rejected)
        tried = f" in each of {self.attempts} attempts, at last" if rejected else ""
        super().__init__(
            "the generated text has the right shape but was rejected after "
            f"generation{tried}: {cause}\ntext: {text}{before}"
        )

    def after(self, rejected: Sequence[str]) -> ValidationFailedError:
        """The same error, of an attempt that came after others."""
        return ValidationFailedError(self.text, self.cause, value=self.value, rejected=rejected)


class LimitError(StructgenError):
    """A documented bound on size or work was reached; see `structgen.Limits`."""
