"""The benchmark itself, on a small vocabulary with few rounds: what it writes, never how fast."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from structgen.bench import figures, plots, run, tables
from structgen.bench.applying import pack
from structgen.bench.engines import ENGINES, Setup
from structgen.bench.engines.base import Walker, allows
from structgen.bench.engines.ours import Structgen
from structgen.bench.measure import US, settled, summary
from structgen.bench.plan import QUICK, Plan, Run
from structgen.bench.tasks import PROMPTS, TASKS
from structgen.bench.workers import Failed, Job, Worker
from structgen.bench.workload import MODELS, texts, token_walks
from structgen.cli import main
from structgen.errors import MissingDependencyError, OptionError
from structgen.testing import RandomLM, byte_vocabulary
from structgen.tokens.vocabulary import Vocabulary

WIDTH, EOS = 300, 256


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> str:
    """A tokenizer of single bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    bytewise.add_special_tokens(["<end>"])
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    bytewise.save(str(path))
    return str(path)


@pytest.fixture(scope="module")
def plan(tokenizer):
    return partial(
        Plan, tokenizer, (EOS,), WIDTH,
        engines=("structgen",), models=("Triage", "Booking"), rounds=QUICK,
    )  # fmt: skip


@pytest.fixture
def absent(monkeypatch):
    """A machine where xgrammar is not installed."""
    monkeypatch.setattr("structgen.bench.plan.is_installed", lambda name: name != "xgrammar")


@pytest.fixture(scope="module")
def results(plan) -> dict[str, Any]:
    measures = ("compiling", "masks", "applying")
    return run.run(plan(only=measures), date="2025-02-28", command="structgen bench")


def is_spread(found: dict[str, float]) -> bool:
    return found["n"] > 0 and 0 < found["p50"] <= found["p99"] <= found["max"]


def test_the_results_say_where_they_are_from(results):
    about = results["about"]
    assert (about["date"], about["command"]) == ("2025-02-28", "structgen bench")
    assert about["versions"]["numpy"] == np.__version__
    assert about["cores"] >= 1
    assert results["vocabulary"]["width"] == WIDTH
    assert results["refused"] == {}


def test_compiling(results):
    found = results["compiling"]["engines"]["structgen"]
    assert set(found["models_ms"]) == {"Triage", "Booking"}
    assert is_spread(found["from_class_ms"])
    assert found["from_class_ms"] == found["from_schema_ms"]  # it asks for no JSON Schema
    disk = results["compiling"]["from_disk"]
    assert is_spread(disk["stored_ms"])
    assert is_spread(disk["not_stored_ms"])
    assert disk["loads"] == 2, "each model was found on disk"


def test_masks(results, tokenizer):
    found = results["masks"]["engines"]["structgen"]
    vocabulary = Vocabulary.from_tokenizer(tokenizer, WIDTH, eos_token_ids=[EOS])
    walks = token_walks(vocabulary)
    n_tokens = sum(len(ids) for model in ("Triage", "Booking") for ids in walks[model])
    for kind in ("warm", "new"):
        assert is_spread(found[kind])
        assert found[kind]["n"] == n_tokens
        assert found[f"{kind}_all"]["n"] == QUICK.times * n_tokens
        assert set(found[f"{kind}_models"]) == {"Triage", "Booking"}
        assert found[f"{kind}_percentiles"] == sorted(found[f"{kind}_percentiles"])
    assert found["rows"]["n"] == QUICK.filling


def test_applying(results):
    cases = results["applying"]["cases"]
    assert [(case["rows"], case["mask"]) for case in cases[:4]] == [
        (1, "sparse"), (1, "half"), (1, "dense"), (8, "sparse")
    ]  # fmt: skip
    assert results["applying"]["failed"] == {}
    for case in cases:
        assert all(map(is_spread, case["us_per_row"].values()))
        assert "structgen" in case["us_per_row"]


def test_memory(results):
    mib = results["masks"]["engines"]["structgen"]["mib"]
    assert mib["set_up"] > 0
    assert mib["models"] >= 0


def test_figures_say_what_was_reached(results):
    by_name = {figure["name"]: figure for figure in results["figures"]}
    p99 = by_name["mask + advance, warm, p99, us"]
    assert p99["held"] == (p99["measured"] <= 30)
    assert p99["reach"] == "<= 30"
    assert not any("times faster" in name for name in by_name), "nobody to compare with"


def test_a_peer_is_compared_on_the_models_that_it_can_do():
    ours: dict[str, Any] = {"warm_models": {"A": {"n": 3, "mean": 1.0}, "B": {"n": 1, "mean": 9.0}}}
    theirs: dict[str, Any] = {"warm_models": {"A": {"n": 3, "mean": 12.0}}}
    assert figures._ratio(ours, theirs, "warm_models") == 12
    assert figures._ratio(ours, {"warm_models": {}}, "warm_models") is None
    assert figures._ratio(ours, None, "warm_models") is None


@pytest.mark.usefixtures("absent")
def test_what_is_not_installed_is_reported(plan):
    found = run.run(plan(engines=("structgen", "xgrammar"), only=("masks",)))
    assert found["not_installed"] == ["xgrammar"]
    assert set(found["masks"]["engines"]) == {"structgen"}
    assert "| xgrammar | everything | not installed |" in squeezed(tables.report(found))


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_every_figure_has_its_row(results):
    report = squeezed(tables.report(results))
    for part in ("Schema to first mask", "first visit", "64 warm rows", "Memory", "Figures"):
        assert part in report
    assert "| structgen, new process, from disk |" in report


def test_tables():
    rows = [("engine", "us"), ("a|b", 1.23456), ("c", 12345.0), ("d", None)]
    assert tables.table(rows).splitlines() == [
        "| engine |     us |",
        "| ------ | -----: |",
        "| a\\|b   |   1.23 |",
        "| c      | 12,345 |",
        "| d      |      - |",
    ]


def test_a_page_takes_the_results(results):
    page = f"# Title\n{tables.BEGIN}\nold\n{tables.END}\nend\n"
    written = tables.into_page(page, results)
    assert written.startswith("# Title\n")
    assert written.endswith(f"{tables.END}\nend\n")
    assert "old" not in written
    assert "`structgen bench` on 2025-02-28" in written
    assert tables.into_page(written, results) == written
    with pytest.raises(OptionError, match="needs the lines"):
        tables.into_page("# Title\n", results)


def test_plots_are_drawn(results, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need the extra `bench`")
    written = plots.draw(results, tmp_path)
    assert [path.name for path in written] == [
        "compiling.png", "masks.png", "memory.png", "applying.png"
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_plots_without_matplotlib(results, tmp_path, monkeypatch):
    monkeypatch.setattr(plots.importlib, "import_module", fail)
    with pytest.raises(MissingDependencyError, match=r"structgen-toolkit\[bench\]"):
        plots.draw(results, tmp_path)


def fail(*_: object) -> Any:
    raise ImportError("not here")


# Processes


def test_what_takes_too_long_is_stopped_and_goes_on(tokenizer):
    job = Job("structgen", tokenizer, WIDTH, (EOS,))
    with Worker(job, limit_s=60) as worker:
        options: dict[str, Any] = {"model": "Triage", "new": False, "times": 1}
        first = worker.call("walk", **options)
        worker.limit_s = 0
        with pytest.raises(Failed, match="took longer than 0 s"):
            worker.call("walk", **{**options, "times": 5000})
        worker.limit_s = 60
        assert len(worker.call("walk", **options)[0]) == len(first[0])
        with pytest.raises(Failed, match="KeyError: 'Nobody'"):
            worker.call("walk", model="Nobody", new=False, times=1)


def test_a_process_that_dies_is_an_answer(tmp_path):
    worker = Worker(Job("structgen", str(tmp_path / "missing.json")), limit_s=60)
    with worker, pytest.raises(Failed, match=r"missing\.json"):
        worker.call("memory")


def test_a_refused_model_is_not_asked_for_again(plan):
    begun = Run(plan(), lambda _: None)
    begun.refuse("structgen", "Triage", Failed("too slow"))
    assert begun.usable("structgen") == ["Booking"]
    assert begun.usable("llguidance") == ["Triage", "Booking"]


@pytest.mark.parametrize("wrong", [{"engines": ("guidance",)}, {"only": ("speed",)}])
def test_unknown_names_are_refused(plan, wrong):
    with pytest.raises(OptionError, match="unknown"):
        plan(**wrong)


# Engines, as far as they are installed


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_follows_a_value_and_refuses_others(name, tokenizer):
    kind = ENGINES[name]
    pytest.importorskip(kind.package, reason="peers are installed by `make bench`")
    vocabulary = Vocabulary.from_tokenizer(tokenizer, WIDTH, eos_token_ids=[EOS])
    engine = kind(Setup(vocabulary, Path(tokenizer).read_text(encoding="utf-8")))
    model = TASKS["flat"] if name != "lm-format-enforcer" else MODELS[0]
    grammar = engine.compile(model)
    assert vocabulary.encode is not None
    for _ in range(2):
        walker: Walker = grammar.start()
        for token_id in vocabulary.encode('{"'):
            walker.fill()
            walker.check()
            assert allows(walker.row, token_id)
            assert not allows(walker.row, vocabulary.encode("]")[0])
            walker.take(token_id)
    engine.filler([grammar.start(), grammar.start()])()
    engine.forget(everything=True)


def test_packed_masks():
    allowed = np.zeros((2, 40), bool)
    allowed[0, 33] = allowed[1, [0, 39]] = True
    assert pack(allowed).tolist() == [[0, 2], [1, 128]]


# The rest


def test_the_workload_is_valid():
    assert {model for model, _ in texts()} == set(MODELS)
    for model, text in texts():
        model.model_validate_json(text)


def test_figures_of_times():
    assert settled([[1, 5], [2, 5], [9, 4]]) == [2, 5]
    found = summary([1e-6, 2e-6, 6e-6], US)
    assert (found["n"], found["mean"], found["p50"], found["max"]) == (3, 3, 2, 6)
    assert summary([], US) == {"n": 0}


def test_the_default_models_objects(monkeypatch):
    from structgen.bench.writing import Writer

    lm: Any = RandomLM(byte_vocabulary(), 3)
    setup = Setup(lm.vocabulary, "")
    found = Writer("flat", lm, Structgen(setup)).write(8)
    assert found["valid"] == len(PROMPTS)
    assert len(found["tokens"]) == len(PROMPTS)
    assert 0 < found["passes"] < sum(found["tokens"])


def test_the_command(tokenizer, tmp_path, capsys):
    call = ["bench", "--quick", "--only", "applying", "--engines", "structgen", "--width", "300"]
    options = ["--tokenizer", tokenizer, "--eos", "256", "--out", str(tmp_path), "--date", "today"]
    assert main([*call, *options]) == 0
    printed = capsys.readouterr()
    assert "Applying masks to 300 columns" in printed.out
    assert "results.json" in printed.err
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["about"]["date"] == "today"
    assert main(["bench", "--draw", str(tmp_path / "results.json"), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == printed.out
    assert main(["bench", "--draw", str(tmp_path / "nothing.json")]) == 1
