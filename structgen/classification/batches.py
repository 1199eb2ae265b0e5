"""What classifiers of one text share: many texts, in a list or one by one."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

from tqdm import tqdm

from structgen.batch import BATCH_SIZE, OnError, check_batch_options
from structgen.batch import length as count_of
from structgen.classification.prompting import Place, refuse_text
from structgen.errors import UsageError

R_co = TypeVar("R_co", covariant=True)

Part: TypeAlias = Sequence[Place]
"""Texts that are read together."""


class ManyTexts(ABC, Generic[R_co]):
    """Finds an `R_co` for each of many texts."""

    @overload
    def many(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: Literal["raise"] = "raise",
        progress: bool | None = None,
    ) -> list[R_co]: ...
    @overload
    def many(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: Literal["return"],
        progress: bool | None = None,
    ) -> list[R_co | UsageError]: ...
    @overload
    def many(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: OnError,
        progress: bool | None = None,
    ) -> list[R_co] | list[R_co | UsageError]: ...
    def many(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> list[Any]:
        """What is found for each text, in their order.

        Args:
            batch_size: texts that the model reads, or writes about, at a time.
            on_error: "return" puts the error of a text that cannot be asked about, such as one
                that is too long, in the place of its result; "raise" raises the first. Errors of
                the model or of the labels, which all texts share, are always raised.
            progress: a progress bar; None shows one where standard error is a terminal.
        """
        options: dict[str, Any] = {"on_error": on_error, "progress": progress}
        return list(self.each(texts, batch_size=batch_size, **options))

    @overload
    def each(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: Literal["raise"] = "raise",
        progress: bool | None = None,
    ) -> Iterator[R_co]: ...
    @overload
    def each(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: Literal["return"],
        progress: bool | None = None,
    ) -> Iterator[R_co | UsageError]: ...
    def each(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = BATCH_SIZE,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> Iterator[Any]:
        """The same one by one, as they are ready; texts are taken when there is room for them."""
        check_batch_options(batch_size, on_error, progress)
        refuse_text(texts)
        yield from self._found(texts, batch_size, on_error, progress)

    @abstractmethod
    def _found(
        self, texts: Iterable[str], batch_size: int, on_error: OnError, progress: bool | None
    ) -> Iterator[R_co | UsageError]:
        """What is found for each text; where errors are raised, none is among them."""


def parts(texts: Iterable[str], batch_size: int, progress: bool | None) -> Iterator[Part]:
    """The texts, some at a time; the progress bar moves when the next ones are asked for."""
    hidden = not sys.stderr.isatty() if progress is None else not progress
    with tqdm(total=count_of(texts), disable=hidden, unit="text") as bar:
        source: Iterator[Place] = enumerate(texts)
        while part := list(islice(source, batch_size)):
            yield part
            bar.update(len(part))
