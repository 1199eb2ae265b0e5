"""Sets of up to 100,000 labels: from list to first mask, the steps inside, memory, peers."""

from __future__ import annotations

import gc
import gzip
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.bench.engines import ENGINES, is_installed
from structgen.bench.engines.base import Engine, Setup
from structgen.bench.plan import QWEN3_WIDTH
from structgen.compiler import forget_schemas
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.conftest import EOS
from tests.benchmarks.reporting import Report, summary
from tests.tokens.test_labels import files, random_draws
from tests.tokens.test_labels import lines as label_lines

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
FOLDER = DATA / "taxonomies"
SIZES = {1_000: 4.0, 10_000: 30.0, 100_000: 400.0}
"""Labels, and milliseconds to reach."""
ROUNDS = 7
LIMIT_S = 60.0
"""What a peer may take for one size."""
PEERS = [name for name in ENGINES if name not in ("structgen", "lm-format-enforcer")]
WALKS = 300
DRAWS = 10_000
CHOSEN = 50

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="no taxonomies in the folder that STRUCTGEN_DATA names"
    ),
]

clock = time.perf_counter
FORMS: dict[str, Callable[[list[str]], Any]] = {
    "JSON enum": lambda x: {"enum": x},
    "bare": sg.OneOf,
}


def lines(name: str) -> list[str]:
    data = (FOLDER / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()


def some_labels(count: int) -> list[str]:
    """Real labels; the last ones of 100,000 are those of a shop as if of another one."""
    shop = lines("shopify-2024-07/labels.txt")
    if count <= len(shop):
        return shop[:count]
    found = [*lines("icd10cm-2026-04/leaf_labels.txt.gz"), *shop]
    found += lines("google-product-2021-09-21/labels.txt") + lines("cpv-2008/labels.txt.gz")
    found += [f"Marketplace > {label}" for label in shop]
    return list(dict.fromkeys(found))[:count]


@pytest.fixture(scope="module")
def wide(tokenizer: Any) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer, width=QWEN3_WIDTH, eos_token_ids=[EOS])


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "0")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", SIZES)
def test_first_mask(report: Report, wide: Vocabulary, count: int, form: str) -> None:
    names, row = some_labels(count), np.zeros(wide.n_words, np.int32)
    sg.compile(FORMS[form](["a", "b"]), wide).session().fill_mask(row)
    times: list[float] = []
    for _ in range(ROUNDS):
        forget_schemas()
        source = list(names)
        started = clock()
        sg.compile(FORMS[form](source), wide).session().fill_mask(row)
        times.append(1e3 * (clock() - started))
    figure = round(statistics.median(times), 1)
    report.add(f"{count} labels, {form}, first mask, ms", figure, f"<= {SIZES[count]:g}")


def picked(row: Any, rng: random.Random, stops: tuple[int, ...]) -> int | None:
    legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    tokens = [token for token in legal.tolist() if token not in stops]
    return rng.choice(tokens) if tokens else None


def first_visits(compiled: Any, rng: random.Random) -> tuple[list[list[int]], list[float]]:
    """Random walks, and the seconds of mask and step behind the root where either was new."""
    vocabulary = compiled.vocabulary
    row = np.zeros(vocabulary.n_words, np.int32)
    walks: list[list[int]] = []
    seconds: list[float] = []
    for _ in range(WALKS):
        session: Session = compiled.session()
        while not session.complete:
            started = clock()
            session.fill_mask(row)
            took = clock() - started
            token_id = picked(row, rng, vocabulary.eos_token_ids)
            if token_id is None:
                break
            started = clock()
            session.advance(token_id)
            if session.n_tokens > 1:
                seconds.append(took + clock() - started)
        walks.append(session.token_ids)
    return walks, seconds


@pytest.fixture
def no_collections() -> Iterator[None]:
    """As `timeit` does: a collection takes up to 16 ms, for the objects of the whole process."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", SIZES)
def test_steps(report: Report, wide: Vocabulary, count: int, form: str) -> None:
    compiled = sg.compile(FORMS[form](some_labels(count)), wide)
    walks, seconds = first_visits(compiled, random.Random(3))
    row = np.zeros(wide.n_words, np.int32)
    means: list[float] = []
    for _ in range(3):
        started = clock()
        for walk in walks:
            session = compiled.session()
            for token_id in walk:
                session.fill_mask(row)
                session.advance(token_id)
        means.append((clock() - started) / sum(map(len, walks)))
    warm = round(1e6 * min(means), 2)
    report.add(f"{count} labels, {form}, warm mask + step, us", warm, "<= 2")
    report.add(f"{count} labels, {form}, first visits, us", summary(seconds), "max <= 1000")


LISTS: dict[str, tuple[Callable[[list[str]], Any], Callable[[list[str]], str]]] = {
    "JSON": (
        lambda x: {"type": "array", "items": {"enum": x}, "uniqueItems": True},
        lambda x: json.dumps(x, ensure_ascii=False),
    ),
    "bare": (sg.SomeOf, ", ".join),
}
"""The schema of several of some labels, and the text of a list."""


@pytest.mark.parametrize("form", LISTS)
def test_a_list_without_repeats(report: Report, wide: Vocabulary, form: str) -> None:
    names = some_labels(10_000)
    schema, written = LISTS[form]
    compiled = sg.compile(schema(names), wide)
    row = np.zeros(wide.n_words, np.int32)
    masks: list[float] = []
    steps: list[float] = []
    for seed in range(4):
        session = compiled.session()
        chosen = random.Random(seed).sample(names, CHOSEN)
        for token_id in wide.encode(written(chosen)):  # pyright: ignore[reportOptionalCall]  # it has one
            started = clock()
            session.fill_mask(row)
            between = clock()
            session.advance(token_id)
            masks.append(between - started)
            steps.append(clock() - between)
        if not seed:
            masks, steps = [], []  # what belongs to the vocabulary is found out
    what = f"list of {CHOSEN} of {len(names)} labels, {form}"
    report.add(f"{what}, mask, us", summary(masks), "mean <= 100")
    report.add(f"{what}, step, us", summary(steps))


def test_random_draws(report: Report, wide: Vocabulary) -> None:
    """From random logits at temperature 2, on every list of labels there is."""
    rng = np.random.default_rng(0)
    valid = 0
    for path in (paths := files()):
        names = set(label_lines(path))
        drawn = random_draws(sg.compile(sg.OneOf(names), wide), DRAWS, rng)
        valid += sum(text in names for text in drawn)
    share = 100 * valid / (DRAWS * len(paths))
    report.add(f"valid of {DRAWS} draws on each of {len(paths)} lists, %", share, "100")


MEMORY = """
import ctypes, gc, sys
import numpy as np
from tokenizers import Tokenizer
import structgen as sg
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.conftest import EOS
from tests.benchmarks.test_labels import FORMS, lines
from tests.benchmarks.test_memory import resident_bytes

tokenizer = Tokenizer.from_file(sys.argv[1])
vocabulary = Vocabulary.from_tokenizer(tokenizer, int(sys.argv[2]), eos_token_ids=[EOS])
row = np.zeros(vocabulary.n_words, np.int32)
make = FORMS[sys.argv[3]]
sg.compile(make(["a", "b"]), vocabulary).session().fill_mask(row)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
before = resident_bytes()
compiled = sg.compile(make(lines("icd10cm-2026-04/leaf_labels.txt.gz")), vocabulary)
compiled.session().fill_mask(row)
print((resident_bytes() - before) / 1e6)
"""


@pytest.mark.parametrize("form", FORMS)
def test_memory_of_icd10(report: Report, tokenizer_json: Path, form: str) -> None:
    """The list of labels, which the caller has too, is counted."""
    command = [sys.executable, "-c", MEMORY, str(tokenizer_json), str(QWEN3_WIDTH), form]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    report.add(f"ICD-10-CM, {form}, MB above the vocabulary", round(float(done.stdout), 1), "<= 80")


class AsModel:
    """A JSON Schema, as engines ask a Pydantic model for it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema

    def model_json_schema(self) -> dict[str, Any]:
        return self._schema


def _peer(pipe: Connection, name: str, tokenizer_json: str) -> None:
    """In a process of its own: for each size that is asked for, milliseconds and microseconds."""
    setup = Setup(
        Vocabulary.from_tokenizer(
            _tokenizer(tokenizer_json), width=QWEN3_WIDTH, eos_token_ids=[EOS]
        ),
        Path(tokenizer_json).read_text(encoding="utf-8"),
    )
    engine = ENGINES[name](setup)
    _measured(engine, setup, ["a", "b"])
    pipe.send("ready")
    while True:
        names = some_labels(pipe.recv())
        try:
            pipe.send(_measured(engine, setup, names))
        except Exception as error:  # whatever a peer raises means that it cannot do it
            pipe.send(f"{type(error).__name__}: {str(error)[:80]}")


def _tokenizer(tokenizer_json: str) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(tokenizer_json)


def _measured(engine: Engine, setup: Setup, names: list[str]) -> tuple[float, float]:
    model: Any = AsModel({"enum": names})
    started = clock()
    grammar = engine.compile(model)
    walker = grammar.start()
    walker.fill()
    first_ms = 1e3 * (clock() - started)
    walker.check()
    encode = setup.vocabulary.encode
    assert encode is not None
    texts = [json.dumps(name, ensure_ascii=False) for name in random.Random(0).sample(names, 2)]
    times: list[float] = []
    for text in texts * 2:
        walker = grammar.start()
        for token_id in encode(text):
            started = clock()
            walker.fill()
            walker.take(token_id)
            times.append(clock() - started)
        walker.check()
    return first_ms, 1e6 * statistics.mean(times[len(times) // 2 :])


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest, tokenizer_json: Path) -> Iterator[tuple[str, Connection]]:
    if not is_installed(request.param):
        pytest.skip(f"needs {request.param}")
    context = multiprocessing.get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=_peer, args=(other, request.param, str(tokenizer_json)))
    process.start()
    try:
        assert own.poll(LIMIT_S)
        own.recv()
        yield request.param, own
    finally:
        process.terminate()
        process.join()


def test_peers(report: Report, peer: tuple[str, Connection]) -> None:
    name, pipe = peer
    for count in SIZES:
        pipe.send(count)
        if not pipe.poll(LIMIT_S):
            report.add(f"{count} labels, {name}", f"more than {LIMIT_S:g} s")
            return
        found = pipe.recv()
        figures = found
        if not isinstance(found, str):
            figures = {"first mask, ms": round(found[0], 1), "mask + step, us": round(found[1], 1)}
        report.add(f"{count} labels, {name}", figures)
