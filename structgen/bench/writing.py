"""The default model writes objects, held to a schema by one of the engines, or as it likes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from structgen.bench.engines.base import Engine, Grammar, Setup
from structgen.bench.tasks import MAX_NEW_TOKENS, PROMPTS, TASKS

if TYPE_CHECKING:
    from structgen.generator import Generator
    from structgen.runtime.hf import HFModel


def default_setup() -> tuple[HFModel, Setup]:
    """The default model in float32, and its vocabulary."""
    from structgen.runtime.hf import load

    lm = load(dtype="float32")
    backend: Any = getattr(lm.tokenizer, "backend_tokenizer")  # noqa: B009  # not in its types
    return lm, Setup(lm.vocabulary, backend.to_str())


class Writer:
    """Writes the objects of one task with one engine.

    structgen writes with its own loop. A peer is a logits processor in transformers' `generate`,
    the way it is used there. It gets the same prompts, and structgen's kernel applies its masks:
    some kernels of peers are compiled by torch first, which would take longer than the writing.
    """

    def __init__(self, task: str, lm: HFModel, engine: Engine) -> None:
        from structgen.generator import Generator

        self._lm = lm
        self._generator: Generator[Any] = Generator(TASKS[task], lm, max_new_tokens=MAX_NEW_TOKENS)
        self._prompts = [lm.encode_prompt(self._generator.render(prompt)) for prompt in PROMPTS]
        self._model = TASKS[task]
        self._grammar = engine.compile(self._model)
        self._ours = engine.name == "structgen"

    def write(self, batch: int) -> dict[str, Any]:
        """Write an object for each of the prompts, of 3 if they are written one by one.

        Returns seconds, the tokens of each object, forward passes and how many objects are valid;
        of structgen also the share of the time that masks took.
        """
        return self._write(batch) if self._ours else self._write_by_processor(batch)

    def _write(self, batch: int) -> dict[str, Any]:
        prompts = PROMPTS[: n_objects(batch)]
        begun = perf_counter()
        found = self._generator.as_completed(prompts, batch_size=batch, progress=False)
        runs = [run for _, run in found if not isinstance(run, Exception)]
        seconds = perf_counter() - begun
        mask_s = sum(run.timings.mask_s for run in runs) / batch
        return {
            "seconds": seconds,
            "tokens": [run.usage.completion_tokens for run in runs],
            "passes": sum(run.usage.forward_passes for run in runs),
            "valid": len(runs),
            "mask_share": mask_s / seconds,
        }

    def _write_by_processor(self, batch: int) -> dict[str, Any]:
        rows = self._prompts[: n_objects(batch)]
        written: list[list[int]] = []
        begun = perf_counter()
        for first in range(0, len(rows), batch):
            part = rows[first : first + batch]
            processor = _Processor(self._grammar, len(part), self._lm)
            output = self._generate(part, MAX_NEW_TOKENS, logits_processor=[processor])
            written += [_before_end(row, self._lm) for row in output]
        seconds = perf_counter() - begun
        return {
            "seconds": seconds,
            "tokens": [len(token_ids) for token_ids in written],
            "passes": sum(len(token_ids) + 1 for token_ids in written),
            "valid": sum(map(self._is_valid, written)),
        }

    def write_free(self, lengths: Sequence[int], batch: int, *, even: bool) -> float:
        """Seconds to write plain text to the same prompts, each of the length of its object.

        In a batch `generate` goes on until the longest row is done. With `even` all rows have the
        mean length instead, the same number of tokens altogether, and none waits for another.
        """
        rows = self._prompts[: n_objects(batch)]
        mean = round(sum(lengths) / len(lengths))
        begun = perf_counter()
        for first in range(0, len(rows), batch):
            length = mean if even else max(lengths[first : first + batch])
            self._generate(rows[first : first + batch], length, min_new_tokens=length)
        return perf_counter() - begun

    def _generate(self, rows: list[list[int]], n_tokens: int, **options: Any) -> list[list[int]]:
        """What transformers writes greedily after these prompts, with padding and end tokens."""
        import torch

        longest = max(map(len, rows))
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
        real = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        generate: Any = self._lm.model.generate
        output = generate(
            ids, attention_mask=real, max_new_tokens=n_tokens, do_sample=False, pad_token_id=0,
            eos_token_id=list(self._lm.vocabulary.eos_token_ids), **options,
        )  # fmt: skip
        return output[:, longest:].tolist()

    def _is_valid(self, token_ids: Sequence[int]) -> bool:
        try:
            self._model.model_validate_json(self._lm.vocabulary.decode(token_ids))
        except ValidationError:
            return False
        return True


class _Processor:
    """Applies an engine's masks within `generate`, rows that ended left alone."""

    def __init__(self, grammar: Grammar, n_rows: int, lm: HFModel) -> None:
        self._walkers = [grammar.start() for _ in range(n_rows)]
        self._ends = frozenset(lm.vocabulary.eos_token_ids)
        self._ended = np.zeros(n_rows, bool)
        self._started = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        from structgen.runtime.masking import apply_masks

        last = input_ids[:, -1].tolist()
        for row, walker in enumerate(self._walkers):
            if self._started and not self._ended[row]:
                self._ended[row] = last[row] in self._ends
                if not self._ended[row]:
                    walker.take(last[row])
            if not self._ended[row]:
                walker.fill()
                walker.check()
                apply_masks(scores[row : row + 1], walker.row[None])
        self._started = True
        return scores


def _before_end(token_ids: list[int], lm: HFModel) -> list[int]:
    ends = [i for i, token_id in enumerate(token_ids) if token_id in lm.vocabulary.eos_token_ids]
    return token_ids[: ends[0]] if ends else token_ids


def n_objects(batch: int) -> int:
    """Objects of one measurement."""
    return len(PROMPTS) if batch > 1 else 3
