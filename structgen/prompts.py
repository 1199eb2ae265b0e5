"""What the model is told besides the prompt: the schema, in a short form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from structgen.errors import InvalidTextError, OptionError
from structgen.schema.describe import describe
from structgen.schema.nodes import Choice, Parts, Raw, Schema, Selection

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A text, or chat messages with `role` and `content`."""

SchemaPrompt: TypeAlias = bool | str | Callable[[str], str]
"""True: the built-in wording. False: nothing. A text: that text, `{schema}` stands for the short
form. A function: from the short form to the text."""

WORDING = "Answer with one JSON value of this form, and nothing else:\n{schema}"
CHOICE_WORDING = "Answer with one of these, and nothing else:\n{schema}"
TEXT_WORDING = "Answer in this form, and with nothing else:\n{schema}"


def schema_text(schema: Schema, schema_prompt: SchemaPrompt) -> str:
    """What is added to a prompt about the schema, empty if nothing is."""
    if schema_prompt is False:
        return ""
    if callable(schema_prompt):
        text = schema_prompt(describe(schema))
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped
            raise OptionError(f"the schema_prompt function returned {text!r}, which is no text")
        return text
    wording = _wording(schema) if schema_prompt is True else schema_prompt
    if not isinstance(wording, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise OptionError(
            f"schema_prompt={schema_prompt!r} must be True, False, a text or a function"
        )
    return wording.replace("{schema}", describe(schema))


def _wording(schema: Schema) -> str:
    """The built-in wording; about free text without a pattern there is nothing to say."""
    match schema.root:
        case Choice():
            return CHOICE_WORDING
        case Raw(content) if not content.patterns:
            return ""
        case Raw() | Parts() | Selection():
            return TEXT_WORDING
        case _:
            return WORDING


def render(prompt: Prompt, addition: str) -> Prompt:
    """The prompt with `addition` behind its (last) text."""
    check_prompt(prompt)
    if not addition:
        return prompt
    if isinstance(prompt, str):
        return f"{prompt}\n\n{addition}" if prompt else addition
    *before, last = prompt
    return [*before, {**last, "content": f"{last['content']}\n\n{addition}"}]


def check_prompt(prompt: object) -> None:
    """Refuse what is neither text nor chat messages.

    Raises:
        InvalidTextError: bytes, or something else that is no text.
        OptionError: messages without `role` or `content`.
    """
    if isinstance(prompt, str):
        _check_text(prompt, "the prompt")
        return
    if isinstance(prompt, bytes | bytearray):
        try:
            prompt.decode()
        except UnicodeDecodeError as error:
            raise InvalidTextError(f"the prompt is bytes and not UTF-8: {error}") from error
        raise InvalidTextError("the prompt is bytes; decode it: prompt.decode()")
    if isinstance(prompt, Sequence) and not prompt:
        raise InvalidTextError("the prompt is an empty list; pass a text or chat messages")
    if not isinstance(prompt, Sequence):
        raise InvalidTextError(
            f"a prompt is a text or a list of chat messages, got {type(prompt).__name__}"
        )
    for index, message in enumerate(prompt):
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            raise OptionError(
                f"message {index} of the prompt must be a dict with 'role' and 'content', got "
                f"{message!r}"
            )
        if not isinstance(message["role"], str):
            raise OptionError(f"the role of message {index} of the prompt is {message['role']!r}")
        if not isinstance(message["content"], str):
            raise InvalidTextError(f"the content of message {index} of the prompt is not text")
        _check_text(message["content"], f"message {index} of the prompt")


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(f"{what} is not valid Unicode text: {error}") from error
