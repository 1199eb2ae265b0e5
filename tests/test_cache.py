from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import cache
from structgen.cache import cache_dir, load_arrays, save_arrays
from structgen.errors import OptionError

ARRAYS = {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.zeros(0, dtype=np.uint8)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "new" / "folder"))
    return tmp_path / "new" / "folder"


def same(found: object) -> bool:
    arrays, header = found
    equal = all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    return equal and arrays.keys() == ARRAYS.keys() and header == {"x": [1, None]}


def save(key: str = "k1") -> bool:
    return save_arrays("kind", key, ARRAYS, {"x": [1, None]})


def test_what_was_saved_is_loaded_with_types_and_shapes(folder):
    assert save()
    arrays, header = load_arrays("kind", "k1")
    assert same((arrays, header))
    assert {name: (a.dtype, a.shape) for name, a in arrays.items()} == {
        name: (a.dtype, a.shape) for name, a in ARRAYS.items()
    }
    assert [path.name for path in folder.rglob("*.*")] == ["k1.safetensors"]


def test_the_files_are_safetensors(folder):
    numpy = pytest.importorskip("safetensors.numpy")
    save()
    found = numpy.load_file(folder / "kind" / "k1.safetensors")
    assert same((found, {"x": [1, None]}))


def test_only_the_user_can_read_them(folder):
    save()
    assert (folder / "kind").stat().st_mode & 0o777 == 0o700
    assert (folder / "kind" / "k1.safetensors").stat().st_mode & 0o777 == 0o600


def test_what_someone_else_wrote_is_not_read(monkeypatch, caplog):
    save()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    real = os.fstat

    def fstat(descriptor):
        status = real(descriptor)
        return os.stat_result((*status[:4], 4712, *status[5:10]))

    monkeypatch.setattr(os, "fstat", fstat)
    assert load_arrays("kind", "k1") is None
    assert "user 4712" in caplog.text


def test_arrays_can_be_asked_for_writable():
    save()
    arrays, _ = load_arrays("kind", "k1", writable=True)
    assert all(array.flags.writeable and array.flags.owndata for array in arrays.values())


def test_without_bytes_there_is_no_cache(monkeypatch):
    save()
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "0")
    assert load_arrays("kind", "k1") is None
    assert not save()
    monkeypatch.setenv("STRUCTGEN_CACHE_BYTES", "many")
    with pytest.raises(OptionError, match="'many' is not a number of bytes"):
        save()


def test_loaded_arrays_are_read_only():
    save()
    arrays, _ = load_arrays("kind", "k1")
    with pytest.raises(ValueError, match="read-only"):
        arrays["a"][0] = 1


def test_a_missing_entry_is_none_and_not_worth_a_warning(caplog):
    assert load_arrays("kind", "absent") is None
    assert not caplog.records


def test_saving_again_replaces_the_entry():
    save_arrays("kind", "k1", {"a": np.ones(3)}, {})
    save()
    assert same(load_arrays("kind", "k1"))


def test_the_environment_chooses_the_folder(folder, monkeypatch):
    assert cache_dir() == folder
    monkeypatch.delenv("STRUCTGEN_CACHE_DIR")
    assert cache_dir() == platformdirs.user_cache_path("structgen", appauthor=False)


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "a\\b", "a.b", "a\n", "é", "x" * 129])
def test_names_cannot_leave_the_folder(name):
    for kind, key in ((name, "k"), ("kind", name)):
        with pytest.raises(OptionError, match="ASCII letters and digits"):
            load_arrays(kind, key)
        with pytest.raises(OptionError):
            save_arrays(kind, key, {}, {})


def test_a_renamed_entry_is_not_taken_for_another(folder, caplog):
    save("k1")
    (folder / "kind" / "k1.safetensors").rename(folder / "kind" / "k2.safetensors")
    assert load_arrays("kind", "k2") is None
    assert "k2.safetensors" in caplog.text


def test_an_entry_of_another_format_is_rebuilt(caplog):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "FORMAT_VERSION", 0)
        save()
    assert load_arrays("kind", "k1") is None
    assert caplog.records[0].levelno == logging.WARNING


def test_pickles_are_never_loaded(folder, caplog):
    save()
    with (folder / "kind" / "k1.safetensors").open("wb") as file:
        np.savez(file, a=np.array([{"an": "object"}]), allow_pickle=True)
    assert load_arrays("kind", "k1") is None
    assert "k1.safetensors" in caplog.text
    with pytest.raises(KeyError):
        save_arrays("kind", "k1", {"a": np.array([{"an": "object"}])}, {})


@pytest.fixture(scope="module")
def entry(tmp_path_factory) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("entry")
        patch.setenv("STRUCTGEN_CACHE_DIR", str(folder))
        save()
        return (folder / "kind" / "k1.safetensors").read_bytes()


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damage_is_noticed_or_harmless(entry, tmp_path_factory, data):
    position = data.draw(st.integers(0, len(entry) - 1))
    if data.draw(st.booleans()):
        damaged = entry[:position]
    else:
        flip = data.draw(st.integers(1, 255))
        damaged = entry[:position] + bytes([entry[position] ^ flip]) + entry[position + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.getbasetemp() / "damaged"
        patch.setenv("STRUCTGEN_CACHE_DIR", str(folder))
        (folder / "kind").mkdir(parents=True, exist_ok=True)
        (folder / "kind" / "k1.safetensors").write_bytes(damaged)
        found = load_arrays("kind", "k1")
        assert found is None or same(found)
        assert save()
        assert same(load_arrays("kind", "k1"))


def test_a_folder_that_cannot_be_written_is_a_warning_if_it_was_chosen(
    tmp_path, monkeypatch, caplog
):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "file"))
    assert not save()
    assert caplog.records[0].levelno == logging.WARNING
    assert load_arrays("kind", "k1") is None


def test_the_default_folder_fails_silently(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("STRUCTGEN_CACHE_DIR")
    monkeypatch.setattr(cache, "_default_dir", lambda _: tmp_path / "file")
    with caplog.at_level(logging.DEBUG):
        assert not save()
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_a_full_disk_leaves_the_old_entry_and_no_rubbish(folder):
    save()

    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert not save_arrays("kind", "k1", {}, {})
    assert same(load_arrays("kind", "k1"))
    assert [path.name for path in (folder / "kind").iterdir()] == ["k1.safetensors"]


def test_a_read_only_folder_is_still_read(folder):
    save()
    entry = folder / "kind" / "k1.safetensors"
    os.utime(entry, (0, 0))

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "utime", denied)
        patch.setattr(tempfile, "mkstemp", lambda **_: denied())
        assert same(load_arrays("kind", "k1"))
        assert not save("k2")


def test_using_an_entry_marks_it(folder):
    save()
    entry = folder / "kind" / "k1.safetensors"
    os.utime(entry, (0, 0))
    load_arrays("kind", "k1")
    assert time.time() - entry.stat().st_mtime < 100


WORKER = """
import sys, numpy as np
from structgen.cache import load_arrays, save_arrays
for round in range(15):
    value = int(sys.argv[1]) * 1000 + round
    assert save_arrays("kind", "shared", {"a": np.full(20_000, value)}, {"value": value})
    arrays, header = load_arrays("kind", "shared")
    assert (arrays["a"] == header["value"]).all()
"""


def test_processes_that_write_the_same_entry_always_read_a_whole_one():
    run = [sys.executable, "-W", "error", "-c", WORKER]
    workers = [
        subprocess.Popen([*run, str(i)], stderr=subprocess.PIPE, text=True) for i in range(8)
    ]
    results = [(worker.communicate()[1], worker.returncode) for worker in workers]
    assert results == [("", 0)] * 8
