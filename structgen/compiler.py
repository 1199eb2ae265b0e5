"""(schema, vocabulary) -> CompiledSchema, remembered by type identity and by content."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import from_json

from structgen.automata.assemble import assemble
from structgen.automata.program import Program, link
from structgen.deadline import deadline
from structgen.errors import (
    InvalidTextError,
    LimitError,
    OptionError,
    UnsatisfiableSchemaError,
    ValidationFailedError,
    VocabularyError,
)
from structgen.options import Layout, Limits, Options
from structgen.schema.bans import banned_texts, reader_without_strings, without_strings
from structgen.schema.check import unsatisfiable
from structgen.schema.fingerprint import fingerprint
from structgen.schema.functions import arguments_model, forget_functions, is_function
from structgen.schema.load import LoadedSchema, load_schema
from structgen.schema.nodes import Schema
from structgen.schema.reading import Piece
from structgen.schema.roots import Form
from structgen.tokens.automaton import Automaton, bind
from structgen.tokens.parts import PartSession, limited_parts
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.session import Session, check_budget
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary, id_set

logger = logging.getLogger("structgen")

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


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

    def is_current(self, source: type) -> bool:
        """Whether `source` has still the fields it had (Pydantic models can be rebuilt)."""
        core = getattr(source, "__pydantic_core_schema__", None)
        return core is None or core is self._loaded.adapter.core_schema

    def session(self, max_tokens: int | None = None) -> Session:
        """A new session at the beginning of the value.

        Raises:
            BudgetError: the shortest value takes more than `max_tokens`.
        """
        check_budget(max_tokens, self.min_tokens, self.title)
        if self._limited:
            return PartSession(self._tables, self.vocabulary, max_tokens, self._limited)
        return Session(self._tables, self.vocabulary, max_tokens)

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
            return cast(T, self._loaded.reader.value(text))
        except ValueError as error:  # Pydantic's ValidationError is one
            raise ValidationFailedError(text, error, value=_json_value(text)) from error

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """Where the parts of a generated text stand in which labels may be."""
        return tuple(self._loaded.reader.pieces(text, "$", 0))

    def memory_bytes(self) -> int:
        """Bytes of the automaton and the masks kept so far."""
        plan = sum(part.nbytes for part in self._automaton.plan)
        return self.program.memory_bytes() + plan + self._tables.memory_bytes()


def _json_value(text: str) -> Any:
    """The value of a JSON text, None for any other text."""
    try:
        return from_json(text)
    except ValueError:
        return None


class _Recent(Generic[K, V]):
    """The most recently used entries, up to a number of them."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()


class Compiler:
    """Compiles and remembers; one per process is enough, tests make their own."""

    def __init__(self, capacity: int = 256, n_vocabularies: int = 8) -> None:
        self._lock = threading.RLock()
        self._by_type = _Recent[tuple[type, str, Options], CompiledSchema[Any]](capacity)
        self._by_content = _Recent[tuple[str, str], CompiledSchema[Any]](capacity)
        self._profiles = _Recent[str, ProfileCache](n_vocabularies)

    def compile(self, source: Any, vocabulary: Vocabulary, options: Options) -> CompiledSchema[Any]:
        """The compiled schema, from memory where it is known."""
        if is_function(source):
            source = arguments_model(source)
        if not isinstance(source, type):
            return self._by_schema(source, vocabulary, options)
        key = (source, vocabulary.fingerprint + vocabulary.encoder_id, options)
        with self._lock:
            compiled = self._by_type.get(key)
            if compiled is None or not compiled.is_current(source):
                compiled = self._by_schema(source, vocabulary, options)
                self._by_type.put(key, compiled)
            return compiled

    def clear(self) -> None:
        """Forget everything, masks of strings included."""
        with self._lock:
            self.forget_schemas()
            self._profiles.clear()

    def forget_schemas(self) -> None:
        """Forget the schemas, but keep the masks of strings, which belong to the vocabularies."""
        with self._lock:
            self._by_type.clear()
            self._by_content.clear()

    def _by_schema(
        self, source: Any, vocabulary: Vocabulary, options: Options
    ) -> CompiledSchema[Any]:
        try:
            return self._loaded(source, vocabulary, options)
        except RecursionError as error:
            raise LimitError(
                "the schema is nested too deeply to be compiled; flatten it"
            ) from error

    def _loaded(self, source: Any, vocabulary: Vocabulary, options: Options) -> CompiledSchema[Any]:
        started = time.perf_counter()
        loaded = load_schema(source, max_seconds=options.limits.max_seconds)
        if options.banned_strings:
            with deadline(options.limits.max_seconds):
                schema = without_strings(loaded.schema, options.banned_strings)
            written = loaded.written
            if written is not None:
                written = reader_without_strings(written, options.banned_strings)
            loaded = replace(loaded, schema=schema, written=written)
        impossible = options.require_all and unsatisfiable(loaded.schema, require_all=True)
        if impossible:
            raise UnsatisfiableSchemaError(impossible, schema=loaded.schema.title)
        digest = fingerprint(loaded.schema, options)
        key = (digest, vocabulary.fingerprint + vocabulary.encoder_id)
        with self._lock:
            same = self._by_content.get(key)
            if same is not None:
                return same.for_source(loaded)
            compiled = self._build(loaded, vocabulary, options, digest)
            self._by_content.put(key, compiled)
        elapsed_ms = (time.perf_counter() - started) * 1e3
        logger.debug("compiled %s in %.1f ms", loaded.schema.title, elapsed_ms)
        return compiled

    def _build(
        self, loaded: LoadedSchema, vocabulary: Vocabulary, options: Options, digest: str
    ) -> CompiledSchema[Any]:
        with deadline(options.limits.max_seconds):
            program = link(assemble(loaded.schema, options), options.limits)
        automaton = bind(program, vocabulary, options.limits)
        profiles = self._profiles.get(vocabulary.fingerprint)
        if profiles is None:
            profiles = ProfileCache()
            self._profiles.put(vocabulary.fingerprint, profiles)
        tables = TableSource(automaton, profiles, options.limits)
        return CompiledSchema(loaded, automaton, tables, options, digest)


_COMPILER = Compiler()


def compile(
    schema: type[T] | TypeAdapter[T] | Form[T] | Any,
    vocabulary: Vocabulary,
    *,
    layout: Layout = "spaced",
    require_all: bool = False,
    banned_strings: Iterable[str] | None = (),
    allowed_token_ids: Iterable[int] | None = None,
    banned_token_ids: Iterable[int] | None = (),
    limits: Limits | None = None,
) -> CompiledSchema[T]:
    """Compile a Pydantic model, any type that Pydantic can validate, a JSON Schema, or a function.

    Example: `compile(Triage, Vocabulary.from_tokenizer(tokenizer)).session()`

    Args:
        schema: of a function, its arguments are meant, see `arguments_model`.
        layout: `spaced` as `json.dumps` writes, `compact`, or `flexible` (bounded whitespace).
        require_all: emit also the fields that have a default.
        banned_strings: texts that no string, label, free text or free key may contain.
        allowed_token_ids: the only tokens that may be written, besides the end tokens.
        banned_token_ids: tokens that may not be written.

    Raises:
        UnsupportedSchemaError: parts that cannot be enforced, all at once.
        UnsatisfiableSchemaError: no finite value matches.
        LimitError: the automaton would be too large.
        VocabularyError: the vocabulary, or what is allowed of it, lacks bytes that every value
            needs.
    """
    if not isinstance(vocabulary, Vocabulary):  # pyright: ignore[reportUnnecessaryIsInstance]  # a common mistake of untyped callers
        raise OptionError(
            f"vocabulary must be a structgen.Vocabulary, got {type(vocabulary).__name__}; use "
            "Vocabulary.from_tokenizer(tokenizer)"
        )
    banned = banned_texts(banned_strings)
    options = Options(layout, require_all, Limits() if limits is None else limits, banned)
    allowed = None if allowed_token_ids is None else id_set("allowed_token_ids", allowed_token_ids)
    unwanted = id_set("banned_token_ids", banned_token_ids)
    if allowed is None and not unwanted:
        return _COMPILER.compile(schema, vocabulary, options)
    usable = _restricted(vocabulary, vocabulary.encoder_id, allowed, unwanted)
    try:
        return _COMPILER.compile(schema, usable, options)
    except VocabularyError as error:
        message = f"with the tokens that are allowed, {error}; allow more tokens"
        raise VocabularyError(message, missing_bytes=error.missing_bytes) from error


@lru_cache(maxsize=8)
def _restricted(
    vocabulary: Vocabulary,
    encoder_id: str,  # noqa: ARG001  # tells vocabularies apart that are equal otherwise
    allowed: frozenset[int] | None,
    banned: frozenset[int],
) -> Vocabulary:
    return vocabulary.restricted(allowed, banned)


def clear_cache() -> None:
    """Forget every compiled schema in memory."""
    _COMPILER.clear()
    forget_functions()


def forget_schemas() -> None:
    """Forget every compiled schema, but keep what is known of the vocabularies."""
    _COMPILER.forget_schemas()
