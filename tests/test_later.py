"""What is imported when it is first used."""

from __future__ import annotations

import copy
import sys
import time

import pytest

from structgen.deadline import check_deadline, deadline, uncounted
from structgen.errors import LimitError
from structgen.later import imported, later


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a module; its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        (tmp_path / "written_module.py").write_text(text)
        monkeypatch.delitem(sys.modules, "written_module", raising=False)
        return "written_module"

    yield write
    sys.modules.pop("written_module", None)


def test_a_module_is_imported_when_something_of_it_is_used(written):
    module = later(written("one = 1"))
    assert "written_module" not in sys.modules
    assert repr(module) == "<written_module, imported when it is used>"
    assert module.one == 1
    sys.modules["written_module"].one = 2
    assert module.one == 2
    with pytest.raises(AttributeError, match="written_module"):
        _ = module.two


def test_a_module_can_be_imported_where_the_wait_belongs(written):
    module = later(written("one = 1"))
    imported(module)
    assert "written_module" in sys.modules


def test_an_import_that_fails_is_tried_again(written, tmp_path):
    module = later(written("raise ImportError('not yet')"))
    with pytest.raises(ImportError, match="not yet"):
        _ = module.one
    (tmp_path / "written_module.py").write_text("one = 1  # and now it is there")
    assert module.one == 1


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_importing_takes_none_of_the_time_of_a_schema(written):
    module = later(
        written("import time\nend = time.thread_time() + 0.1\nwhile time.thread_time() < end: pass")
    )
    with deadline(0.1):
        assert module.end
        check_deadline()
        work(0.1)
        with pytest.raises(LimitError):
            check_deadline()


def test_what_is_uncounted_is_so_for_deadlines_around_it_and_begun_behind_it():
    with deadline(0.05), deadline(0.04):
        for _ in range(2):
            with uncounted():
                work(0.05)
        check_deadline()
    with deadline(0.02):
        check_deadline()
        work(0.02)
        with pytest.raises(LimitError):
            check_deadline()


def test_copies_name_the_same_module():
    module = later("json")
    assert copy.deepcopy(module).loads("1") == copy.copy(module).loads("1") == 1
