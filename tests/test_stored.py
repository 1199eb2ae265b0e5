"""Compiled schemas and masks on disk: found again, never wrongly, and rebuilt when damaged."""

from __future__ import annotations

import hashlib
import logging
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field, create_model

from structgen import cache, compiler, stamp, stored
from structgen.automata.assemble import assemble
from structgen.automata.program import link
from structgen.bench.workload import MODELS, Booking, Contact, texts
from structgen.cache_folder import entries
from structgen.compiler import Compiler
from structgen.options import Limits, Options
from structgen.schema.identity import identity
from structgen.schema.load import load_schema
from structgen.tokens import stored_masks
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.walks import allowed, pick

BYTES = strategies.byte_vocabulary()
WORDS = [bytes([b]) for b in range(256)] + [b'{"', b'": ', b", ", b"true", b"ab", b'a"']
SOME = Vocabulary.from_bytes(WORDS, len(WORDS))
OPTIONS = Options()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(stored_masks, "LEAST_NODES", 1)
    return tmp_path


def fresh() -> Compiler:
    """What a new process has."""
    return Compiler(on_disk=True)


def walked(compiled: Any, seed: int) -> list[tuple[list[int], int]]:
    """Masks and tokens of a random value under a budget."""
    session = compiled.session(max_tokens=compiled.min_tokens + 40)
    rng = random.Random(seed)
    found: list[tuple[list[int], int]] = []
    while not session.complete and not session.exhausted:
        ids = allowed(session)
        token = pick(session, compiled.vocabulary, rng)
        found.append((ids, token))
        if token in compiled.vocabulary.eos_token_ids:
            break
        session.advance(token)
    return found


SOURCES: list[Any] = [
    *MODELS, list[int], {"type": "array", "items": {"enum": [1, "a", None]}, "maxItems": 3},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
    create_model("P", a=(str, Field(pattern="^(ab|c)*$")), b=(str, Field(max_length=5))),
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_what_is_loaded_is_what_was_compiled(source):
    first = fresh()
    one = first.store(source, SOME, OPTIONS)
    second = fresh()
    two = second.compile(source, SOME, OPTIONS)
    assert (first.info().schemas.loads, second.info().schemas.loads) == (0, 1)
    assert (one.title, one.fingerprint, one.min_tokens) == (
        two.title, two.fingerprint, two.min_tokens
    )  # fmt: skip
    for here, there in zip(one.program.arrays, two.program.arrays, strict=True):
        assert np.array_equal(here, there)
        assert here.dtype == there.dtype
        assert there.flags.writeable, "numba is slow with others"
    for seed in range(3):
        assert walked(one, seed) == walked(two, seed)
    assert one.schema == two.schema
    assert repr(one) == repr(two)


def test_values_are_validated_by_the_class_itself():
    for model, text in texts():
        fresh().store(model, BYTES, OPTIONS)
        compiled = fresh().compile(model, BYTES, OPTIONS)
        assert compiled.validate(text) == model.model_validate_json(text)


def test_the_nodes_are_read_only_when_needed(monkeypatch):
    fresh().store(Contact, BYTES, OPTIONS)
    calls: list[Any] = []

    def counted(source, **settings):
        calls.append(source)
        return load_schema(source, **settings)

    monkeypatch.setattr(compiler, "load_schema", counted)
    compiled = fresh().compile(Contact, BYTES, OPTIONS)
    compiled.session(max_tokens=200).mask()
    assert compiled.title == "Contact"
    assert calls == []
    assert compiled.schema.title == "Contact"
    assert len(calls) == 1


def test_a_schema_that_its_author_changes_later_stays_as_it_was():
    source: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    expected = fresh().store(source, BYTES, OPTIONS).schema
    compiled = fresh().compile(source, BYTES, OPTIONS)
    source["properties"].clear()
    assert compiled.schema == expected


def test_different_things_are_never_taken_for_each_other():
    for vocabulary in (BYTES, SOME):
        for options in (OPTIONS, Options(layout="compact"), Options(limits=Limits(max_depth=9))):
            fresh().store(Contact, vocabulary, options)
    assert len(entries(cache.cache_dir(), "schema")) == 6
    other = create_model("Contact", name=(int, ...))
    second = fresh()
    second.compile(other, BYTES, OPTIONS)
    assert second.info().schemas.loads == 0


def test_fast_schemas_are_not_stored_unless_asked():
    fresh().compile(bool, BYTES, OPTIONS)
    assert entries(cache.cache_dir(), "schema") == []


def test_slow_schemas_are_stored(monkeypatch):
    monkeypatch.setattr(compiler, "STORED_FROM_S", 0.0)
    fresh().compile(Booking, BYTES, OPTIONS)
    assert len(entries(cache.cache_dir(), "schema")) == 1


def test_nothing_is_written_or_read_without_leave():
    fresh().store(Contact, BYTES, OPTIONS)
    private = Compiler()
    private.store(Booking, BYTES, OPTIONS)
    private.compile(Contact, BYTES, OPTIONS)
    assert private.info().schemas.loads == 0
    assert len(entries(cache.cache_dir(), "schema")) == 1


def test_another_library_finds_nothing(monkeypatch):
    fresh().store(Contact, BYTES, OPTIONS)
    for change in ({"FORMAT": -1}, {"_FOLDERS": ("schema",)}):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in change.items():
                patch.setattr(stamp, name, value)
            stamp.stamp.cache_clear()
            second = fresh()
            second.compile(Contact, BYTES, OPTIONS)
            assert second.info().schemas.loads == 0
        stamp.stamp.cache_clear()


def test_warnings_are_said_in_every_process(caplog):
    source = {"type": "string", "format": "colour"}
    for _ in range(2):
        caplog.clear()
        compiled = fresh().store(source, BYTES, OPTIONS)
        assert compiled.source.loaded.ignored
        assert "colour" in caplog.text


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_file_is_rebuilt(seed, caplog):
    rng = random.Random(seed)
    fresh().store(Contact, BYTES, OPTIONS)
    (entry,) = entries(cache.cache_dir(), "schema")
    content = bytearray(entry.path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    entry.path.write_bytes(content)
    second = fresh()
    compiled = second.compile(Contact, BYTES, OPTIONS)
    assert second.info().schemas.loads == 0
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert allowed(compiled.session()) == [ord("{")]


def test_numbers_out_of_range_are_refused_whatever_the_digest_says(monkeypatch):
    """Each entry of each array in turn is set to what no kernel could bear."""
    automaton = fresh().store(Booking, BYTES, OPTIONS).automaton
    name = stored.entry_name(identity(Booking) or b"", BYTES, OPTIONS)
    found = cache.load_arrays(stored.KIND, name)
    assert found is not None
    arrays, header = found
    columns = [("states", column) for column in (0, 1, 2, 3, 4, 6, 7)]
    columns += [("table", None), ("calls", 0), ("calls", 1), ("starts", None)]
    for part, column in columns:
        for value in (2**30, -(2**30)):
            harmed = {key: array.copy() for key, array in arrays.items()}
            place: Any = 5 if column is None else (5 % len(harmed[part]), column)
            if part == "starts":
                place = -1
            harmed[part][place] = value
            assert cache.save_arrays(stored.KIND, name, harmed, header)
            assert stored.load(name, BYTES) is None, (part, column, value)
    for part in arrays:
        harmed = {**arrays, part: arrays[part].astype(np.float64)}
        cache.save_arrays(stored.KIND, name, harmed, header)
        assert stored.load(name, BYTES) is None
    assert automaton.min_tokens > 0


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "file"))
    compiled = fresh().store(Contact, BYTES, OPTIONS)
    assert allowed(compiled.session()) == [ord("{")]


def test_masks_of_strings_come_from_the_disk():
    schema = create_model("S", a=(str, ...), b=(str, Field(max_length=6, min_length=2)))
    first, second = fresh(), fresh()
    expected = [walked(first.compile(schema, SOME, OPTIONS), seed) for seed in range(5)]
    assert first.info().masks.loads == 0
    assert entries(cache.cache_dir(), "mask")
    assert [walked(second.compile(schema, SOME, OPTIONS), seed) for seed in range(5)] == expected
    assert second.info().masks.loads > 0


def test_a_damaged_mask_is_found_again():
    first = fresh().compile(str, SOME, OPTIONS)
    expected = walked(first, 1)
    for entry in entries(cache.cache_dir(), "mask"):
        content = bytearray(entry.path.read_bytes())
        content[-1] ^= 1
        entry.path.write_bytes(content)
    second = fresh()
    assert walked(second.compile(str, SOME, OPTIONS), 1) == expected
    assert second.info().masks.loads == 0


SCRIPT = """
import sys
from structgen.compiler import Compiler
from structgen.options import Options
from structgen.bench.workload import MODELS
from tests.strategies import byte_vocabulary
from tests.walks import allowed
compiler = Compiler(on_disk=True)
for model in MODELS[int(sys.argv[1]) % 4 :: 4]:
    for round in range(3):
        compiled = compiler.store(model, byte_vocabulary(), Options())
        assert allowed(compiled.session()) == [ord("{")]
        compiler.clear()
print("done")
"""


def test_processes_share_the_folder(tmp_path):
    root = Path(stored.__file__).parents[1]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(i)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=root,
        )
        for i in range(8)
    ]  # fmt: skip
    assert [worker.communicate() for worker in workers] == [("done\n", "")] * 8
    assert len(entries(cache.cache_dir(), "schema")) == len(MODELS)


PINNED = "61f08e47cd5e5448"
"""Raise `structgen.stamp.FORMAT` together with this digest, or old files would be read wrongly."""


def test_a_change_of_the_compilers_output_raises_the_format():
    digest = hashlib.sha256()
    for source in (*MODELS, {"type": "array", "items": {"format": "date"}, "uniqueItems": True}):
        loaded = load_schema(source)
        for options in (Options(), Options(layout="flexible", require_all=True)):
            program = link(assemble(loaded.schema, options), options.limits)
            for array in program.arrays:
                digest.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
    assert (stamp.FORMAT, digest.hexdigest()[:16]) == (4, PINNED)


class Pinned(BaseModel):
    a: str


def test_a_rebuilt_class_is_compiled_again():
    fresh().store(Pinned, BYTES, OPTIONS)
    compiler_ = fresh()
    one = compiler_.compile(Pinned, BYTES, OPTIONS)
    Pinned.model_fields["a"].annotation = int
    Pinned.model_rebuild(force=True)
    two = compiler_.compile(Pinned, BYTES, OPTIONS)
    assert two.min_tokens != one.min_tokens
    assert one.validate('{"a": ""}').a == ""
