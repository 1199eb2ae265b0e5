"""Types that users rely on; nothing here runs, `make lint` lets pyright check it."""

from __future__ import annotations

import enum
from typing import Annotated, Any, assert_type

from pydantic import BaseModel, TypeAdapter

import structgen as sg
from structgen.batch import OnError


class Triage(BaseModel):
    sure: bool


class Mood(enum.Enum):
    good = "good"


def results_have_the_type_of_the_schema(lm: sg.LanguageModel) -> None:
    assert_type(sg.generate(Triage, "Hello", lm=lm), Triage)
    assert_type(sg.generate(int, [{"role": "user", "content": "Hello"}]), int)
    assert_type(sg.Generator(Triage, lm), sg.Generator[Triage])
    assert_type(sg.Generator(Triage, lm)("Hello"), Triage)
    assert_type(sg.Generator(list[Triage], lm)("Hello"), list[Triage])
    result = sg.Generator(Triage, lm).run("Hello")
    assert_type(result, sg.Generation[Triage])
    assert_type(result.value, Triage)
    assert_type(result.labels["$.sure"], sg.LabelScore)
    assert_type(result.usage.forward_passes, int)


def compiled_schemas_have_it_too(vocabulary: sg.Vocabulary) -> None:
    assert_type(sg.compile(Triage, vocabulary), sg.CompiledSchema[Triage])
    assert_type(sg.compile(Triage, vocabulary).validate("{}"), Triage)
    assert_type(sg.compile(Triage, vocabulary).session(8), sg.Session)
    assert_type(sg.compile(TypeAdapter(int), vocabulary), sg.CompiledSchema[int])


def the_decorator_keeps_the_class() -> None:
    assert_type(sg.structured(Triage), type[Triage])
    assert_type(sg.structured(Triage)(sure=True), Triage)
    assert_type(sg.structured(ignore=["SG103"])(Triage), type[Triage])
    assert_type(sg.structured(lint=False)(Triage)(sure=True), Triage)


def lint_and_explain_take_what_compile_takes(vocabulary: sg.Vocabulary) -> None:
    assert_type(sg.lint(Triage, vocabulary=vocabulary, max_new_tokens=9), list[sg.Finding])
    assert_type(sg.explain({"type": "string"}), sg.Explanation)


def a_loaded_model_is_a_language_model() -> None:
    lm: sg.LanguageModel = sg.load()
    assert_type(sg.default_lm(), sg.HFModel)
    assert_type(sg.Generator(Triage, lm)("Hello"), Triage)


def a_result_is_covariant(result: sg.Generation[Triage]) -> sg.Generation[BaseModel]:
    return result


def mistakes_are_found(lm: sg.LanguageModel) -> None:
    sg.generate(Triage, "Hello", temperatur=0.5)  # pyright: ignore[reportCallIssue]
    sg.generate(Triage, "Hello", layout="pretty")  # pyright: ignore[reportCallIssue, reportArgumentType]
    sg.generate(Triage, 3)  # pyright: ignore[reportCallIssue, reportArgumentType]
    sg.Generator(Triage, lm).run("Hello").value = Triage(sure=True)  # pyright: ignore[reportAttributeAccessIssue]


def forecast(city: str, days: int = 3) -> str:
    return f"{city} {days}"


def a_function_becomes_a_model_of_its_arguments(value: sg.Arguments) -> None:
    assert_type(sg.arguments_model(forecast), type[sg.Arguments])
    assert_type(sg.arguments_of(value), dict[str, Any])
    assert_type(sg.generate(sg.arguments_model(forecast), "Hello", retries=2), sg.Arguments)


def a_rejected_value_carries_what_there_is_to_know(error: sg.ValidationFailedError) -> None:
    assert_type(error.texts, tuple[str, ...])
    assert_type(error.attempts, int)
    assert_type(error.cause, Exception)


def what_is_no_json_has_a_type_too(lm: sg.LanguageModel, vocabulary: sg.Vocabulary) -> None:
    assert_type(sg.generate(sg.Regex("a+"), "Hello", lm=lm), str)
    assert_type(sg.generate(sg.Text(stop="\n"), "Hello", lm=lm, banned_strings=["x"]), str)
    assert_type(sg.generate(sg.OneOf([1, 2]), "Hello", lm=lm), int)
    assert_type(sg.generate(sg.OneOf({"yes": True}), "Hello", lm=lm), bool)
    assert_type(sg.generate(Mood, "Hello", lm=lm), Mood)
    assert_type(sg.generate(sg.Thinking(Triage), "Hello", lm=lm), sg.Thought[Triage])
    assert_type(sg.generate(sg.Thinking(sg.Regex("a")), "Hello", lm=lm).answer, str)
    assert_type(sg.generate(sg.Sequence("a", Triage), "Hello", lm=lm), tuple[Any, ...])
    assert_type(sg.Generator(sg.Regex("a+"), lm), sg.Generator[str])
    assert_type(sg.compile(sg.OneOf(["a"]), vocabulary), sg.CompiledSchema[str])


def streams_have_the_type_of_the_schema(gen: sg.Generator[Triage], lm: sg.LanguageModel) -> None:
    assert_type(gen.stream("Hello"), sg.Stream[Triage])
    assert_type(next(gen.stream("Hello")), sg.StreamEvent[Triage])
    assert_type(gen.stream("Hello").result, sg.Generation[Triage])
    assert_type(gen.stream("Hello").finish().value, Triage)
    assert_type(list(gen.stream("Hello").texts()), list[str])
    assert_type(sg.stream(Triage, "Hello", lm=lm, seed=1), sg.Stream[Triage])
    sg.stream(Triage, "Hello", temperatur=0.5)  # pyright: ignore[reportCallIssue]


async def asynchronous_ones_too(gen: sg.Generator[Triage]) -> None:
    assert_type(await gen.agenerate("Hello"), Triage)
    assert_type(await gen.arun("Hello", seed=1), sg.Generation[Triage])
    assert_type(await sg.agenerate(Triage, "Hello"), Triage)
    assert_type(await sg.agenerate(sg.Regex("a+"), "Hello", max_new_tokens=9), str)
    assert_type(sg.astream(list[Triage], "Hello"), sg.AsyncStream[list[Triage]])
    async for event in gen.astream("Hello"):
        assert_type(event, sg.StreamEvent[Triage])
        assert_type(event.result, sg.Generation[Triage] | None)
    async with gen.astream("Hello") as stream:
        assert_type([text async for text in stream.texts()], list[str])


def tools_tell_what_a_call_is(lm: sg.LanguageModel, dynamic: bool) -> None:
    assert_type(sg.tools([Triage]), sg.Tools[sg.ToolCall])
    assert_type(sg.tools([Triage], none=True), sg.Tools[sg.ToolCall | None])
    assert_type(sg.tools([Triage], parallel=True), sg.Tools[list[sg.ToolCall]])
    assert_type(sg.tools([Triage], none=dynamic), sg.Tools[Any])
    assert_type(sg.tools([Triage]).only("Triage"), sg.Tools[sg.ToolCall])
    assert_type(sg.Generator(sg.tools([Triage]), lm)("Hello"), sg.ToolCall)
    assert_type(sg.generate(sg.tools([Triage]), "Hello").probability, float)


TOPICS = sg.Taxonomy(["Animals", "Cars"])


class Ticket(BaseModel):
    topic: Annotated[str, TOPICS]


def taxonomies_are_types_and_choices(lm: sg.LanguageModel, vocabulary: sg.Vocabulary) -> None:
    assert_type(Ticket(topic="Cars").topic, str)
    assert_type(TOPICS["Cars"], sg.Entry)
    assert_type(sg.generate(sg.OneOf(TOPICS), "Hello", lm=lm), str)
    assert_type(sg.generate(sg.SomeOf(TOPICS), "Hello", lm=lm), list[str])
    assert_type(TOPICS.verify(vocabulary), sg.Verification)


def classifiers_return_errors_only_where_asked_to(lm: sg.LanguageModel, how: OnError) -> None:
    one = sg.Classifier(TOPICS, lm)
    assert_type(one("Hello"), sg.Classification)
    assert_type(one.many(["Hello"]), list[sg.Classification])
    assert_type(one.many(["Hello"], on_error="return"), list[sg.Classification | sg.UsageError])
    assert_type(
        one.many(["Hello"], on_error=how),
        list[sg.Classification] | list[sg.Classification | sg.UsageError],
    )
    assert_type(next(one.each(["Hello"])), sg.Classification)
    assert_type(next(one.each(["Hello"], on_error="return")), sg.Classification | sg.UsageError)
    assert_type(sg.classify("Hello", TOPICS), sg.Classification)
    assert_type(sg.classify_many(["Hello"], TOPICS), list[sg.Classification])
    several = sg.MultiLabelClassifier(TOPICS, lm)
    assert_type(several("Hello"), sg.MultiLabel)
    assert_type(several.many(["Hello"]), list[sg.MultiLabel])
    assert_type(several.many(["Hello"], on_error="return"), list[sg.MultiLabel | sg.UsageError])
    assert_type(next(several.each(["Hello"])), sg.MultiLabel)
    fitted = several.fit_thresholds([("Hello", ["Cars"]), {"text": "Bye", "labels": []}])
    assert_type(fitted, sg.MultiLabelClassifier)
    assert_type(fitted.thresholds, dict[str, float])
    assert_type(fitted.priors, dict[str, float] | None)
    assert_type(sg.evaluate_several({"fitted": fitted}, [("Hello", ["Cars"])]).best.micro_f1, float)
