"""Values while they are being written, one event after another, and what stops them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import structgen as sg
from structgen import api
from structgen.errors import InvalidTextError, OptionError, UsageError, ValidationFailedError
from structgen.testing import FakeLM, RandomLM, ScriptedLM, byte_vocabulary, small_vocabulary

WORDS = small_vocabulary(['{"', '":', " true", " false", "billing", "team", ", ", "</think>"])


class Triage(BaseModel):
    note: str = Field(max_length=8)
    team: Literal["billing", "technical", "sales"]
    tags: list[bool] = Field(max_length=2)


class Picky(BaseModel):
    n: int = Field(ge=0, le=9)

    @field_validator("n")
    @classmethod
    def even(cls, n):
        if n % 2:
            raise ValueError("odd")
        return n


class Watched(RandomLM):
    """Knows which of its caches are still remembered, and takes its time."""

    def __init__(self, seed: int = 0, delay_s: float = 0.0) -> None:
        super().__init__(WORDS, seed)
        self.delay_s = delay_s
        self.caches: list[weakref.ref[Any]] = []
        self.threads: set[threading.Thread] = set()
        self.running = 0

    def prefill(self, prompts):
        cache, logits = super().prefill(prompts)
        kept = type("Cache", (type(cache),), {})(cache.rows)
        self.caches.append(weakref.ref(kept))
        return kept, logits

    def extend(self, cache, chunks):
        self.running += 1
        self.threads.add(threading.current_thread())
        time.sleep(self.delay_s)
        logits = super().extend(cache, chunks)
        self.running -= 1
        return logits

    def remembered(self) -> int:
        return sum(cache() is not None for cache in self.caches)


def generator(lm: FakeLM | None = None, schema: Any = Triage, **options: Any) -> sg.Generator[Any]:
    return sg.Generator(schema, lm or RandomLM(WORDS, 4), **options)


# Events.


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "seed": 3}])
def test_events_add_up_to_the_result_of_a_run(options):
    gen = generator(**options)
    stream = gen.stream("who?")
    events = list(stream)
    expected = gen.run("who?")
    assert stream.result.value == expected.value
    assert stream.result.usage == expected.usage
    assert tuple(t for event in events for t in event.token_ids) == expected.token_ids
    text = ""
    for event in events:
        text += event.delta
        assert event.text == text
        assert not event.restarted
    assert text == expected.text
    *others, last = events
    assert last.result is stream.result
    assert last.partial is stream.result.value
    assert all(event.result is None and event.token_ids for event in others)


def test_no_event_holds_a_part_of_a_character():
    text = '"é€😀\u0000"'.replace("\u0000", "ü")
    stream = sg.stream(str, "", lm=ScriptedLM(byte_vocabulary(), text))
    events = list(stream)
    assert len(events) == len(text.encode()) + 1
    assert "".join(event.delta for event in events) == text
    assert [event.delta for event in events if event.delta] == list(text)


def test_partial_values_are_those_of_their_events_whenever_one_asks():
    stream = generator().stream("who?")
    at_once = [repr(event.partial) for event in stream]
    events = list(generator().stream("who?"))
    assert [repr(event.partial) for event in reversed(events)] == at_once[::-1]
    assert [repr(event.partial) for event in events] == at_once
    assert at_once[0] == "Triage()"


def test_partial_values_are_only_made_when_one_asks():
    made = []

    class Seen(Triage):
        @field_validator("note")
        @classmethod
        def see(cls, note):
            made.append(note)
            return note

    sg.stream(Seen, "who?", lm=RandomLM(WORDS)).finish()
    assert len(made) == 1


def test_a_rejected_attempt_is_announced_before_the_next_one():
    gen = generator(RandomLM(WORDS, 5), Picky, do_sample=True, seed=1, retries=30)
    results = dict(gen.as_completed([f"p{i}" for i in range(20)], progress=False))
    index = next(
        i
        for i, result in results.items()
        if isinstance(result, sg.Generation) and result.usage.attempts > 2
    )
    stream = gen.stream(f"p{index}", seed=1 + index)
    attempts: list[str] = []
    previous = ""
    for event in stream:
        if event.restarted:
            assert (event.token_ids, event.delta, event.text) == ((), "", "")
            assert event.partial is None
            attempts.append(previous)
        previous = event.text
    assert tuple(attempts) == stream.result.rejected
    assert previous == stream.result.text == results[index].text


def test_the_last_rejection_is_raised():
    gen = generator(ScriptedLM(WORDS, '{"n": 7}'), Picky)
    stream = gen.stream("p")
    events = []
    with pytest.raises(ValidationFailedError, match="odd"):
        events.extend(iter(stream.__next__, None))
    with pytest.raises(UsageError, match="no result"):
        stream.result  # noqa: B018
    assert list(stream) == []


def test_the_result_is_there_at_the_end_only():
    stream = generator().stream("who?")
    next(stream)
    with pytest.raises(UsageError, match="not at its end"):
        stream.result  # noqa: B018
    assert stream.finish() is stream.result
    assert list(stream) == []


def test_text_alone():
    gen = generator()
    assert "".join(gen.stream("who?").texts()) == gen.run("who?").text
    with pytest.raises(OptionError, match="restarted"):
        generator(retries=1).stream("who?").texts()


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        ({}, {"max_new_tokens": 0}, "max_new_tokens=0"),
        ({}, {"seed": -1}, "seed=-1"),
        ({"num_beams": 2}, {}, "num_beams=2 cannot be streamed"),
    ],
)
def test_what_is_wrong_with_a_call_shows_at_the_call(made, given, message):
    gen = generator(**made)
    with pytest.raises(OptionError, match=message):
        gen.stream("who?", **given)
    with pytest.raises(OptionError, match=message):
        asyncio.run(gen.astream("who?", **given).finish())
    with pytest.raises(InvalidTextError):
        generator().stream(b"bytes")


THINKING = sg.Thinking(Triage)


@pytest.mark.parametrize(
    ("schema", "text", "shown"),
    [
        (sg.Text(stop="\n"), "ab\n", ["a", "ab", "ab", "ab"]),
        (sg.Regex("[ab]{2}"), "ba", ["b", "ba", "ba"]),
        (int, "12", [None, None, 12]),
        (Literal["a", "ab"], "ab", [None, None, "ab"]),
        (bool, "true", [None, None, None, True, True]),
        (list[int], "[1, 2]", [[], [], [1], [1], [1], [1, 2], [1, 2]]),
        ({"type": "object"}, '{"a": "b"}', [{}] * 6 + [{"a": ""}] + [{"a": "b"}] * 4),
    ],
)
def test_whatever_can_be_generated_has_partial_values(schema, text, shown):
    lm = ScriptedLM(byte_vocabulary(), text)
    assert [event.partial for event in sg.stream(schema, "", lm=lm)] == shown


def test_an_answer_grows_behind_its_thought():
    text = '<think>\nhm</think>\n\n{"note": "x", "team": "sales", "tags": []}'
    events = list(sg.stream(THINKING, "", lm=ScriptedLM(byte_vocabulary(), text)))
    shown = {event.text: event.partial for event in events}
    assert shown["<think>\nhm</thi"] == ("hm", None)
    assert repr(shown[text[: text.index("x")]].answer) == "Triage(note='')"
    assert events[-1].partial.answer == Triage(note="x", team="sales", tags=[])


def test_functions_are_shown_as_their_arguments():
    def forecast(city: str, days: int) -> None:
        pass

    lm = ScriptedLM(byte_vocabulary(), '{"city": "Oslo", "days": 3}')
    events = list(sg.stream(forecast, "", lm=lm))
    assert {type(event.partial) for event in events} == {type(events[-1].partial)}
    assert events[12].partial.city == "Osl"


def test_the_default_model_is_used_and_unknown_options_are_refused(monkeypatch):
    monkeypatch.setattr(api, "_default", [RandomLM(WORDS)])
    assert sg.stream(Triage, "who?").finish().value == sg.generate(Triage, "who?")
    for function in (sg.generate, sg.stream):
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'temp'"):
            function(Triage, "who?", temp=1)
    with pytest.raises(TypeError, match="'temp'"):
        asyncio.run(sg.agenerate(Triage, "who?", temp=1))


# What the model remembers is freed.


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


# Async.


def run(main: Any) -> Any:
    """What a coroutine returns, with the event loop's complaints made errors."""
    result = asyncio.run(main, debug=False)
    gc.collect()
    return result


async def collected(stream: sg.AsyncStream[Any]) -> list[sg.StreamEvent[Any]]:
    return [event async for event in stream]


def test_async_events_are_those_of_a_stream():
    gen = generator(do_sample=True, seed=3)
    stream = gen.astream("who?")
    events = run(collected(stream))
    expected = list(gen.stream("who?"))
    assert [(e.token_ids, e.delta, e.text) for e in events] == [
        (e.token_ids, e.delta, e.text) for e in expected
    ]
    assert [repr(e.partial) for e in events] == [repr(e.partial) for e in expected]
    assert stream.result.value == gen("who?")


def test_async_values_are_those_of_a_run():
    gen = generator()
    assert run(gen.agenerate("who?")) == gen("who?")
    assert run(gen.arun("who?")).usage == gen.run("who?").usage
    assert run(sg.agenerate(Triage, "who?", lm=gen.lm)) == gen("who?")
    assert run(sg.astream(Triage, "who?", lm=gen.lm).finish()).value == gen("who?")
    beams = generator(num_beams=3)
    assert run(beams.agenerate("who?")) == beams("who?")


def test_async_text_alone():
    gen = generator()

    async def main(**options):
        return [text async for text in generator(**options).astream("who?").texts()]

    assert "".join(run(main())) == gen.run("who?").text
    with pytest.raises(OptionError, match="restarted"):
        run(main(retries=1))


def test_the_result_of_an_async_stream_is_there_at_the_end_only():
    async def main():
        stream = generator().astream("who?")
        for complaint in ("not begun", "not at its end"):
            with pytest.raises(UsageError, match=complaint):
                stream.result  # noqa: B018
            await anext(stream)
        await stream.aclose()
        await stream.aclose()

    run(main())


def test_errors_are_raised_where_the_value_is_awaited():
    gen = generator(ScriptedLM(WORDS, '{"n": 7}'), Picky)
    with pytest.raises(ValidationFailedError, match="odd"):
        run(gen.agenerate("p"))
    with pytest.raises(InvalidTextError):
        run(gen.agenerate(b"bytes"))


def test_the_event_loop_stays_responsive():
    lm = Watched(delay_s=0.03)

    async def main():
        gaps = []

        async def tick():
            last = time.perf_counter()
            while True:
                await asyncio.sleep(0.001)
                gaps.append(time.perf_counter() - last)
                last = time.perf_counter()

        ticker = asyncio.create_task(tick())
        await generator(lm).agenerate("who?")
        ticker.cancel()
        return gaps

    gaps = run(main())
    assert len(lm.chunks) > 5
    assert len(gaps) > 5 * len(lm.chunks)
    assert sorted(gaps)[len(gaps) // 2] < 0.02
    assert threading.main_thread() not in lm.threads


def test_validators_see_the_context_of_the_caller():
    who = contextvars.ContextVar("who", default="nobody")
    seen = []

    class Seen(BaseModel):
        sure: bool

        @field_validator("sure")
        @classmethod
        def see(cls, sure):
            seen.append(who.get())
            return sure

    async def main():
        who.set("the caller")
        await sg.agenerate(Seen, "x", lm=RandomLM(WORDS))

    run(main())
    assert seen == ["the caller"]


def test_several_values_at_once():
    gen = generator(Watched(delay_s=0.001), do_sample=True)

    async def main():
        return await asyncio.gather(*(gen.agenerate(f"p{i}", seed=i) for i in range(12)))

    assert run(main()) == [gen(f"p{i}", seed=i) for i in range(12)]
    assert gen.lm.remembered() == 0


async def asked(gen: sg.Generator[Any]) -> None:
    """Wait until the model has read the prompt."""
    while not gen.lm.caches:
        await asyncio.sleep(0.001)


CANCELS: dict[str, Any] = {}


def cancel(function: Any) -> Any:
    CANCELS[function.__name__] = function
    return function


@cancel
async def cancelling_the_task(gen):
    task = asyncio.create_task(gen.agenerate("who?"))
    await asked(gen)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gen.lm.running == 0


@cancel
async def cancelling_it_twice(gen):
    task = asyncio.create_task(gen.agenerate("who?"))
    await asked(gen)
    task.cancel()
    await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gen.lm.running == 0


@cancel
async def a_timeout(gen):
    gen.lm.delay_s = 0.1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.4):
            await gen.agenerate("who?")
    assert gen.lm.running == 0


@cancel
async def a_timeout_of_one_event(gen):
    stream = gen.astream("who?")
    while not gen.lm.caches:
        await anext(stream)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(collected(stream), 0.01)
    assert [event async for event in stream] == []


@cancel
async def breaking_off_async(gen):
    async for _ in gen.astream("who?"):
        if len(gen.lm.chunks) > 1:
            break


@cancel
async def leaving_the_async_texts(gen):
    async for _ in gen.astream("who?").texts():
        if len(gen.lm.chunks) > 1:
            break


@cancel
async def leaving_an_async_block(gen):
    async with gen.astream("who?") as stream:
        while len(gen.lm.chunks) < 2:
            await anext(stream)


@cancel
async def closing_during_a_step(gen):
    stream = gen.astream("who?")
    await anext(stream)
    task = asyncio.create_task(stream.finish())
    await asked(gen)
    await stream.aclose()
    assert gen.lm.running == 0
    assert gen.lm.remembered() == 0
    with pytest.raises(UsageError, match="no result"):
        await task


@cancel
async def one_of_a_group_failing(gen):
    async def fail():
        await asked(gen)
        raise ZeroDivisionError

    async def together():
        async with asyncio.TaskGroup() as group:
            for job in (gen.agenerate("who?"), gen.agenerate("what?"), fail()):
                group.create_task(job)

    with pytest.raises(ExceptionGroup):
        await together()
    assert gen.lm.running == 0


@pytest.mark.parametrize("name", CANCELS)
def test_nothing_is_left_behind_by(name):
    lm = Watched(delay_s=0.02)
    gen = generator(lm)
    threads = set(threading.enumerate())

    async def main():
        await CANCELS[name](gen)
        assert lm.caches
        assert lm.remembered() == 0
        passes = len(lm.chunks)
        await asyncio.sleep(0.05)
        assert len(lm.chunks) == passes, "the model goes on"

    run(main())
    assert set(threading.enumerate()) <= threads


def test_a_task_that_is_cancelled_before_it_begins_asks_no_model():
    lm = Watched()

    async def main():
        task = asyncio.create_task(generator(lm).agenerate("who?"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    assert lm.chunks == []


def test_an_error_behind_a_cancellation_is_no_complaint():
    class Failing(Watched):
        def extend(self, cache, chunks):
            super().extend(cache, chunks)
            raise RuntimeError("out of memory")

    lm = Failing(delay_s=0.05)

    async def main():
        complaints = []
        asyncio.get_running_loop().set_exception_handler(lambda _, c: complaints.append(c))
        task = asyncio.create_task(generator(lm).agenerate("who?"))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()
        return complaints

    assert run(main()) == []


class Short(BaseModel):
    team: Literal["billing", "sales"]
    note: str = Field(max_length=4)


def test_a_real_model_streams_the_value_of_a_run(smollm2):
    gen = sg.Generator(Short, smollm2, max_new_tokens=24, schema_prompt=False)
    events = run(collected(gen.astream("Hello")))
    assert events[-1].partial == gen("Hello")
    shown = [event.partial for event in events if event.partial is not None]
    assert all(isinstance(part, Short) for part in shown)
    assert any(part.model_fields_set == {"team"} for part in shown)
