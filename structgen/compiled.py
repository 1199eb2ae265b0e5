"""A schema bound to a vocabulary, and where its nodes come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from pydantic_core import from_json

from structgen.automata.program import Program
from structgen.errors import InvalidTextError, ValidationFailedError
from structgen.memory import TableLedger
from structgen.options import Options
from structgen.results import LabelScore
from structgen.schema.load import LoadedSchema
from structgen.schema.nodes import Schema
from structgen.schema.reading import Piece, rated
from structgen.tokens.automaton import Automaton
from structgen.tokens.parts import PartSession, limited_parts
from structgen.tokens.session import Session, check_budget
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary

T = TypeVar("T")

SCHEMA_BYTES = 24 * 2**10
"""Rough size of a compiled schema without its arrays and labels."""
LABEL_FACTOR = 4
"""A label is also kept in the schema's nodes, with what Python adds to it."""


class Source:
    """The nodes and the validation of a schema, which are read when they are needed first."""

    def __init__(self, title: str, core: object, load: Callable[[], LoadedSchema]) -> None:
        self.title = title
        self.core = core
        """The core schema of a Pydantic type: another one means that the type was rebuilt."""
        self._load = load
        self._loaded: LoadedSchema | None = None

    @classmethod
    def of(cls, loaded: LoadedSchema) -> Source:
        """Of what was read already."""
        return cls(loaded.schema.title, loaded.adapter.core_schema, lambda: loaded)

    @property
    def loaded(self) -> LoadedSchema:
        """The same for every reader: two threads may read it at once, which gives equal values."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded


class CompiledSchema(Generic[T]):
    """A schema bound to a vocabulary: immutable, shared between threads.

    Example: `compiled = compile(Triage, vocabulary); s = compiled.session(max_tokens=64)`
    """

    def __init__(
        self,
        source: Source,
        automaton: Automaton,
        tables: TableSource,
        options: Options,
        digest: str,
        ledger: TableLedger | None = None,
    ) -> None:
        self._source = source
        self._automaton = automaton
        self._tables = tables
        self._ledger = ledger
        self._limited = limited_parts(automaton.program)
        self.options = options
        self.fingerprint = digest
        """Hex hash of schema and options."""

    def __repr__(self) -> str:
        return (
            f"<CompiledSchema {self.title} {self.fingerprint[:8]}: "
            f"{len(self.program.states)} states, at least {self.min_tokens} tokens>"
        )

    @property
    def title(self) -> str:
        return self._source.title

    @property
    def schema(self) -> Schema:
        """The nodes that are enforced."""
        return self._source.loaded.schema

    @property
    def program(self) -> Program:
        """The byte automaton."""
        return self._automaton.program

    @property
    def source(self) -> Source:
        """Where the nodes and the validation come from."""
        return self._source

    @property
    def automaton(self) -> Automaton:
        """The program with what is known of it for this vocabulary."""
        return self._automaton

    @property
    def tables(self) -> TableSource:
        """States and masks, as far as they are known."""
        return self._tables

    @property
    def vocabulary(self) -> Vocabulary:
        return self._automaton.vocabulary

    @property
    def min_tokens(self) -> int:
        """The smallest token budget that a session accepts: the length of the shortest value."""
        return self._automaton.min_tokens

    @property
    def validators(self) -> tuple[str, ...]:
        """Paths of Python validators, which no mask can enforce: they run after generation."""
        return self._source.loaded.validators

    def for_source(self, source: Source) -> CompiledSchema[Any]:
        """The same automaton for another type of the same content, which validates its own way."""
        return CompiledSchema(
            source, self._automaton, self._tables, self.options, self.fingerprint, self._ledger
        )

    def is_current(self, source: object) -> bool:
        """Whether `source` has still the fields it had (Pydantic models can be rebuilt)."""
        core = getattr(source, "__pydantic_core_schema__", None)
        return core is None or core is self._source.core

    def session(self, max_tokens: int | None = None, *, prompt_ids: Sequence[int] = ()) -> Session:
        """A new session at the beginning of the value.

        Args:
            max_tokens: a budget within which the value always ends.
            prompt_ids: what the model reads before. Its last tokens may be held back, so that the
                model can choose a longer one that reaches into the value: take as many as
                `Session.held_back` has out of the prompt.

        Raises:
            BudgetError: the shortest value takes more than `max_tokens`.
        """
        check_budget(max_tokens, self.min_tokens, self.title)
        if self._ledger is not None:
            self._ledger.used(self._tables)
        if self._limited:
            parts = self._limited
            return PartSession(self._tables, self.vocabulary, max_tokens, parts, prompt_ids)
        return Session(self._tables, self.vocabulary, max_tokens, prompt_ids)

    def validate(self, text: str | bytes) -> T:
        """The value that a generated text stands for.

        Raises:
            InvalidTextError: bytes that are not UTF-8, or no text at all.
            ValidationFailedError: a Python validator rejected the value.
        """
        if not isinstance(text, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise InvalidTextError(f"a text is str or bytes, got {type(text).__name__}")
        try:
            text = text.decode() if isinstance(text, bytes) else text
            text.encode()
        except UnicodeError as error:
            raise InvalidTextError(f"the value is not UTF-8 text: {error}") from error
        try:
            return cast(T, self._source.loaded.reader.value(text))
        except ValueError as error:  # Pydantic's ValidationError is one
            raise ValidationFailedError(text, error, value=_json_value(text)) from error

    def rated(self, value: T, labels: Mapping[str, LabelScore]) -> T:
        """The value, where it says how sure the model was of it, with the scores of its labels."""
        return cast(T, rated(self._source.loaded.reader, value, "$", labels))

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """Where the parts of a generated text stand in which labels may be."""
        return tuple(self._source.loaded.reader.pieces(text, "$", 0))

    def own_bytes(self) -> int:
        """Bytes of the automaton, and roughly of what else is kept of the schema itself."""
        plan = sum(part.nbytes for part in self._automaton.plan)
        labels = LABEL_FACTOR * self.program.blob.nbytes
        return SCHEMA_BYTES + self.program.memory_bytes() + plan + labels

    def memory_bytes(self) -> int:
        """Bytes of the automaton and the masks kept so far."""
        return self.own_bytes() + self._tables.memory_bytes()


def _json_value(text: str) -> Any:
    """The value of a JSON text, None for any other text."""
    try:
        return from_json(text)
    except ValueError:
        return None
