"""Bounds on memory: compiled schemas, state tables, masks; and that what is dropped is freed."""

from __future__ import annotations

import gc
import random
import tracemalloc
import weakref
from typing import Any

import pytest
from pydantic import create_model

import structgen as sg
from structgen.bench.workload import MODELS
from structgen.compiler import Compiler
from structgen.memory import TableLedger
from structgen.options import Limits, Options
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed, feed, pick

WORDS = [bytes([b]) for b in range(256)] + [b'{"', b'": ', b", ", b"true", b"ab", b'a"']
SOME = Vocabulary.from_bytes(WORDS, len(WORDS))


def schema(number: int) -> dict[str, Any]:
    """One of endlessly many."""
    fields: dict[str, Any] = {
        f"field{number}": {"type": "string", "maxLength": 5 + number % 40},
        "kind": {"enum": [f"label {number} {i}" for i in range(number % 30)]},
        "list": {"type": "array", "items": {"type": "integer", "maximum": number}},
    }
    return {"type": "object", "properties": fields, "required": list(fields)[:1]}


def walk(compiled: Any, seed: int, n_tokens: int = 60) -> None:
    session = compiled.session()
    rng = random.Random(seed)
    for _ in range(n_tokens):
        if session.complete:
            return
        token = pick(session, compiled.vocabulary, rng)
        if token in compiled.vocabulary.eos_token_ids:
            return
        session.advance(token)


def test_many_schemas_stay_within_their_bounds():
    """Nothing is freed by the cyclic collector here: a large process seldom runs it in full."""
    compiler = Compiler(400_000, table_bytes=6_000_000, mask_bytes=300_000)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        held: list[int] = []
        for number in range(300):
            walk(compiler.compile(schema(number), SOME, Options()), number)
            info = compiler.info()
            assert info.schemas.bytes <= info.schemas.capacity_bytes
            assert info.masks.bytes <= 300_000
            if number % 50 == 49:
                held.append(tracemalloc.get_traced_memory()[0])
        assert info.schemas.evictions > 100
        # Small caches of frames and patterns, each with its own bound, still fill up.
        assert held[-1] < held[1] + 1_500_000
    finally:
        tracemalloc.stop()
        gc.enable()


def test_tables_share_a_bound_though_their_schemas_are_held():
    compiler = Compiler(table_bytes=1_500_000)
    held = [compiler.compile(model, SOME, Options()) for model in MODELS]
    for round_ in range(40):
        for compiled in held:
            walk(compiled, round_)
    tables = compiler.info().tables
    assert tables.evictions > 0
    assert tables.hits > tables.misses > len(held)
    largest = max(compiled.memory_bytes() for compiled in held)
    assert tables.bytes <= 1_500_000 + 4 * largest


class Growing:
    """A source of tables whose weight the test says."""

    def __init__(self) -> None:
        self.weight = 0

    @property
    def is_empty(self) -> bool:
        return not self.weight

    def memory_bytes(self) -> int:
        return self.weight

    def reset(self) -> None:
        self.weight = 0


@pytest.mark.parametrize("lasting", [False, True])
def test_the_bound_holds_with_many_tables_that_grow_behind_their_first_session(lasting):
    ledger = TableLedger(1_000_000)
    sources: Any = [Growing() for _ in range(3000)]
    for number, source in enumerate(sources):
        ledger.used(source)
        source.weight = 1000
        if lasting:  # sessions of before go on as well, and nobody is told
            sources[number // 2].weight += 20
        assert ledger.memory_bytes() <= 1_250_000
    assert ledger.memory_bytes() > 500_000
    held = weakref.ref(sources[0])
    del sources, source
    gc.collect()
    assert held() is None
    assert ledger.memory_bytes() == ledger.n_tables() == len(ledger._sizes) == 0


def test_a_session_goes_on_when_its_table_is_dropped():
    compiler = Compiler()
    compiled = compiler.compile(MODELS[0], SOME, Options())
    one, other = compiled.session(), compiled.session()
    feed(one, list(b'{"name": "a'), SOME)
    feed(other, list(b'{"name": "a'), SOME)
    expected = allowed(one)
    compiled.tables.reset()
    assert compiled.tables.is_empty
    assert allowed(one) == expected
    one.rollback(2)
    feed(one, list(b'"a'), SOME)
    for session in (one, other):
        feed(session, list(b'b", "company": "'), SOME)
    assert allowed(one) == allowed(other)


def test_a_dropped_schema_is_freed_at_once():
    gc.collect()
    gc.disable()
    try:
        compiler = Compiler()
        compiled = compiler.compile(schema(7), SOME, Options())
        walk(compiled, 1)
        automaton = weakref.ref(compiled.tables)
        table = compiled.tables.current()
        arrays = weakref.ref(table.automaton.program.states)
        del table
        compiler.clear()
        assert automaton() is not None
        del compiled
        assert automaton() is None
        assert arrays() is None
    finally:
        gc.enable()


def test_a_full_table_is_freed_at_once():
    compiler = Compiler()
    compiled = compiler.compile(MODELS[0], SOME, Options(limits=Limits(cache_bytes=50_000)))
    walk(compiled, 1)
    table = weakref.ref(compiled.tables.current())
    gc.collect()
    for seed in range(30):
        walk(compiled, seed)
    assert compiled.tables.n_resets > 0
    gc.collect()
    assert table() is None


def test_the_classes_of_one_content_are_bounded():
    compiler = Compiler()
    first = compiler.compile(create_model("M", a=(int, ...)), SOME, Options())
    for _ in range(50):
        twin = compiler.compile(create_model("M", a=(int, ...)), SOME, Options())
        assert twin.program is first.program
    info = compiler.info().schemas
    assert (info.entries, info.misses, info.hits) == (1, 1, 50)
    assert info.bytes < first.own_bytes() + 17 * 4096


def test_counters():
    compiler = Compiler()
    for _ in range(3):
        compiler.compile(MODELS[0], SOME, Options())
        compiler.compile(schema(1), SOME, Options()).session().mask()
    info = compiler.info()
    assert (info.schemas.entries, info.schemas.hits, info.schemas.misses) == (2, 4, 2)
    assert (info.tables.entries, info.tables.hits, info.tables.misses) == (1, 2, 1)
    assert info.memory_bytes() == info.schemas.bytes + info.tables.bytes + info.masks.bytes
    compiler.clear()
    assert compiler.info().memory_bytes() == 0


def test_the_public_figures():
    before = sg.cache_info()
    sg.compile(schema(-1), SOME).session().mask()
    after = sg.cache_info()
    assert after.schemas.misses == before.schemas.misses + 1
    assert after.memory_bytes() > before.memory_bytes()


@pytest.mark.parametrize("source", [MODELS[1], list[str], {"type": "string", "pattern": "^.*x$"}])
def test_warming_up(source, tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    report = sg.warmup(source, bool, vocabulary=SOME)
    assert len(report.schemas) == 2
    first = report.schemas[0]
    assert first.n_masks > 0
    assert report.schemas[1].n_masks == 0
    assert report.total_s >= first.compile_s + first.masks_s > 0
    walks = sg.cache_info().masks.misses
    walk(sg.compile(source, SOME), 3)
    assert sg.cache_info().masks.misses == walks, "every mask of a string was there"


def test_a_source_does_not_outlive_its_schema():
    source = TableSource(sg.compile(int, SOME).automaton, Compiler()._profiles_of(SOME), Limits())
    table = weakref.ref(source.current())
    gc.disable()
    try:
        del source
        assert table() is None
    finally:
        gc.enable()
