"""(schema, vocabulary) -> CompiledSchema, remembered in memory and on disk."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeVar
from weakref import WeakSet

from pydantic import BaseModel, TypeAdapter

import structgen.stored as stored
from structgen.automata.assemble import assemble
from structgen.automata.program import Program, link
from structgen.cache import capacity_bytes
from structgen.compiled import CompiledSchema, Source
from structgen.deadline import deadline
from structgen.errors import LimitError, OptionError, UnsatisfiableSchemaError, VocabularyError
from structgen.memory import CacheInfo, CacheUse, TableLedger
from structgen.options import Layout, Limits, Options
from structgen.remembered import SchemaCache
from structgen.schema.bans import banned_texts, reader_without_strings, without_strings
from structgen.schema.check import unsatisfiable
from structgen.schema.fingerprint import fingerprint
from structgen.schema.functions import arguments_model, forget_functions, is_function
from structgen.schema.identity import copied, identity
from structgen.schema.load import LoadedSchema, load_schema
from structgen.schema.roots import Form
from structgen.schema.written import Composed
from structgen.stamp import stamp
from structgen.tokens.automaton import Automaton, bind
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary, id_set
from structgen.tokens.writable import check_labels

__all__ = ["CompiledSchema", "cache_info", "clear_cache", "compile", "forget_schemas"]

logger = logging.getLogger("structgen")

T = TypeVar("T")

STORED_FROM_S = 0.005
"""Processor time to read and build a schema, from which on it is stored: a small one is compiled in
1 ms, a file is written in 0.4 ms and read in 0.2."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One schema to compile, and what it can be found by."""

    source: Any
    content: bytes | None
    """Its exact content; None if only reading it tells."""
    vocabulary: Vocabulary
    options: Options

    @property
    def vocabulary_id(self) -> str:
        return self.vocabulary.fingerprint + self.vocabulary.encoder_id

    @property
    def source_key(self) -> Hashable | None:
        """A type or a set of tools is remembered as such, a JSON Schema by its text."""
        source = self.source if isinstance(self.source, type | Composed) else self.content
        return None if source is None else (source, self.vocabulary_id, self.options)

    def content_key(self, digest: str) -> Hashable:
        return digest, self.vocabulary_id

    def entry_name(self, digest: str) -> str:
        """The name of its file; of the nodes' digest where there is no exact content."""
        content = digest.encode() if self.content is None else self.content
        return stored.entry_name(content, self.vocabulary, self.options)


class Compiler:
    """Compiles and remembers; one per process is enough, tests make their own.

    Args:
        capacity_bytes: of compiled schemas, without their states and masks.
        table_bytes: of the states and masks of all of them together.
        mask_bytes: of the masks of strings, for each vocabulary.
        on_disk: whether what is slow to compile is also kept in the disk cache.
    """

    def __init__(
        self,
        capacity_bytes: int = 256 * 2**20,
        *,
        table_bytes: int = 256 * 2**20,
        mask_bytes: int = 64 * 2**20,
        n_vocabularies: int = 8,
        on_disk: bool = False,
    ) -> None:
        self.on_disk = on_disk
        self._lock = threading.RLock()
        self._schemas = SchemaCache(capacity_bytes)
        self._tables = TableLedger(table_bytes)
        self._mask_bytes = mask_bytes
        self._n_vocabularies = n_vocabularies
        self._profiles: OrderedDict[str, ProfileCache] = OrderedDict()
        self._hits = self._misses = self._loads = 0
        if on_disk:
            stamp()  # looked up once, here rather than in the first compilation

    def compile(self, source: Any, vocabulary: Vocabulary, options: Options) -> CompiledSchema[Any]:
        """The compiled schema, from memory or disk where it is known."""
        if is_function(source):
            source = arguments_model(source)
        try:
            with self._lock:
                compiled = self._by_type(source, vocabulary, options)
                if compiled is not None:
                    return compiled
                task = _Task(source, self._content(source), vocabulary, options)
                compiled = self._known(task)
            return compiled or self._new(task)
        except RecursionError as error:
            raise LimitError(
                "the schema is nested too deeply to be compiled; flatten it"
            ) from error

    def store(self, source: Any, vocabulary: Vocabulary, options: Options) -> CompiledSchema[Any]:
        """Compile, and see that the result is on disk, however fast it was."""
        compiled = self.compile(source, vocabulary, options)
        if is_function(source):
            source = arguments_model(source)
        task = _Task(source, identity(source), vocabulary, options)
        if self.on_disk and not stored.is_stored(task.entry_name(compiled.fingerprint)):
            _save(task, compiled.automaton, compiled.fingerprint, compiled.source.loaded)
        return compiled

    def info(self) -> CacheInfo:
        """What is in memory."""
        with self._lock:
            profiles = list(self._profiles.values())
            schemas = CacheUse(
                len(self._schemas), self._schemas.memory_bytes(), self._schemas.capacity_bytes,
                self._hits, self._misses, self._schemas.n_evictions, self._loads,
            )  # fmt: skip
        ledger = self._tables
        tables = CacheUse(
            ledger.n_tables(), ledger.memory_bytes(), ledger.capacity_bytes,
            ledger.hits, ledger.misses, ledger.evictions,
        )  # fmt: skip
        masks = CacheUse(
            sum(map(len, profiles)),
            sum(cache.memory_bytes() for cache in profiles),
            self._n_vocabularies * self._mask_bytes,
            sum(cache.n_hits for cache in profiles),
            sum(cache.n_misses for cache in profiles),
            sum(cache.n_evictions for cache in profiles),
            sum(cache.n_loads for cache in profiles),
        )
        return CacheInfo(schemas, tables, masks)

    def clear(self) -> None:
        """Forget everything, masks of strings included."""
        with self._lock:
            self.forget_schemas()
            self._profiles.clear()

    def forget_schemas(self) -> None:
        """Forget the schemas, but keep the masks of strings, which belong to the vocabularies."""
        with self._lock:
            self._schemas.clear()

    def _by_type(
        self, source: Any, vocabulary: Vocabulary, options: Options
    ) -> CompiledSchema[Any] | None:
        if not isinstance(source, type | Composed):
            return None
        key = _Task(source, None, vocabulary, options).source_key
        compiled = self._schemas.by_source(key)
        if compiled is None or not compiled.is_current(source):
            return None
        self._hits += 1
        return compiled

    def _uses_disk(self) -> bool:
        return self.on_disk and capacity_bytes() > 0

    def _content(self, source: Any) -> bytes | None:
        """The exact content of a source; of a type only where the disk may know it."""
        if isinstance(source, type) and not self._uses_disk():
            return None
        return identity(source)

    def _known(self, task: _Task) -> CompiledSchema[Any] | None:
        """What is found by the content of the source, without reading its nodes."""
        if task.content is None:
            return None
        if not isinstance(task.source, type):
            compiled = self._schemas.by_source(task.source_key)
            if compiled is not None:
                self._hits += 1
                return compiled
        found = self._stored(task)
        if found is None:
            return None
        return self._remember(task, _unread(task, found.title), found.fingerprint, found.automaton)

    def _stored(self, task: _Task, digest: str = "") -> stored.Stored | None:
        if not self._uses_disk():
            return None
        found = stored.load(task.entry_name(digest), task.vocabulary)
        if found is not None:
            self._misses += 1
            self._loads += 1
        return found

    def _new(self, task: _Task) -> CompiledSchema[Any]:
        """Read the nodes; compile them unless that was done for another source."""
        started = time.thread_time()
        loaded = _loaded(task.source, task.options)
        digest = fingerprint(loaded.schema, task.options)
        with self._lock:
            automaton = self._automaton(task, loaded, digest, started)
            return self._remember(task, Source.of(loaded), digest, automaton)

    def _automaton(
        self, task: _Task, loaded: LoadedSchema, digest: str, started: float
    ) -> Automaton:
        """The automaton of a schema that was read, known, stored or new."""
        same = self._schemas.by_content(task.content_key(digest))
        if same is not None:
            self._hits += 1
            return same.automaton
        found = self._stored(task, digest) if task.content is None else None
        if found is not None:
            return found.automaton
        self._misses += 1
        program = _built(loaded, task.options)
        # Before distances are measured, for which a process loads kernels at its first schema.
        elapsed_s = time.thread_time() - started
        automaton = bind(program, task.vocabulary, task.options.limits)
        logger.debug("compiled %s in %.1f ms", loaded.schema.title, elapsed_s * 1e3)
        if elapsed_s > STORED_FROM_S and self._uses_disk():
            _save(task, automaton, digest, loaded)
        return automaton

    def _remember(
        self, task: _Task, source: Source, digest: str, automaton: Automaton
    ) -> CompiledSchema[Any]:
        """The compiled schema of a source; one automaton and one table for all of one content."""
        key = task.source_key
        compiled = None if key is None else self._schemas.by_source(key)
        if compiled is not None and compiled.source.core is source.core:
            return compiled  # another thread was faster
        content = task.content_key(digest)
        same = self._schemas.by_content(content)
        if same is not None:
            compiled = same.for_source(source)
        else:
            tables = TableSource(automaton, self._profiles_of(task.vocabulary), task.options.limits)
            compiled = CompiledSchema[Any](
                source, automaton, tables, task.options, digest, self._tables
            )
            self._schemas.put(content, compiled)
        if key is not None:
            self._schemas.put_source(key, content, compiled)
        return compiled

    def _profiles_of(self, vocabulary: Vocabulary) -> ProfileCache:
        profiles = self._profiles.get(vocabulary.fingerprint)
        if profiles is None:
            profiles = ProfileCache(self._mask_bytes, on_disk=self.on_disk)
            self._profiles[vocabulary.fingerprint] = profiles
            if len(self._profiles) > self._n_vocabularies:
                self._profiles.popitem(last=False)
        self._profiles.move_to_end(vocabulary.fingerprint)
        return profiles


def _loaded(source: Any, options: Options) -> LoadedSchema:
    """The nodes, with what the options change about them.

    Raises:
        UnsatisfiableSchemaError: with all fields required, nothing matches.
    """
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
    return loaded


def _unread(task: _Task, title: str) -> Source:
    """A source whose automaton is known: of a class the validation is kept, of a dict a copy."""
    if isinstance(task.source, type) and issubclass(task.source, BaseModel):
        adapter = TypeAdapter[Any](task.source)
        read = partial(_titled, adapter, title, task.options)
        return Source(title, adapter.core_schema, read)
    assert task.content is not None, "only what has a content is found unread"
    content = task.content
    return Source(title, None, lambda: _loaded(copied(content), task.options))


def _titled(adapter: TypeAdapter[Any], title: str, options: Options) -> LoadedSchema:
    loaded = _loaded(adapter, options)
    return replace(loaded, schema=replace(loaded.schema, title=title))


def _save(task: _Task, automaton: Automaton, digest: str, loaded: LoadedSchema) -> None:
    """Keep an automaton, unless its schema has to be read in every process for its warnings."""
    if not loaded.ignored:
        entry = stored.Stored(automaton, digest, loaded.schema.title)
        stored.save(task.entry_name(digest), entry)


def _built(loaded: LoadedSchema, options: Options) -> Program:
    with deadline(options.limits.max_seconds):
        return link(assemble(loaded.schema, options), options.limits)


_COMPILER = Compiler(on_disk=True)
_WRITABLE: WeakSet[CompiledSchema[Any]] = WeakSet()
"""Compiled schemas whose labels a vocabulary that lacks bytes can write."""


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
            needs; or a vocabulary with nothing forbidden cannot write some of the labels.
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
        compiled = _COMPILER.compile(schema, vocabulary, options)
        with deadline(options.limits.max_seconds):
            return _with_all_labels(compiled, vocabulary)
    usable = _restricted(vocabulary, vocabulary.encoder_id, allowed, unwanted)
    try:
        return _COMPILER.compile(schema, usable, options)
    except VocabularyError as error:
        message = f"with the tokens that are allowed, {error}; allow more tokens"
        raise VocabularyError(message, missing_bytes=error.missing_bytes) from error


def _with_all_labels(compiled: CompiledSchema[T], vocabulary: Vocabulary) -> CompiledSchema[T]:
    """The compiled schema, whose labels can all be written; looked at once."""
    if vocabulary.missing_bytes and compiled not in _WRITABLE:
        check_labels(compiled.program, vocabulary)
        _WRITABLE.add(compiled)
    return compiled


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


def cache_info() -> CacheInfo:
    """How full the caches of this process are, and how often they were of use.

    Example: `cache_info().schemas.hits`, `cache_info().memory_bytes()`
    """
    return _COMPILER.info()


def store(schema: Any, vocabulary: Vocabulary, options: Options) -> CompiledSchema[Any]:
    """Compile, and see that the result is in the disk cache, however fast it was."""
    return _COMPILER.store(schema, vocabulary, options)
