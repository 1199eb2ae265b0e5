"""Engines in processes of their own, called one at a time.

So a call that takes too long can be stopped, whatever it does, a crash costs one figure, and the
memory of a process is that of its engine.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

SETUP_LIMIT_S = 300.0


class Failed(Exception):
    """What was asked for did not work; the text is for the report."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker process is for."""

    engine: str
    tokenizer: str = ""
    """The path of a `tokenizer.json`; empty for the default model, which is loaded."""
    width: int | None = None
    eos: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


class Worker:
    """A process with one engine; started at the first call, and anew after a failure.

    Example: `Worker(job, limit_s=30).call("first_mask", model="Triage")`
    """

    def __init__(self, job: Job, limit_s: float) -> None:
        self.job = job
        self.limit_s = limit_s
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, operation: str, **arguments: Any) -> Any:
        """The result of one operation, see `structgen.bench.worker`.

        Raises:
            Failed: it raised, took longer than the limit, or the process died.
        """
        self.start()
        return self._ask({"operation": operation, "arguments": arguments}, self.limit_s)

    def start(self) -> None:
        """See that the process runs and its engine is set up."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "structgen.bench.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("STRUCTGEN_BENCH_VERBOSE") else subprocess.DEVNULL,
                text=True,
                env={**os.environ, **self.job.environment},
            )
            self._ask(asdict(self.job), SETUP_LIMIT_S)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ask(self, question: dict[str, Any], limit_s: float) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], limit_s)
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            status = f"the process died with status {process.returncode}"
            raise Failed(f"took longer than {limit_s:g} s" if line is None else status)
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]
