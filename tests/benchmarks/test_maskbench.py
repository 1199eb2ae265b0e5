"""Schema to first mask, and masks along real instances, over the development part of MaskBench.

A schema counts as new when nothing that depends on its content is remembered: no compiled schema,
no automaton of a pattern, format or bounded number. What belongs to the library (compiled kernels,
the string frame) and to the vocabulary (the masks inside of plain strings) is known.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import structgen as sg
from structgen.bench.engines import Engine, Setup
from structgen.bench.engines.base import Walker, allows
from structgen.bench.engines.llguidance import LLGuidance
from structgen.bench.engines.ours import forget_contents
from structgen.bench.engines.xgrammar import XGrammar
from structgen.compiler import CompiledSchema, forget_schemas
from structgen.errors import StructgenError
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.reporting import Report
from tests.conformance import suites
from tests.conformance.instances import texts

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
ROUNDS = 3
LONGEST = 20_000
"""Characters of an instance; longer ones would be most of the positions."""

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(
        not (DATA / "maskbench-dev").is_dir(),
        reason="MaskBench is not in the folder that STRUCTGEN_DATA names",
    ),
]

clock = time.perf_counter


@pytest.fixture(scope="module")
def cases() -> list[suites.Case]:
    return list(suites.maskbench(DATA))


@pytest.fixture(scope="module")
def row(vocabulary: Vocabulary) -> Any:
    return np.zeros(vocabulary.n_words, np.int32)


@dataclass
class Timing:
    """One schema, compiled as if it were new."""

    name: str
    seconds: float
    stages: dict[str, float]


@dataclass
class Stages:
    """Seconds by stage, without those of the stages that it calls."""

    seconds: dict[str, float] = field(default_factory=dict)
    _inner: list[float] = field(default_factory=lambda: [0.0])

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = clock()
            self._inner.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                took = clock() - started
                own = took - self._inner.pop()
                self.seconds[name] = self.seconds.get(name, 0.0) + own
                self._inner[-1] += took

        return timed


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    found = Stages()
    for name, target in (
        ("reading", "structgen.schema.load.read_json_schema"),
        ("checks", "structgen.schema.load.possible"),
        ("frames", "structgen.compiler.assemble"),
        ("link", "structgen.compiler.link"),
        ("bind", "structgen.compiler.bind"),
        ("regex", "structgen.regex.recent.Remembered._compute"),
        ("mask", "structgen.tokens.session.Session.fill_mask"),
    ):
        module, _, attribute = target.rpartition(".")
        owner = sys.modules.get(module) or getattr(
            sys.modules[module.rpartition(".")[0]], module.rpartition(".")[2]
        )
        monkeypatch.setattr(owner, attribute, found.wrap(name, getattr(owner, attribute)))
    return found


def forget_everything() -> None:
    forget_schemas()
    forget_contents()


def compiled(schema: Any, vocabulary: Vocabulary) -> CompiledSchema[Any]:
    return sg.compile({} if schema is True else schema, vocabulary)


def first_mask(schema: Any, vocabulary: Vocabulary, row: Any) -> float:
    started = clock()
    compiled(schema, vocabulary).session().fill_mask(row)
    return clock() - started


def milliseconds(seconds: list[float]) -> dict[str, float]:
    ms = np.array(seconds) * 1e3
    ranks = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    return {"n": len(ms), "mean": round(float(ms.mean()), 2)} | {
        name: round(float(np.percentile(ms, rank)), 2) for name, rank in ranks.items()
    }


def test_schema_to_first_mask(
    report: Report, cases: list[suites.Case], vocabulary: Vocabulary, row: Any, stages: Stages
) -> None:
    """Every schema as a new one, the best of some rounds; then each once in a running process."""
    best: dict[str, Timing] = {}
    refused: dict[str, float] = {}
    for _ in range(ROUNDS):
        for case in cases:
            forget_everything()
            stages.seconds.clear()
            started = clock()
            try:
                seconds = first_mask(case.schema, vocabulary, row)
            except StructgenError:
                refused[case.name] = min(refused.get(case.name, 1e9), clock() - started)
                continue
            if case.name not in best or seconds < best[case.name].seconds:
                best[case.name] = Timing(case.name, seconds, dict(stages.seconds))
    found = milliseconds([timing.seconds for timing in best.values()])
    report.add("MaskBench, new schema to first mask, ms", found, "p50 3, p99 60, max 1000")
    report.add("MaskBench, refused schemas, ms", milliseconds(list(refused.values())))
    slowest = sorted(best.values(), key=lambda timing: -timing.seconds)[:10]
    for timing in slowest:
        shares = {name: f"{s / timing.seconds:.0%}" for name, s in timing.stages.items()}
        shown = {name: share for name, share in shares.items() if share != "0%"}
        report.add(f"  {timing.name}, ms", {"all": round(timing.seconds * 1e3, 1), **shown})
    forget_everything()
    again: list[float] = []
    for case in cases:
        if case.name in best:
            forget_schemas()
            again.append(first_mask(case.schema, vocabulary, row))
    report.add("MaskBench, each schema once in one process, ms", milliseconds(again))


class Source:
    """Gives a JSON Schema to engines that ask a model for it."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def model_json_schema(self) -> Any:
        return self._schema


class LenientXGrammar(XGrammar):
    """It follows JSON Schema where a keyword is absent, as the others do."""

    strict_mode = False


LONGEST_SCHEMA = {"xgrammar": 1000}
"""Characters: larger ones take minutes each."""


@pytest.fixture(scope="module", params=[LLGuidance, LenientXGrammar])
def peer(request: Any, peer_setup: Setup) -> Engine:
    pytest.importorskip(request.param.package, reason="peers are installed by `make bench`")
    return request.param(peer_setup)


def tokenised(
    automaton: CompiledSchema[Any], case: suites.Case, tokenizer: Any
) -> Iterator[list[int]]:
    """The tokens of each valid instance, in the spelling that the automaton writes."""
    for _, instance, valid in case.instances:
        for text in texts(automaton.schema, instance) if valid else ():
            written = text.decode()
            if len(written) > LONGEST:
                break
            ids = tokenizer.encode(written, add_special_tokens=False).ids
            session = automaton.session()
            try:
                for token_id in ids:
                    session.advance(token_id)
            except StructgenError:
                continue
            yield ids
            break


@pytest.fixture(scope="module")
def walks(
    cases: list[suites.Case], vocabulary: Vocabulary, tokenizer: Any
) -> list[tuple[Any, list[list[int]]]]:
    """(schema, tokens of its valid instances) of every schema that is compiled."""
    found: list[tuple[Any, list[list[int]]]] = []
    for case in cases:
        try:
            automaton = compiled(case.schema, vocabulary)
        except StructgenError:
            continue
        found.append((case.schema, list(tokenised(automaton, case, tokenizer))))
    return found


def test_masks_along_instances(
    report: Report, walks: list[tuple[Any, list[list[int]]]], vocabulary: Vocabulary, row: Any
) -> None:
    """The first instance meets new states; the second time around every state is known."""
    forget_schemas()
    first: list[float] = []
    warm: list[float] = []
    for schema, instances in walks:
        automaton = compiled(schema, vocabulary)
        for seconds in (first, warm):
            for ids in instances:
                session = automaton.session()
                for token_id in ids:
                    started = clock()
                    session.fill_mask(row)
                    seconds.append(clock() - started)
                    assert int(row[token_id >> 5]) >> (token_id & 31) & 1
                    session.advance(token_id)
        forget_schemas()
    reach = "mean 0.04, p99 0.3"
    report.add("MaskBench, masks along instances, new schema, ms", milliseconds(first), reach)
    report.add("MaskBench, masks along instances, seen states, ms", milliseconds(warm))


def test_peers(report: Report, walks: list[tuple[Any, list[list[int]]]], peer: Engine) -> None:
    """The same schemas and instances; where the peer refuses either, that is counted."""
    longest = LONGEST_SCHEMA.get(peer.name)
    compiling: list[float] = []
    masks: list[float] = []
    refused = rejected = 0
    for schema, instances in walks:
        if longest and len(json.dumps(schema)) > longest:
            continue
        try:
            started = clock()
            grammar = peer.compile(cast("Any", Source(schema)))
            walker = grammar.start()
            walker.fill()
            walker.check()
            compiling.append(clock() - started)
        except (AssertionError, RuntimeError, ValueError):
            refused += 1
            continue
        for ids in instances:
            rejected += not _walked(grammar.start(), ids, masks)
    report.add(f"MaskBench, schema to first mask, ms: {peer.name}", milliseconds(compiling))
    report.add(f"MaskBench, masks along instances, ms: {peer.name}", milliseconds(masks))
    report.add(
        f"MaskBench, refused schemas and rejected instances: {peer.name}", (refused, rejected)
    )


def _walked(walker: Walker, ids: list[int], masks: list[float]) -> bool:
    """Whether all tokens were allowed; adds the seconds of each mask."""
    for token_id in ids:
        started = clock()
        walker.fill()
        masks.append(clock() - started)
        walker.check()
        if not allows(walker.row, token_id):
            return False
        walker.take(token_id)
    return True
