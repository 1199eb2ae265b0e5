"""One call for many values of different types: a batch may mix schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Unpack, cast, overload

from structgen.api import GeneratorOptions, default_lm, with_sets
from structgen.batch import (
    BATCH_SIZE,
    OnError,
    check_batch_options,
    in_order,
    outcomes,
)
from structgen.errors import OptionError
from structgen.generator import Generator
from structgen.prompts import Prompt
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel
from structgen.schema.load import load_schema


@overload
def generate_many(
    pairs: Iterable[tuple[Any, Prompt]],
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: Literal["raise"] = "raise",
    progress: bool | None = None,
    **options: Unpack[GeneratorOptions],
) -> list[Any]: ...
@overload
def generate_many(
    pairs: Iterable[tuple[Any, Prompt]],
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: Literal["return"],
    progress: bool | None = None,
    **options: Unpack[GeneratorOptions],
) -> list[Any | Exception]: ...
def generate_many(
    pairs: Iterable[tuple[Any, Prompt]],
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: OnError = "raise",
    progress: bool | None = None,
    **options: Unpack[GeneratorOptions],
) -> list[Any]:
    """A value for each pair of a schema and a prompt, in their order; one batch mixes them.

    Example: `generate_many([(Triage, "My card ..."), (Person, "Ada is 36.")])`

    Args:
        lm: a language model, see `structgen.load`; None for the default one.
        batch_size: rows that the model reads at a time; a row that is finished makes room.
        on_error: "return" puts an error in the place of a value, "raise" raises the first. What is
            wrong with a schema is raised in any case, before anything is generated.
        progress: a progress bar; None shows one where standard error is a terminal.
        options: those of `Generator`, but for `num_beams` and `sampling`; row i is seeded with
            `seed + i`.
    """
    found = generate_as_completed(pairs, lm=lm, batch_size=batch_size, progress=progress, **options)
    check_batch_options(batch_size, on_error, progress)
    results = in_order(found, on_error)
    return [r if isinstance(r, Exception) else r.value for r in results]


def generate_as_completed(
    pairs: Iterable[tuple[Any, Prompt]],
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    progress: bool | None = None,
    **options: Unpack[GeneratorOptions],
) -> Iterator[tuple[int, Generation[Any] | Exception]]:
    """(index, result or error) of each pair as they finish; see `generate_many`."""
    check_batch_options(batch_size, "return", progress)
    if options.get("num_beams", 1) != 1:
        raise OptionError(
            f"num_beams={options.get('num_beams')!r} is not for batches of several schemas; use "
            "Generator(schema, lm, num_beams=...).batch(prompts)"
        )
    if options.get("sampling", "masked") != "masked":
        raise OptionError(
            f"sampling={options.get('sampling')!r} is not for batches of several schemas; use "
            "Generator(schema, lm, sampling=...).batch(prompts)"
        )
    rows = _checked_pairs(pairs)
    if lm is None:
        for schema, _ in rows:
            load_schema(schema)
        lm = default_lm()
    generators = _Generators(lm, options)
    each = [generators.of(schema) for schema, _ in rows]  # faults show before anything runs
    jobs = (
        generator.job_or_refusal(index, prompt, None, None)
        for index, (generator, (_, prompt)) in enumerate(zip(each, rows, strict=True))
    )
    return outcomes(lm, jobs, batch_size=batch_size, progress=progress, total=len(rows))


def _checked_pairs(pairs: object) -> list[tuple[Any, Prompt]]:
    """The pairs, refused where they are none."""
    if not isinstance(pairs, Iterable):
        raise OptionError(f"pairs must be (schema, prompt) tuples, got {pairs!r}")
    rows: list[Any] = list(cast("Iterable[Any]", pairs))
    for index, row in enumerate(rows):
        if not isinstance(row, tuple | list) or len(cast("tuple[Any, ...]", row)) != 2:
            raise OptionError(f"entry {index} must be a (schema, prompt) tuple, got {row!r}")
    return rows


class _Generators:
    """One generator for each schema."""

    def __init__(self, lm: LanguageModel, options: GeneratorOptions) -> None:
        self._lm = lm
        self._options = with_sets(options)
        # A schema is kept with its generator, so that no other one can get its id.
        self._known: dict[int, tuple[Any, Generator[Any]]] = {}

    def of(self, schema: Any) -> Generator[Any]:
        known = self._known.get(id(schema))
        if known is None:
            made = Generator[Any](schema, self._lm, **self._options)
            known = self._known[id(schema)] = schema, made
        return known[1]
