"""Values while they are being written, one event after another."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest
from pydantic import field_validator

import structgen as sg
from structgen import api
from structgen.errors import InvalidTextError, OptionError, UsageError, ValidationFailedError
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary
from tests.streaming import WORDS, Picky, Triage, generator


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
