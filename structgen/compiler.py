"""(schema, vocabulary) -> CompiledSchema, remembered by type identity and by content."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError

from structgen.automata.assemble import assemble
from structgen.automata.program import Program, link
from structgen.errors import InvalidTextError, OptionError, ValidationFailedError
from structgen.options import Layout, Limits, Options
from structgen.schema.fingerprint import fingerprint
from structgen.schema.load import LoadedSchema, load_schema
from structgen.schema.nodes import Schema
from structgen.tokens.automaton import Automaton, bind
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.session import Session, check_budget
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary

logger = logging.getLogger("structgen")

T = TypeVar("T")


class CompiledSchema(Generic[T]):
    """A schema bound to a vocabulary: immutable, shared between threads.

    Example: `compiled = compile(Triage, vocabulary); s = compiled.session(max_tokens=64)`
    """

    def __init__(
        self,
        loaded: LoadedSchema,
        automaton: Automaton,
        tables: TableSource,
        options: Options,
        digest: str,
    ) -> None:
        self._loaded = loaded
        self._automaton = automaton
        self._tables = tables
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
        return self.schema.title

    @property
    def schema(self) -> Schema:
        """The nodes that are enforced."""
        return self._loaded.schema

    @property
    def program(self) -> Program:
        """The byte automaton."""
        return self._automaton.program

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
        return self._loaded.validators

    def for_source(self, loaded: LoadedSchema) -> CompiledSchema[Any]:
        """The same automaton for another type of the same content, which validates its own way."""
        return CompiledSchema(loaded, self._automaton, self._tables, self.options, self.fingerprint)

    def session(self, max_tokens: int | None = None) -> Session:
        """A new session at the beginning of the value.

        Raises:
            BudgetError: the shortest value takes more than `max_tokens`.
        """
        check_budget(max_tokens, self.min_tokens, self.title)
        return Session(self._tables, self.vocabulary, max_tokens)

    def validate(self, text: str | bytes) -> T:
        """The value that a generated text stands for.

        Raises:
            InvalidTextError: bytes that are not UTF-8.
            ValidationFailedError: a Python validator rejected the value.
        """
        try:
            text = text.decode() if isinstance(text, bytes) else text
            text.encode()
        except UnicodeError as error:
            raise InvalidTextError(f"the value is not UTF-8 text: {error}") from error
        try:
            return cast(T, self._loaded.adapter.validate_json(text))
        except ValidationError as error:
            raise ValidationFailedError(text, error) from error

    def memory_bytes(self) -> int:
        """Bytes of the automaton and the masks kept so far."""
        plan = sum(part.nbytes for part in self._automaton.plan)
        return self.program.memory_bytes() + plan + self._tables.memory_bytes()


class Compiler:
    """Compiles and remembers; one per process is enough, tests make their own."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._lock = threading.RLock()
        self._by_type: WeakKeyDictionary[Any, dict[tuple[str, Options], CompiledSchema[Any]]]
        self._by_type = WeakKeyDictionary()
        self._by_content: OrderedDict[tuple[str, str], CompiledSchema[Any]] = OrderedDict()
        self._profiles: dict[str, ProfileCache] = {}

    def compile(self, source: Any, vocabulary: Vocabulary, options: Options) -> CompiledSchema[Any]:
        """The compiled schema, from memory where it is known."""
        per_type = self._known(source)
        key = (vocabulary.fingerprint, options)
        compiled = per_type.get(key)
        if compiled is None:
            compiled = per_type[key] = self._by_schema(source, vocabulary, options)
        return compiled

    def clear(self) -> None:
        """Forget everything, masks of strings included."""
        with self._lock:
            self._by_type.clear()
            self._by_content.clear()
            self._profiles.clear()

    def _known(self, source: Any) -> dict[tuple[str, Options], CompiledSchema[Any]]:
        if not isinstance(source, type):
            return {}
        try:
            return self._by_type.setdefault(source, {})
        except TypeError:  # cannot be referenced weakly
            return {}

    def _by_schema(
        self, source: Any, vocabulary: Vocabulary, options: Options
    ) -> CompiledSchema[Any]:
        started = time.perf_counter()
        loaded = load_schema(source)
        digest = fingerprint(loaded.schema, options)
        with self._lock:
            same = self._by_content.get((digest, vocabulary.fingerprint))
            if same is None:
                same = self._build(loaded, vocabulary, options, digest)
                self._by_content[(digest, vocabulary.fingerprint)] = same
                if len(self._by_content) > self._capacity:
                    self._by_content.popitem(last=False)
                elapsed = time.perf_counter() - started
                logger.debug("compiled %s in %.1f ms", loaded.schema.title, elapsed * 1e3)
                return same
        return same.for_source(loaded)

    def _build(
        self, loaded: LoadedSchema, vocabulary: Vocabulary, options: Options, digest: str
    ) -> CompiledSchema[Any]:
        program = link(assemble(loaded.schema, options), options.limits)
        automaton = bind(program, vocabulary, options.limits)
        profiles = self._profiles.setdefault(vocabulary.fingerprint, ProfileCache())
        tables = TableSource(automaton, profiles, options.limits)
        return CompiledSchema(loaded, automaton, tables, options, digest)


_COMPILER = Compiler()


def compile(
    schema: type[T] | TypeAdapter[T] | Any,
    vocabulary: Vocabulary,
    *,
    layout: Layout = "spaced",
    require_all: bool = False,
    limits: Limits | None = None,
) -> CompiledSchema[T]:
    """Compile a Pydantic model, or any type that Pydantic can validate.

    Example: `compile(Triage, Vocabulary.from_tokenizer(tokenizer)).session()`

    Args:
        layout: `spaced` as `json.dumps` writes, `compact`, or `flexible` (bounded whitespace).
        require_all: emit also the fields that have a default.

    Raises:
        UnsupportedSchemaError: parts that cannot be enforced, all at once.
        UnsatisfiableSchemaError: no finite value matches.
        LimitError: the automaton would be too large.
        VocabularyError: the vocabulary lacks bytes that every value needs.
    """
    if not isinstance(vocabulary, Vocabulary):  # pyright: ignore[reportUnnecessaryIsInstance]  # a common mistake of untyped callers
        raise OptionError(
            f"vocabulary must be a structgen.Vocabulary, got {type(vocabulary).__name__}; use "
            "Vocabulary.from_tokenizer(tokenizer)"
        )
    options = Options(layout, require_all, limits or Limits())
    return _COMPILER.compile(schema, vocabulary, options)


def clear_cache() -> None:
    """Forget every compiled schema in memory."""
    _COMPILER.clear()
