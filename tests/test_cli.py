"""The command `structgen`: what it prints, and its exit status."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from pydantic import BaseModel

import structgen
from structgen.cache import load_arrays, save_arrays
from structgen.cli import main
from structgen.testing import RandomLM, byte_vocabulary


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def run(capsys, *arguments: str) -> tuple[int, list[str]]:
    status = main(arguments)
    return status, capsys.readouterr().out.splitlines()


def fill(folder: Path) -> None:
    save_arrays("schema", "s" * 20, {"a": np.zeros(3000)}, {})
    save_arrays("mask", "m1", {"a": np.zeros(10)}, {})
    save_arrays("mask", "m2", {"a": np.zeros(10)}, {})
    then = time.time() - 7200
    os.utime(folder / "mask" / "m1.safetensors", (then, then))


def test_path(capsys, folder):
    assert run(capsys, "cache", "path") == (0, [str(folder)])


def test_ls(capsys, folder):
    fill(folder)
    status, lines = run(capsys, "cache", "ls")
    assert status == 0
    assert lines[0] == f"{folder}, at most 1.0 GiB"
    assert [line.split()[:2] for line in lines[1:]] == [
        ["vocabulary", "0"], ["schema", "1"], ["mask", "2"]
    ]  # fmt: skip
    assert "KiB" in lines[2]
    assert lines[3].endswith("used 0 s ago, the oldest 2 h ago")


def test_ls_of_a_kind(capsys, folder):
    fill(folder)
    _, lines = run(capsys, "cache", "ls", "--kind", "mask")
    assert [line.split()[0] for line in lines[1:]] == ["m1.safetensors", "m2.safetensors", "mask"]
    assert "2 h ago" in lines[1]


def test_ls_of_nothing(capsys, folder):
    folder.rmdir()
    status, lines = run(capsys, "cache", "ls")
    assert (status, len(lines)) == (0, 4)


def test_clear_of_a_kind(capsys, folder):
    fill(folder)
    status, lines = run(capsys, "cache", "clear", "--kind", "mask")
    assert status == 0
    assert len(lines) == 1
    assert lines[0].startswith("removed 2 of kind mask, ")
    assert load_arrays("schema", "s" * 20) is not None


def test_clear(capsys, folder):
    fill(folder)
    (folder / "models").mkdir()
    status, lines = run(capsys, "cache", "clear")
    assert (status, len(lines)) == (0, 3)
    assert list(folder.rglob("*.safetensors")) == []
    assert (folder / "models").exists(), "a converted model is not cheap to make"


def test_errors(capsys, folder, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "lots")
    assert main(["cache", "ls"]) == 1
    assert capsys.readouterr().err.startswith("structgen: STRUCTGEN_CACHE_BYTES='lots' is not")
    for wrong in ([], ["cache"], ["cache", "burn"], ["cache", "ls", "--kind", "models"]):
        with pytest.raises(SystemExit) as stopped:
            main(wrong)
        assert stopped.value.code == 2
    assert "invalid choice: 'models'" in capsys.readouterr().err


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "structgen", "cache", "path"],
        capture_output=True, text=True, check=True, cwd=Path(structgen.__file__).parents[1],
    )  # fmt: skip
    assert done.stdout.strip() == os.environ["STRUCTGEN_CACHE_DIR"]


# structgen generate


class Pick(BaseModel):
    which: Literal["a", "b"]


@pytest.fixture
def random_lm(monkeypatch):
    lm = RandomLM(byte_vocabulary(), 4)
    monkeypatch.setattr("structgen.api.default_lm", lambda: lm)
    return lm


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('"one"\n"two"\n"three"\n', encoding="utf-8")
    return str(path)


def test_generate_writes_a_value_a_line(random_lm, rows, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    call = ["generate", "--schema", "tests.test_cli:Pick", "--in", rows, "--out", str(out)]
    assert main([*call, "--seed", "3"]) == 0
    assert "3 values and 0 errors written, 0 rows were there" in capsys.readouterr().out
    values = [json.loads(line)["value"] for line in out.read_text(encoding="utf-8").splitlines()]
    assert all(Pick.model_validate(value) for value in values)
    assert main([*call, "--seed", "3"]) == 0
    assert "0 values and 0 errors written, 3 rows were there" in capsys.readouterr().out


def test_generate_takes_a_json_schema(random_lm, rows, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"enum": [1, 2, null]}', encoding="utf-8")
    out = tmp_path / "out.jsonl"
    assert main(["generate", "--schema", str(schema), "--in", rows, "--out", str(out)]) == 0
    for line in out.read_text(encoding="utf-8").splitlines():
        assert json.loads(line)["value"] in (1, 2, None)


def test_rows_that_fail_show_in_the_exit_status(random_lm, tmp_path):
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text('"one"\n3\n', encoding="utf-8")
    call = ["generate", "--schema", "tests.test_cli:Pick", "--in", str(source), "--out", str(out)]
    assert main(call) == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = 1\n1 / 0\n", "raised ZeroDivisionError: division by zero ({file}, line 2)"),
        ("import sys\nsys.exit(0)\n", "raised SystemExit: 0 ({file}, line 2)"),
        ("class X(:\n", "raised SyntaxError: invalid syntax"),
        (
            "import no_such_package\n",
            "raised ModuleNotFoundError: No module named 'no_such_package' ({file}, line 1)",
        ),
        (
            "def __getattr__(name):\n    raise OSError('lazy ' + name)\n",
            "raised OSError: lazy X ({file}, line 2)",
        ),
    ],
)
def test_a_module_that_fails_is_named(
    random_lm, rows, tmp_path, capsys, monkeypatch, caplog, code, told
):
    name = f"failing_{abs(hash(code))}"
    file = tmp_path / f"{name}.py"
    file.write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    caplog.set_level(logging.DEBUG, "structgen")
    call = ["generate", "--schema", f"{name}:X", "--in", rows, "--out", str(tmp_path / "out")]
    assert main(call) == 1
    error = capsys.readouterr().err
    told = told.format(file=file)
    assert error.startswith(f"structgen: --schema {name}:X: importing {name} {told}")
    assert "Traceback" not in error
    assert "Traceback" in caplog.text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("tests.test_cli:Nothing", "Nothing"),
        ("no.such.module:X", "No module named"),
        ("Pick", "neither module:Name nor a .json file"),
        ("missing.json", "No such file"),
    ],
)
def test_a_schema_that_is_not_there_is_named(random_lm, rows, tmp_path, capsys, schema, message):
    call = ["generate", "--schema", schema, "--in", rows, "--out", str(tmp_path / "out.jsonl")]
    assert main(call) == 1
    assert message in capsys.readouterr().err
    assert random_lm.chunks == []
