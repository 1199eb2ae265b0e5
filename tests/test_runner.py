from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from structgen.errors import OptionError
from structgen.generator import Generator
from structgen.runner import RunReport, run_jsonl
from structgen.testing import RandomLM, small_vocabulary

WORDS = small_vocabulary(['{"', '":', " true", " false", "team", ", "])


class Team(BaseModel):
    team: Literal["billing", "sales"]
    note: str = Field(max_length=6)


def generator(schema=Team, **options):
    return Generator(schema, RandomLM(WORDS), do_sample=True, seed=3, **options)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


@pytest.fixture
def rows(tmp_path):
    return write(tmp_path / "rows.jsonl", [f"prompt {i}" for i in range(9)])


def test_each_row_gives_a_line(rows, out):
    assert run_jsonl(generator(), rows, out, batch_size=4) == RunReport(9, 0, 0)
    lines = {line["row"]: line for line in read(out)}
    assert sorted(lines) == list(range(9))
    for i, line in lines.items():
        expected = generator().run(f"prompt {i}", seed=3 + i)
        assert line["value"] == json.loads(expected.text)
        assert line["usage"]["completion_tokens"] == expected.usage.completion_tokens


def test_a_second_run_has_nothing_to_do(rows, out):
    run_jsonl(generator(), rows, out)
    before = out.read_bytes()
    again = generator()
    assert run_jsonl(again, rows, out) == RunReport(0, 0, 9)
    assert out.read_bytes() == before
    assert again.lm.chunks == []


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_line_that_was_cut_short_is_done_again(rows, out, cut):
    run_jsonl(generator(), rows, out)
    complete = sorted(out.read_bytes().splitlines())
    data = out.read_bytes()
    out.write_bytes(data[: len(data) // 2] if cut == 40 else data[:-cut])
    report = run_jsonl(generator(), rows, out)
    assert report.written + report.skipped == 9
    assert report.written >= 1
    assert sorted(out.read_bytes().splitlines()) == complete


def test_a_run_that_is_killed_goes_on(rows, out, tmp_path):
    write(rows, [f"prompt {i}" for i in range(300)])
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent("""
        import sys, time
        from tests.test_runner import generator, run_jsonl
        made = generator()
        logits = made.lm.logits
        made.lm.logits = lambda ids: (time.sleep(0.002), logits(ids))[1]
        run_jsonl(made, sys.argv[1], sys.argv[2], batch_size=4)
        """)
    )
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, str(script), str(rows), str(out)],
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        n_lines = len(out.read_bytes().splitlines()) if out.exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if out.exists() and len(out.read_bytes().splitlines()) > n_lines + 5:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed_at = len(out.read_bytes().splitlines())
    assert 10 < killed_at < 300, "it was killed in the middle"
    run_jsonl(generator(), rows, out)
    assert sorted(line["row"] for line in read(out)) == list(range(300))
    for line in read(out)[:20]:
        i = line["row"]
        assert line["value"] == json.loads(generator().run(f"prompt {i}", seed=3 + i).text)


def test_rows_have_their_own_options(tmp_path, out):
    rows = write(
        tmp_path / "rows.jsonl",
        [
            {"prompt": "a", "id": "first", "seed": 77},
            {"prompt": [{"role": "user", "content": "b"}], "max_new_tokens": 60},
        ],
    )
    run_jsonl(generator(), rows, out)
    lines = {line["row"]: line for line in read(out)}
    assert lines[0]["id"] == "first"
    assert lines[0]["value"] == json.loads(generator().run("a", seed=77).text)
    assert "id" not in lines[1]


def test_rows_that_fail_are_lines_too(tmp_path, out):
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(
        b'"fine"\n\n{"prompt": 3}\nnot json\n{"text": "x"}\n{"prompt": "x", "sed": 1}\n\xff\n'
        b'{"prompt": "tight", "max_new_tokens": 1, "id": 9}\n'
    )
    assert run_jsonl(generator(), rows, out) == RunReport(1, 6, 0)
    lines = {line["row"]: line for line in read(out)}
    kinds = [lines[i].get("error", {}).get("type") for i in range(7)]
    assert kinds == [
        None,
        "InvalidTextError",
        "InvalidTextError",
        "OptionError",
        "OptionError",
        "InvalidTextError",
        "BudgetError",
    ]
    assert "'sed'" in lines[4]["error"]["message"]
    assert lines[6]["id"] == 9
    assert run_jsonl(generator(), rows, out) == RunReport(0, 0, 7)
    assert run_jsonl(generator(), rows, out, retry_errors=True) == RunReport(0, 6, 1)


def test_a_value_is_one_line_for_every_reader(tmp_path, out):
    rows = write(tmp_path / "rows.jsonl", ["x"])
    run_jsonl(generator(Literal["a\u2028b\x85c\u2029d"]), rows, out)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1
    assert read(out)[0]["value"] == "a\u2028b\x85c\u2029d"


@pytest.mark.parametrize("options", [{"num_beams": 3}, {"sampling": "aligned", "seed": 3}])
def test_rows_are_done_as_the_generator_says(rows, out, options):
    made = Generator(Literal["a", "b", "ab"], RandomLM(WORDS), **options)
    run_jsonl(made, rows, out)
    for line in read(out):
        i = line["row"]
        seed = 3 + i if "seed" in options else None
        assert line["value"] == made.run(f"prompt {i}", seed=seed).text


def test_text_that_is_no_json_is_written_as_text(rows, out):
    run_jsonl(generator(Literal["1", "2"]), rows, out)
    assert {type(line["value"]) for line in read(out)} == {str}


def test_an_output_of_other_rows_or_another_schema_is_left_alone(rows, out):
    run_jsonl(generator(), rows, out)
    before = out.read_bytes()
    with pytest.raises(OptionError, match="another row or schema"):
        run_jsonl(generator(bool), rows, out)
    write(rows, ["something else"])
    with pytest.raises(OptionError, match="another row or schema"):
        run_jsonl(generator(), rows, out)
    assert out.read_bytes() == before
    out.write_text("my notes\n", encoding="utf-8")
    with pytest.raises(OptionError, match=r"line 1 .* not written by structgen"):
        run_jsonl(generator(), rows, out)
    assert out.read_text(encoding="utf-8") == "my notes\n"


def test_a_file_of_someone_else_keeps_its_last_line(rows, out):
    for content in ("one line", "two\nlines", '{"row": 0}\nhalf a li', "[1, 2]"):
        out.write_text(content, encoding="utf-8")
        with pytest.raises(OptionError, match="not written by structgen"):
            run_jsonl(generator(), rows, out)
        assert out.read_text(encoding="utf-8") == content


def test_the_input_is_never_the_output(rows, tmp_path):
    before = rows.read_bytes()
    with pytest.raises(OptionError, match="is the input"):
        run_jsonl(generator(), rows, rows)
    with pytest.raises(OptionError, match="a folder, or in none"):
        run_jsonl(generator(), rows, tmp_path / "missing" / "out.jsonl")
    assert rows.read_bytes() == before


def test_strange_rows_end_as_errors_of_their_own(tmp_path, out):
    rows = tmp_path / "rows.jsonl"
    lines = [
        '{"prompt": [{"role": 5, "content": "x"}]}',
        "[" * 100_000,
        '{"prompt": "x", "id": NaN}',
        '{"prompt": "b", "id": "\\ud800"}',
    ]
    rows.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run_jsonl(generator(), rows, out) == RunReport(1, 3, 0)
    assert {line["row"]: line.get("id") for line in read(out)}[3] == "\ud800"
    out.write_text('{"row": 1e999, "key": "x"}\n', encoding="utf-8")
    with pytest.raises(OptionError, match="not written by structgen"):
        run_jsonl(generator(), rows, out)


def test_two_runs_cannot_write_to_one_file(rows, out):
    import fcntl

    with out.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OptionError, match="another run is writing"):
            run_jsonl(generator(), rows, out)


def test_a_missing_input_is_named(tmp_path, out):
    with pytest.raises(OptionError, match=r"no file .*nothing\.jsonl"):
        run_jsonl(generator(), tmp_path / "nothing.jsonl", out)
    assert not out.exists()
