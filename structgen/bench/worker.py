"""The process of one engine: reads a job, then operations, a JSON line each, and answers each.

What engines print to standard output goes to standard error, so that the answers stay readable.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TextIO

from structgen.bench.bare import BARE_MIB
from structgen.bench.engines import ENGINES, Engine, Setup
from structgen.bench.engines.base import Grammar, Walker, allows
from structgen.bench.measure import SLOW_S, in_turns, resident_mib, timed
from structgen.bench.workload import MODELS, token_walks
from structgen.bench.writing import Writer, default_setup
from structgen.compiler import cache_info
from structgen.compiler import compile as compile_schema
from structgen.options import Options
from structgen.tokens.vocabulary import Vocabulary
from structgen.warming import warm_up

MODEL_BY_NAME = {model.__name__: model for model in MODELS}


class Desk:
    """An engine, the workload, and the operations on them."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.lm: Any = None
        if job["tokenizer"]:
            self.setup = _setup(job)
        else:
            self.lm, self.setup = default_setup()
        # Kernels are loaded from numba's cache at their first use, once a process.
        compile_schema(bool, self.setup.vocabulary).session().mask()
        vocabulary_mib = resident_mib()
        self.engine: Engine = ENGINES[job["engine"]](self.setup)
        # The vocabulary is a part of the engine only where the engine is structgen.
        is_ours = job["engine"] == "structgen"
        self.set_up_mib = resident_mib() - (BARE_MIB if is_ours else vocabulary_mib)
        self.walks = token_walks(self.setup.vocabulary)
        self.grammars: dict[str, Grammar] = {}
        self.writers: dict[str, Writer] = {}
        self.ready_mib = resident_mib()

    def operations(self) -> dict[str, Callable[..., Any]]:
        """What can be asked for, by name."""
        return {
            "first_mask": self.first_mask,
            "walk": self.walk,
            "fill_rows": self.fill_rows,
            "memory": self.memory,
            "store": self.store,
            "loads": lambda: cache_info().schemas.loads,
            "prepare": self.prepare,
            "write": self.write,
            "write_free": self.write_free,
        }

    def first_mask(self, model: str, *, forget: bool, times: int) -> list[dict[str, float]]:
        """Seconds from the schema to its first mask, again and again; see `_first_mask`."""
        found: list[dict[str, float]] = []
        while len(found) < times and (not found or found[0]["first_mask"] < SLOW_S):
            found.append(self._first_mask(model, forget))
        return found

    def _first_mask(self, model: str, forget: bool) -> dict[str, float]:
        """Seconds from the class to its first mask, and what Pydantic takes of them for a schema.

        `processor` is the first on all threads. The JSON Schema is written once more to time it,
        for engines that are given one.
        """
        if forget:
            self.grammars.clear()
            self.engine.forget(everything=True)
        source = MODEL_BY_NAME[model]
        schema_s = timed(source.model_json_schema) if self.engine.needs_json_schema else 0.0
        begun = perf_counter()
        busy = process_time()
        walker = self.engine.compile(source).start()
        walker.fill()
        busy = process_time() - busy
        ended = perf_counter()
        _check(walker, self.walks[model][0], 0)
        return {
            "first_mask": ended - begun, "json_schema": schema_s, "processor": busy
        }  # fmt: skip

    def walk(self, model: str, *, new: bool, times: int) -> list[list[float]]:
        """Seconds of each mask with the step behind it along the values of a model, several times.

        Args:
            new: the model is compiled anew, so that all its states are met for the first time.
        """
        found: list[list[float]] = []
        while len(found) < times and (not found or sum(found[0]) < SLOW_S):
            if new:
                self.grammars.pop(model, None)
                self.engine.forget(everything=False)
            grammar = self._grammar(model)
            seconds: list[float] = []
            for token_ids in self.walks[model]:
                _walk(grammar.start(), token_ids, seconds)
            found.append(seconds)
        return found

    def fill_rows(self, models: list[str], *, n_rows: int, rounds: int) -> list[float]:
        """Seconds to fill the masks of so many sequences that stand at different places."""
        walkers = list(islice(self._standing(models, n_rows), n_rows))
        fill = self.engine.filler(walkers)
        fill()
        return in_turns({"fill": fill}, rounds)["fill"]

    def _standing(self, models: list[str], n_rows: int) -> Iterator[Walker]:
        """Sequences inside of values, whose states were all met before."""
        for number in range(n_rows):
            model = models[number % len(models)]
            token_ids = self.walks[model][0]
            walker = self._grammar(model).start()
            for token_id in token_ids[: 7 * number % len(token_ids)]:
                walker.fill()
                walker.take(token_id)
            walker.fill()
            yield walker

    def memory(self) -> dict[str, float]:
        """MiB of the engine with its vocabulary, and of all models that were walked."""
        grown = max(resident_mib() - self.ready_mib, 0.0)
        return {"set_up": self.set_up_mib, "models": grown}

    def store(self) -> None:
        """Put all models and their masks on disk."""
        warm_up(MODELS, self.setup.vocabulary, Options())

    def prepare(self, task: str) -> None:
        """Compile what the default model is to write."""
        self.writers[task] = Writer(task, self.lm, self.engine)

    def write(self, task: str, *, batch: int) -> dict[str, Any]:
        """Let the default model write objects, see `Writer.write`."""
        return self.writers[task].write(batch)

    def write_free(self, task: str, *, lengths: list[int], batch: int, even: bool) -> float:
        """Let the default model write as it likes, see `Writer.write_free`."""
        return self.writers[task].write_free(lengths, batch, even=even)

    def _grammar(self, model: str) -> Grammar:
        if model not in self.grammars:
            self.grammars[model] = self.engine.compile(MODEL_BY_NAME[model])
        return self.grammars[model]


def _setup(job: dict[str, Any]) -> Setup:
    path = Path(job["tokenizer"])
    vocabulary = Vocabulary.from_tokenizer(path, job["width"], eos_token_ids=job["eos"] or None)
    return Setup(vocabulary, path.read_text(encoding="utf-8"))


def _walk(walker: Walker, token_ids: list[int], seconds: list[float]) -> None:
    """Add the seconds of each mask and step; the look at the mask in between is not counted."""
    clock = perf_counter
    for position, token_id in enumerate(token_ids):
        begun = clock()
        walker.fill()
        filled = clock()
        _check(walker, token_ids, position)
        resumed = clock()
        walker.take(token_id)
        taken = clock()
        seconds.append(filled - begun + taken - resumed)


def _check(walker: Walker, token_ids: list[int], position: int) -> None:
    """Refuse an engine that does not allow a token of a valid value."""
    walker.check()
    if not allows(walker.row, token_ids[position]):
        raise ValueError(f"rejects a valid value at token {position} of {len(token_ids)}")


def serve(questions: TextIO, answers: TextIO) -> None:
    """Answer until there are no more questions; whatever goes wrong is an answer too."""
    operations: dict[str, Callable[..., Any]] = {}
    for line in questions:
        question = json.loads(line)
        try:
            if operations:
                result = operations[question["operation"]](**question["arguments"])
            else:
                operations, result = Desk(question).operations(), None
            answer = {"result": result}
        except Exception as error:  # peers raise all kinds, and the report shows them
            answer = {"error": _shown(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _shown(error: Exception) -> str:
    """One short line."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text if len(text) <= 160 else text[:159] + "…"


def main() -> None:
    """Serve on standard input and output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
