"""A value while it is being written: tokens, text and partial values, one event after another."""

from __future__ import annotations

import asyncio
import codecs
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar, cast

from structgen.errors import OptionError, UsageError
from structgen.jobs import Job, Outcome, drive
from structgen.partial import PartialText, PartialValues
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel
from structgen.tokens.vocabulary import Vocabulary

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class StreamEvent(Generic[T_co]):
    """What is new, and what there is so far.

    Example: `StreamEvent(token_ids=(34,), delta=' "', text='{"team": "')`
    """

    token_ids: tuple[int, ...]
    """Tokens that are new; those of all events together are the value's, end tokens left out."""
    delta: str
    """Characters that are complete with these tokens; a token may hold a part of one."""
    text: str
    """All of them so far."""
    restarted: bool = False
    """Validation rejected what was written; another attempt begins, with an empty text."""
    result: Generation[T_co] | None = None
    """The finished generation, validated as a whole: with the last event and no other."""
    _values: PartialText | None = field(default=None, repr=False, compare=False)

    @property
    def partial(self) -> Any:
        """The value so far, None before there is anything; see docs/streaming.md.

        It is made when it is asked for. Parts that have closed are shared with later ones.
        """
        if self.result is not None:
            return self.result.value
        return None if self._values is None else self._values.at(self.text)


class Stream(Iterator[StreamEvent[T]]):
    """The events of one generation, each made when it is asked for.

    What the model remembers is freed at the end, by `close`, by leaving a `with` block, and as soon
    as nobody refers to the stream any more.

    Example: `for event in generator.stream("..."): print(event.delta, end="")`

    Raises (while iterating):
        ValidationFailedError: a Python validator rejected the value of every attempt.
    """

    def __init__(self, job: Job[T], lm: LanguageModel, values: PartialValues) -> None:
        self.retries = job.retries
        self._events = _events(job, lm, values)
        self._stepping = threading.Lock()
        self._closed = False
        self._result: Generation[T] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent[T]:
        with self._stepping:
            event = None if self._closed else next(self._events, None)
            if event is not None and event.result is not None:
                self._result = event.result
        if self._closed:  # by another thread, which could not close what was running
            self.close()
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free what the model remembers; there are no more events.

        Another thread may call it: what is running there ends after its forward pass.
        """
        self._closed = True
        if self._stepping.acquire(blocking=False):
            try:
                self._events.close()
            finally:
                self._stepping.release()

    @property
    def result(self) -> Generation[T]:
        """The finished generation, with the validated value.

        Raises:
            UsageError: the stream is not at its end, or there is no result.
        """
        if self._result is None:
            raise UsageError(
                "the stream has no result: it is not at its end yet, was closed early or failed; "
                "take all of its events first, for instance with finish()"
            )
        return self._result

    def finish(self) -> Generation[T]:
        """Let the value be finished, and return it with its text, counts, timings and scores."""
        for _ in self:
            pass
        return self.result

    def texts(self) -> Iterator[str]:
        """The text, piece by piece.

        Raises:
            OptionError: there may be further attempts, and text that was passed on stays.
        """
        check_one_attempt(self.retries)
        return (event.delta for event in self if event.delta)


def check_one_attempt(retries: int) -> None:
    """Refuse a stream of text alone where a part of it may have to be taken back."""
    if retries:
        raise OptionError(
            f"texts() with retries={retries} could not take back the text of a rejected attempt; "
            "iterate over the events, and start anew where event.restarted is True"
        )


@dataclass(slots=True)
class _Attempt:
    """The text of one attempt."""

    vocabulary: Vocabulary
    values: PartialText
    text: str = ""
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")()
    )

    n_bytes: int = 0

    def take(self, token_id: int, healed: int) -> StreamEvent[Any]:
        """The event of a token; the first `healed` bytes of an attempt belong to the prompt."""
        data = self.vocabulary.bytes_of(token_id) or b""
        delta = self.decoder.decode(data[max(healed - self.n_bytes, 0) :])
        self.n_bytes += len(data)
        self.text += delta
        return StreamEvent((token_id,), delta, self.text, _values=self.values)


def _events(
    job: Job[T], lm: LanguageModel, values: PartialValues
) -> Generator[StreamEvent[T], None, None]:
    """The events of a job; closing it frees the model's cache."""
    n_attempts, attempt = 0, _Attempt(lm.vocabulary, values.of_text())
    for event in drive(lm, iter([job]), batch_size=1):
        if isinstance(event, Outcome):
            result = cast("Generation[T]", event.generation())
            yield StreamEvent((), "", result.text, result=result)
            return
        if len(job.attempts) > n_attempts:
            n_attempts, attempt = len(job.attempts), _Attempt(lm.vocabulary, values.of_text())
            yield StreamEvent((), "", "", restarted=True, _values=attempt.values)
        if not event.end:
            yield attempt.take(event.token_id, job.healed)


class AsyncStream(AsyncIterator[StreamEvent[T]]):
    """The events of one generation, each made in a worker thread when it is awaited.

    What the model remembers is freed as by `Stream`, and when the task that waits for an event is
    cancelled: the forward pass that is running is finished before, so that nothing goes on behind
    the caller's back.

    Example: `async for event in generator.astream("..."): print(event.delta, end="")`

    Args:
        start: makes the stream, in a worker thread at the first event.
    """

    def __init__(self, start: Callable[[], Stream[T]]) -> None:
        self._start = start
        self._stream: Stream[T] | None = None
        self._stepping = threading.Lock()
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent[T]:
        try:
            event = await in_thread(self._step)
        except asyncio.CancelledError:
            self._close()
            raise
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Free what the model remembers, after the step that is running; no more events come."""
        await in_thread(self._close)

    @property
    def result(self) -> Generation[T]:
        """The finished generation, see `Stream.result`."""
        if self._stream is None:
            raise UsageError("the stream has no result: it has not begun")
        return self._stream.result

    async def finish(self) -> Generation[T]:
        """Let the value be finished, and return it with its text, counts, timings and scores."""
        async for _ in self:
            pass
        return self.result

    def texts(self) -> AsyncIterator[str]:
        """The text, piece by piece, see `Stream.texts`."""
        return _AsyncTexts(self)

    def _step(self) -> StreamEvent[T] | None:
        """The next event, None at the end."""
        with self._stepping:
            if self._closed:
                return None
            if self._stream is None:
                self._stream = self._start()
            return next(self._stream, None)

    def _close(self) -> None:
        with self._stepping:
            self._closed = True
            if self._stream is not None:
                self._stream.close()

    def check_one_attempt(self) -> None:
        """Refuse to stream text alone where a part of it may have to be taken back."""
        if self._stream is not None:
            check_one_attempt(self._stream.retries)


class _AsyncTexts(AsyncIterator[str]):
    """No generator: one that is left early would have to wait for the event loop to close it."""

    def __init__(self, stream: AsyncStream[Any]) -> None:
        self._stream = stream

    async def __anext__(self) -> str:
        async for event in self._stream:
            self._stream.check_one_attempt()
            if event.delta:
                return event.delta
        raise StopAsyncIteration


async def in_thread(step: Callable[[], R]) -> R:
    """Run something in a worker thread; a cancellation waits until it has ended."""
    context, steps = contextvars.copy_context(), [step]
    running = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(_taken, steps))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                continue  # the first one is raised in the end
        if not running.cancelled():
            running.exception()  # looked at, lest the event loop report it
        raise
    finally:
        del running  # else an error would hold this frame, which holds the error


def _taken(steps: list[Callable[[], R]]) -> R:
    """Do what is in the list, and forget it before the result is known.

    Else the worker thread would hold on to it a moment longer than who waits for the result.
    """
    return steps.pop()()
