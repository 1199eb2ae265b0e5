"""Streams and values for `async`: equal to the others, responsive, and cancelled cleanly."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import structgen as sg
from structgen.errors import InvalidTextError, OptionError, UsageError, ValidationFailedError
from structgen.testing import RandomLM, ScriptedLM
from tests.streaming import WORDS, Picky, Triage, Watched, generator


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
