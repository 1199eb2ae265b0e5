"""The coverage-guided fuzzer runs, where its package can be installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.soak
def test_the_fuzzer_runs(tmp_path):
    pytest.importorskip("atheris", reason="atheris is not installed; it has no wheel everywhere")
    command = ["-m", "tests.fuzz.atheris_schemas", "-len_control=0", "-max_total_time=600"]
    done = subprocess.run(
        [sys.executable, *command, f"-artifact_prefix={tmp_path}/"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
