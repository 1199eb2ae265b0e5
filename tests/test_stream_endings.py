"""However a stream ends, what the model remembers is freed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import structgen as sg
from tests.streaming import Watched, generator


def begin(events: Iterator[Any], gen: sg.Generator[Any]) -> None:
    """Take events until the model has been asked twice."""
    while len(gen.lm.chunks) < 2:
        next(events)
    assert gen.lm.remembered() == 1


STOPS: dict[str, Callable[[sg.Generator[Any]], None]] = {}


def stop(function: Callable[[sg.Generator[Any]], None]) -> Callable[[sg.Generator[Any]], None]:
    STOPS[function.__name__] = function
    return function


@stop
def closing(gen):
    stream = gen.stream("who?")
    begin(stream, gen)
    stream.close()
    assert list(stream) == []
    stream.close()


@stop
def leaving_a_block(gen):
    with gen.stream("who?") as stream:
        begin(stream, gen)


@stop
def forgetting(gen):
    begin(gen.stream("who?"), gen)


@stop
def breaking_off(gen):
    for _ in gen.stream("who?"):
        if len(gen.lm.chunks) > 1:
            break


@stop
def leaving_the_texts(gen):
    begin(gen.stream("who?").texts(), gen)


@stop
def an_error_of_the_consumer(gen):
    def consume():
        with gen.stream("who?") as stream:
            begin(stream, gen)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consume()


@stop
def reaching_the_end(gen):
    stream = gen.stream("who?")
    stream.finish()
    assert gen.lm.remembered() == 0, "while the stream is still there"


@pytest.mark.parametrize("name", STOPS)
def test_the_cache_is_freed_at_once_by(name):
    lm = Watched()
    gc.disable()  # what only a collection of cycles would free is not freed at once
    try:
        STOPS[name](generator(lm))
        assert lm.caches
        assert lm.remembered() == 0
    finally:
        gc.enable()


def test_a_stream_that_is_not_begun_can_be_closed():
    lm = Watched()
    stream = generator(lm).stream("who?")
    stream.close()
    assert list(stream) == []
    assert lm.chunks == []


def test_another_thread_may_close_a_stream_that_is_running():
    lm = Watched(delay_s=0.05)
    gen = generator(lm)
    stream = gen.stream("who?")
    begin(stream, gen)
    before = len(lm.chunks)
    stopper = threading.Timer(0.02, stream.close)
    stopper.start()
    assert len(list(stream)) <= 20
    stopper.join()
    assert len(lm.chunks) <= before + 1
    assert lm.remembered() == 0
