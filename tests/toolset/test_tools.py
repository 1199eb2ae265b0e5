"""Tools: what is one, what is refused, and what a call of one is."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import math
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

import structgen as sg
from structgen.testing import RandomLM, ScriptedLM, byte_vocabulary

VOCABULARY = byte_vocabulary()


def forecast(city: Annotated[str, Field(max_length=20)], days: int = 3) -> str:
    """Look up the weather.

    Args:
        city: the city alone
    """
    return f"{days} days of rain in {city}"


class Mail(BaseModel):
    """Send a mail."""

    to: str
    urgent: bool = False


NUMBERS = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}},
    "required": ["n"],
}
OPENAI = {
    "type": "function",
    "function": {"name": "a.b", "description": "d", "parameters": NUMBERS},
}
FORMS: dict[str, Any] = {
    "chat completions": OPENAI,
    "responses": {"type": "function", "strict": True, **OPENAI["function"]},
    "bare": OPENAI["function"],
    "anthropic": {"name": "a.b", "description": "d", "input_schema": NUMBERS},
    "mcp, as a dict": {"name": "a.b", "description": "d", "inputSchema": NUMBERS},
    "mcp": SimpleNamespace(name="a.b", description="d", inputSchema=NUMBERS, title=None),
}


def written(tools: sg.Tools[Any], text: str, **options: Any) -> Any:
    """The value of a model that wants to write `text`."""
    return sg.generate(tools, "", lm=ScriptedLM(VOCABULARY, text), **options)


def accepts(tools: sg.Tools[Any], text: str, **options: Any) -> bool:
    session = sg.compile(tools, VOCABULARY, **options).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


def test_a_function_is_called_with_what_was_written():
    call = written(
        sg.tools([forecast]), '{"name": "forecast", "arguments": {"city": "Porto", "days": 2}}'
    )
    assert (call.name, call.arguments) == ("forecast", {"city": "Porto", "days": 2})
    assert call.call() == "2 days of rain in Porto"
    assert call.arguments_json == '{"city": "Porto", "days": 2}'


def test_what_is_left_out_has_the_functions_default():
    call = written(sg.tools([forecast]), '{"name": "forecast", "arguments": {"city": "Porto"}}')
    assert call.call() == "3 days of rain in Porto"
    assert call.arguments_json == '{"city": "Porto"}'


def test_an_async_function_is_awaited():
    async def wait(seconds: int) -> int:
        return seconds

    call = written(sg.tools([wait]), '{"name": "wait", "arguments": {"seconds": 7}}')
    assert asyncio.run(call.call()) == 7


def test_of_a_model_the_arguments_are_its_instance():
    call = written(sg.tools([Mail]), '{"name": "Mail", "arguments": {"to": "Ana"}}')
    assert call.arguments == Mail(to="Ana")
    with pytest.raises(sg.UsageError, match="'Mail' was given without a function"):
        call.call()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_description_means_the_same(form):
    tools = sg.tools([FORMS[form]])
    (tool,) = tools
    assert (tool.name, tool.description) == ("a.b", "d")
    assert accepts(tools, '{"name": "a.b", "arguments": {"n": 3}}')
    assert not accepts(tools, '{"name": "a.b", "arguments": {"n": -3}}')
    assert not accepts(tools, '{"name": "a.b", "arguments": {}}')


def test_other_classes_of_fields_and_callables_are_tools_too():
    class Point(TypedDict):
        x: int

    @dataclasses.dataclass
    class Line:
        """A line."""

        length: int

    class Counter:
        def add(self, n: int) -> int:
            """Add."""
            return n + 1

    tools = sg.tools([Point, Line, Counter().add, functools.partial(forecast, days=1)])
    assert tools.names == ("Point", "Line", "add", "forecast")
    assert [tool.description for tool in tools][1:] == ["A line.", "Add.", "Look up the weather."]
    call = written(tools, '{"name": "forecast", "arguments": {"city": "Ulm"}}')
    assert call.call() == "1 days of rain in Ulm"


def test_lists_in_lists_and_answers_of_servers_are_flattened():
    server = SimpleNamespace(tools=[SimpleNamespace(name="m", inputSchema=NUMBERS)])
    answer = {"tools": [{"name": "n", "inputSchema": NUMBERS}]}
    other = sg.tools([Mail])
    assert sg.tools([forecast, server, answer, [OPENAI], other]).names == (
        "forecast", "m", "n", "a.b", "Mail",
    )  # fmt: skip
    assert sg.tools(server).names == ("m",)
    assert sg.tools(item for item in (forecast, Mail)).names == ("forecast", "Mail")


def test_tools_are_a_collection_of_their_names():
    tools = sg.tools([forecast, Mail])
    assert len(tools) == 2
    assert "Mail" in tools
    assert "mail" not in tools
    assert tools["Mail"].source is Mail
    assert repr(tools) == "Tools(forecast, Mail)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        tools["Mail"].name = "x"


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"properties": {}}])
def test_a_tool_may_have_no_arguments(parameters):
    tools = sg.tools([{"name": "now", "parameters": parameters}])
    assert accepts(tools, '{"name": "now", "arguments": {}}')
    assert not accepts(tools, '{"name": "now", "arguments": {"a": 1}}')
    assert accepts(sg.tools([{"name": "now"}]), '{"name": "now", "arguments": {}}')


def test_declared_objects_are_closed_unless_they_say_otherwise():
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "who": {"type": "object", "properties": {"id": {"type": "integer"}}},
            "free": {"type": "object"},
        },
    }
    more = '{"name": "x", "arguments": {"who": {"id": 1, "more": 1}}}'
    free = '{"name": "x", "arguments": {"free": {"more": 1}}}'
    last = '{"name": "x", "arguments": {"more": 1}}'
    tools = sg.tools([{"name": "x", "parameters": schema}])
    assert [accepts(tools, text) for text in (more, free, last)] == [False, True, False]
    tools = sg.tools([{"name": "x", "parameters": schema}], open_arguments=True)
    assert [accepts(tools, text) for text in (more, free, last)] == [True, True, True]
    said = {**schema, "additionalProperties": True}
    tools = sg.tools([{"name": "x", "parameters": said}])
    assert [accepts(tools, text) for text in (more, free, last)] == [True, True, True]


def test_closing_never_leaves_nothing():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "minProperties": 2,
    }
    tools = sg.tools([{"name": "x", "parameters": schema}])
    assert accepts(tools, '{"name": "x", "arguments": {"a": 1, "b": 2}}')


def test_definitions_of_the_same_name_stay_apart():
    def schema(kind: str) -> dict[str, Any]:
        node = {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/N"}, "v": {"type": kind}},
        }
        return {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}

    tools = sg.tools(
        [{"name": kind, "parameters": schema(kind)} for kind in ("integer", "boolean")]
    )
    for kind, value in (("integer", "1"), ("boolean", "true")):
        text = '{"name": "%s", "arguments": {"n": {"next": {"v": %s}}}}'
        assert accepts(tools, text % (kind, value))
        assert not accepts(tools, text % (kind, '"x"'))
    assert not accepts(tools, text % ("integer", "true"))


def test_names_are_any_text_that_can_be_read():
    tools = sg.tools([{"name": name} for name in ("a", "ab", "a.b/c-d", 'q"', "é", "日本")])
    for tool in tools:
        assert written(tools.only(tool.name), "").name == tool.name
    assert accepts(tools, '{"name": "q\\"", "arguments": {}}')


def test_all_faults_are_told_at_once():
    def bad(x, *y: int) -> None: ...

    wrong = {"type": "object", "properties": {"q": {"type": "strin"}}}
    items: list[Any] = [
        forecast, forecast, bad, int, 3, {"name": "a b"}, {"type": "web_search"},
        {"name": "x", "params": {}}, {"name": "y", "parameters": {"type": "string"}},
        {"type": "function", "function": {"name": "z", "parameters": wrong}},
        lambda: 3, {"name": "", "description": 3}, {"name": "w", "parameters": 3},
        {"name": "v", "parameters": {}, "input_schema": {}}, {"name": 3},
    ]  # fmt: skip
    with pytest.raises(sg.UnsupportedSchemaError, match="the tools cannot be compiled") as caught:
        sg.tools(items)
    found = [(fault.path, fault.problem) for fault in caught.value.faults]
    expected = [
        ("$[2].x", "has no type"),
        ("$[2].y", "variadic"),
        ("$[3]", "the class int has no fields"),
        ("$[4]", "an int is no tool"),
        ("$[5].name", "white space"),
        ("$[6]", "'web_search' has no name"),
        ("$[7]", "no arguments but 'params'"),
        ("$[8].parameters", "can be something else"),
        ("$[9].function.parameters.properties.q.type", "'strin' is not a type"),
        ("$[10].name", "a lambda has no name"),
        ("$[11].name", "is empty"),
        ("$[11].description", "is a text, got 3"),
        ("$[12].parameters", "which is a dict, got 3"),
        ("$[13]", "both 'parameters' and 'input_schema'"),
        ("$[14].name", "is a text, got 3"),
        ("$[1]", "'forecast' is that of $[0] too"),
    ]
    assert [path for path, _ in found] == [path for path, _ in expected]
    for (path, problem), (_, words) in zip(found, expected, strict=True):
        assert words in problem, path


def test_arguments_that_nothing_matches_are_an_error_of_their_own():
    none = {"type": "object", "properties": {"q": False}, "required": ["q"]}
    with pytest.raises(sg.UnsatisfiableSchemaError, match=r"\$\[0\]\.parameters"):
        sg.tools([{"name": "x", "parameters": none}])


def test_a_tool_can_be_renamed():
    (tool,) = sg.tools([forecast])
    again = dataclasses.replace(tool, name="weather")
    assert sg.tools([tool, again]).names == ("forecast", "weather")
    with pytest.raises(sg.UnsupportedSchemaError, match=r"\$\[0\]\.name"):
        sg.tools([dataclasses.replace(tool, name="")])


@pytest.mark.parametrize("items", [[], (), {"tools": []}, "forecast", 3])
def test_no_list_of_tools_is_an_option_error(items):
    with pytest.raises(sg.OptionError, match="tool"):
        sg.tools(items)


@pytest.mark.parametrize("max_calls", [0, True, "2"])
def test_the_number_of_calls_is_checked(max_calls):
    with pytest.raises(sg.OptionError, match="max_calls"):
        sg.tools([forecast], parallel=True, max_calls=max_calls)


def test_no_tool_is_none():
    tools = sg.tools([forecast, Mail], none=True)
    result = sg.Generator(tools, ScriptedLM(VOCABULARY, '{"name": null}')).run("")
    assert result.value is None
    assert result.labels["$.name"].label == "null"
    assert result.labels["$.name"].probability > 0.99
    assert not accepts(sg.tools([forecast]), '{"name": null}')


def test_parallel_calls_are_a_list():
    text = '[{"name": "Mail", "arguments": {"to": "A"}}, {"name": "now", "arguments": {}}]'
    tools = sg.tools([Mail, {"name": "now"}], parallel=True, max_calls=2)
    result = sg.Generator(tools, ScriptedLM(VOCABULARY, text)).run("")
    assert [call.name for call in result.value] == ["Mail", "now"]
    assert [call.probability for call in result.value] == [
        result.labels[f"$[{index}].name"].probability for index in range(2)
    ]
    assert not accepts(tools, text[:-1] + ', {"name": "now", "arguments": {}}]')
    assert not accepts(tools, "[]")
    assert written(sg.tools([Mail], parallel=True, none=True), "[]") == []


def test_the_probability_is_that_of_the_name_among_the_names():
    """Of the bytes that tell "a" from "b": every other token is forced."""
    tools = sg.tools([{"name": "a"}, {"name": "b"}], none=True)
    result = sg.Generator(tools, RandomLM(VOCABULARY, 5)).run("x")
    free = [token for token in result.tokens if not token.forced]
    label = result.labels["$.name"]
    expected = math.exp(sum(token.log_prob for token in free))
    assert label.probability == pytest.approx(expected)
    if result.value is not None:
        assert result.value.probability == label.probability


def test_a_text_that_no_generator_wrote_has_no_probability():
    text = '{"name": "Mail", "arguments": {"to": "A"}}'
    call = sg.compile(sg.tools([Mail]), VOCABULARY).validate(text)
    assert math.isnan(call.probability)
    assert call == written(sg.tools([Mail]), text)


def test_names_are_forced_and_left_out_for_a_turn():
    tools = sg.tools([forecast, Mail, {"name": "now"}])
    assert tools.only("now", "Mail").names == ("Mail", "now")
    assert tools.without("Mail").names == ("forecast", "now")
    assert tools.only("now", "Mail").only("now").names == ("now",)
    assert tools.only("now") is tools.only("now"), "so that it is compiled once"
    assert tools.only("Mail") is tools.without("forecast", "now")
    for choose in (tools.only, tools.without):
        with pytest.raises(sg.OptionError, match=r"no tool 'mail'; there are forecast, Mail, now"):
            choose("mail")
    with pytest.raises(sg.OptionError, match="no tool is left"):
        tools.only()


def test_the_choices_of_openai():
    tools = sg.tools([forecast, Mail])
    assert [tools.with_choice(c).none for c in ("auto", "required", "none")] == [True, False, True]
    assert tools.with_choice("none").names == ()
    for choice in ("Mail", {"type": "function", "function": {"name": "Mail"}}):
        assert tools.with_choice(choice) is tools.only("Mail")
    for choice in ("mail", {"type": "function"}, None):
        with pytest.raises(sg.OptionError, match="tool"):
            tools.with_choice(choice)
    result = sg.Generator(tools.with_choice("none"), RandomLM(VOCABULARY)).run("")
    assert (result.value, result.usage.forward_passes) == (None, 0)
    several = sg.tools([forecast], parallel=True).with_choice("none")
    assert sg.generate(several, "", lm=RandomLM(VOCABULARY)) == []


def test_a_turns_choice_is_compiled_once():
    tools = sg.tools([forecast, Mail])
    compiled = sg.compile(tools.only("Mail"), VOCABULARY)
    assert sg.compile(tools.only("Mail"), VOCABULARY) is compiled
    assert sg.compile(sg.tools([Mail]), VOCABULARY).tables is compiled.tables


@pytest.mark.parametrize("layout", ["spaced", "compact", "flexible"])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_layout_is_read_back(layout, parallel):
    tools = sg.tools([forecast, Mail, OPENAI], parallel=parallel, none=True)
    for seed in range(10):
        lm = RandomLM(VOCABULARY, seed)
        result = sg.Generator(tools, lm, layout=layout, max_new_tokens=200).run("x")
        calls = result.value if parallel else [result.value]
        assert all(call is None or call.name in tools for call in calls)


def test_tools_stand_in_sequences():
    tools = sg.tools([Mail])
    wrapped = sg.Sequence("<tool_call>\n", call=tools, end="\n</tool_call>")
    text = '<tool_call>\n{"name": "Mail", "arguments": {"to": "A"}}\n</tool_call>'
    value = sg.generate(wrapped, "", lm=ScriptedLM(VOCABULARY, text))
    assert value.call.arguments == Mail(to="A")
    assert value.call.probability == 1.0
    thinking = sg.Thinking(sg.tools([Mail, forecast]), max_tokens=4)
    result = sg.Generator(thinking, RandomLM(VOCABULARY, 1), max_new_tokens=300).run("")
    assert result.value.answer.probability == result.labels["$.answer.name"].probability


def test_a_stream_shows_the_call_as_it_grows():
    text = '{"name": "Mail", "arguments": {"to": "Ana"}}'
    stream = sg.stream(sg.tools([Mail]), "", lm=ScriptedLM(VOCABULARY, text))
    partial = [event.partial for event in stream]
    assert {"name": "Mail", "arguments": {"to": "Ana"}} in partial


def test_python_validators_run_after_and_are_told():
    class Even(BaseModel):
        n: Literal[1, 2]

        @field_validator("n")
        @classmethod
        def is_even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    tools = sg.tools([Even])
    assert sg.compile(tools, VOCABULARY).validators == ("$.arguments.n",)
    with pytest.raises(sg.ValidationFailedError, match="odd"):
        written(tools, '{"name": "Even", "arguments": {"n": 1}}')


def test_the_prompt_names_tools_and_arguments():
    generator = sg.Generator(sg.tools([forecast, OPENAI]), RandomLM(VOCABULARY))
    assert generator.render("") == (
        "Answer with one JSON value of this form, and nothing else:\n"
        "{\n"
        "  // Look up the weather.\n"
        '  "name": "forecast"\n'
        '  "arguments": {\n'
        '    "city": string (at most 20 characters)  // the city alone\n'
        '    "days": whole number (may be left out)\n'
        "  }\n"
        "} or {\n"
        "  // d\n"
        '  "name": "a.b"\n'
        '  "arguments": {\n'
        '    "n": whole number (at least 0)\n'
        "  }\n"
        "}"
    )


def test_of_many_tools_the_prompt_has_a_line_each():
    tools = sg.tools([{"name": f"t{i}", "description": f"does {i}"} for i in range(50)])
    text = str(sg.Generator(tools, RandomLM(VOCABULARY)).render(""))
    assert '\n  {"name": "t7", "arguments": ...}  // does 7\n' in text
    assert len(text.splitlines()) == 52


def test_explain_has_a_row_for_names_and_arguments():
    rows = {row.path: row for row in sg.explain(sg.tools([forecast, Mail], none=True)).fields}
    assert rows["$.name"].enforced == '"forecast" or "Mail" or null'
    assert "$.arguments.city" in rows
    assert "$.arguments.urgent" in rows


def test_a_tool_may_be_called_none():
    found = sg.tools([{"name": "none"}, {"name": "b"}])
    chosen = found.with_choice({"type": "function", "function": {"name": "none"}})
    assert chosen.names == ("none",)
