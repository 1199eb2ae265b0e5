"""Many jobs: their order, errors and progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tqdm import tqdm

from structgen.errors import OptionError
from structgen.later import later
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel

if TYPE_CHECKING:
    import structgen.jobs as work
else:
    work = later("structgen.jobs")

OnError: TypeAlias = Literal["raise", "return"]

BATCH_SIZE = 8


def outcomes(
    lm: LanguageModel,
    jobs: Iterator[work.Job[Any] | work.Refused],
    *,
    batch_size: int,
    progress: bool | None,
    total: int | None,
) -> Iterator[tuple[int, Generation[Any] | Exception]]:
    """(index, result or error) of each job, in finishing order.

    Args:
        progress: None shows a bar where standard error is a terminal.
        total: how many jobs there are, if that is known.
    """
    events = work.drive(lm, jobs, batch_size=batch_size)
    found = ((event.index, event.result) for event in events if isinstance(event, work.Outcome))
    return shown(found, progress, total)


def shown(
    found: Iterable[tuple[int, Generation[Any] | Exception]],
    progress: bool | None,
    total: int | None,
) -> Iterator[tuple[int, Generation[Any] | Exception]]:
    """The same results, with a progress bar."""
    hidden = not sys.stderr.isatty() if progress is None else not progress
    yield from tqdm(found, total=total, disable=hidden, unit="value")


def in_order(
    finished: Iterable[tuple[int, Generation[Any] | Exception]], on_error: OnError
) -> list[Generation[Any] | Exception]:
    """All results by index; the first error is raised where errors are not to be returned."""
    results: dict[int, Generation[Any] | Exception] = {}
    for index, result in finished:
        if on_error == "raise" and isinstance(result, Exception):
            result.add_note(f"structgen: this was prompt {index} of the batch")
            raise result
        results[index] = result
    return [results[index] for index in sorted(results)]


def length(items: object) -> int | None:
    """How many there are, None of an iterator."""
    return len(items) if isinstance(items, Sized) else None


def check_batch_options(batch_size: object, on_error: object, progress: object) -> None:
    """Refuse options of a batch that are out of their range."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise OptionError(f"batch_size={batch_size!r} must be a whole number above 0")
    if on_error not in ("raise", "return"):
        raise OptionError(f"on_error={on_error!r} must be 'raise' or 'return'")
    if progress is not None and not isinstance(progress, bool):
        raise OptionError(f"progress={progress!r} must be True, False or None")


def per_prompt(
    name: str, value: int | Sequence[int] | None, n_prompts: int | None
) -> Iterator[int | None]:
    """An option for each prompt, from one for all or from a sequence of one each."""
    if name == "seeds" and value is not None and not isinstance(value, Sequence):
        raise OptionError(f"seeds={value!r} must be a list of one seed for each prompt")
    if not isinstance(value, Sequence):
        while True:
            yield value
    if n_prompts is not None and len(value) != n_prompts:
        raise OptionError(f"{name} has {len(value)} entries for {n_prompts} prompts; match them")
    yield from value
