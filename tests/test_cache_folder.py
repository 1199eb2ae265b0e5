"""The bound on the disk store: what goes, when, and what is never touched."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from structgen.cache import load_arrays, save_arrays
from structgen.cache_folder import COUNTER, entries, remove, sweep


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def save(key: str, kind: str = "schema", n_bytes: int = 10_000) -> None:
    assert save_arrays(kind, key, {"a": np.zeros(n_bytes, np.uint8)}, {})


def names(folder) -> list[str]:
    return [entry.path.stem for entry in entries(folder)]


def age(folder, key: str, seconds: float, kind: str = "schema") -> None:
    then = time.time() - seconds
    os.utime(folder / kind / f"{key}.safetensors", (then, then))


def test_what_was_used_longest_ago_goes_first(folder):
    for index, key in enumerate("abcd"):
        save(key)
        age(folder, key, 1000 - index)
    load_arrays("schema", "a")
    assert names(folder) == ["b", "c", "d", "a"]
    assert sweep(folder, 36_000) == 1
    assert names(folder) == ["c", "d", "a"]
    assert sweep(folder, 36_000) == 0


def test_kinds_share_one_bound(folder):
    save("old", "vocabulary", 50_000)
    age(folder, "old", 100, "vocabulary")
    save("new")
    assert sweep(folder, 40_000) == 1
    assert names(folder) == ["new"]


def test_the_bound_holds_while_writing(folder, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "200000")
    for index in range(60):
        save(f"k{index}")
        total = sum(entry.n_bytes for entry in entries(folder))
        assert total <= 200_000 + 200_000 // 16 + 2 * 11_000
    assert load_arrays("schema", "k59") is not None
    assert load_arrays("schema", "k0") is None


def test_the_folder_is_not_looked_through_at_every_write(folder, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "2000000")
    for index in range(8):
        save(f"k{index}")
    assert (folder / COUNTER).stat().st_size == 8 * 3


def test_other_files_and_unfinished_ones_are_left(folder):
    (folder / "models").mkdir()
    (folder / "models" / "weights").write_bytes(bytes(100_000))
    save("k")
    for name, seconds in ((".new-a.tmp", 10), (".new-b.tmp", 10_000)):
        (folder / "schema" / name).write_bytes(bytes(1000))
        then = time.time() - seconds
        os.utime(folder / "schema" / name, (then, then))
    assert sweep(folder, 50_000) == 1
    assert sorted(path.name for path in (folder / "schema").iterdir()) == [
        ".new-a.tmp", "k.safetensors"
    ]  # fmt: skip
    assert (folder / "models" / "weights").exists()


def test_files_that_others_remove_are_no_error(folder):
    save("k")
    found = entries(folder)
    found[0].path.unlink()
    assert remove(found) == found[0].n_bytes
    assert entries(folder) == []


WORKER = """
import sys, numpy as np
from structgen.cache import load_arrays, save_arrays
for round in range(20):
    key = f"p{sys.argv[1]}r{round}"
    assert save_arrays("schema", key, {"a": np.full(2000, round)}, {"round": round})
    found = load_arrays("schema", f"p{(int(sys.argv[1]) + 1) % 8}r{round}")
    assert found is None or (found[0]["a"] == found[1]["round"]).all()
"""


def test_eight_processes_share_a_bound(folder, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "300000")
    run = [sys.executable, "-W", "error", "-c", WORKER]
    workers = [
        subprocess.Popen([*run, str(i)], stderr=subprocess.PIPE, text=True) for i in range(8)
    ]
    assert [(worker.communicate()[1], worker.returncode) for worker in workers] == [("", 0)] * 8
    total = sum(entry.n_bytes for entry in entries(folder))
    assert 100_000 < total <= 300_000 + 300_000 // 16 + 9 * 17_000
