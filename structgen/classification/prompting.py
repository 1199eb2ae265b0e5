"""What a model is asked: the task, the labels, worked examples, and the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard, TypeVar

from structgen.batch import OnError
from structgen.errors import InvalidTextError, OptionError, UsageError
from structgen.prompts import Prompt, check_prompt

T = TypeVar("T")

Place: TypeAlias = tuple[int | None, object]
"""A text with its index among others, None where there are none."""

INSTRUCTIONS = "Decide which category the text belongs to."
LISTED = "The categories are:\n{labels}"
NUMBERED = "The categories are:\n{labels}\nAnswer with the number of one category, nothing else."
NAMED = "Answer with one category, exactly as it is written, and nothing else."
MOST_LISTED = 300
"""Labels up to which the prompt lists them, unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The labels that one question offers."""

    labels: tuple[str, ...]
    """As the classification names them."""
    written: tuple[str, ...]
    """As the model writes them; in the same order."""
    descriptions: tuple[str, ...] = ()
    """One for each label, empty where there is none; or none at all."""
    listed: bool = True
    """The prompt shows them."""
    numbered: bool = False
    """The model writes their numbers."""

    def lines(self) -> str:
        """The labels as the prompt shows them."""
        notes = self.descriptions or ("",) * len(self.labels)
        marks = [f"{text}." if self.numbered else "-" for text in self.written]
        names = [
            label if self.numbered or label == text else f"{text}: {label}"
            for label, text in zip(self.labels, self.written, strict=True)
        ]
        rows = zip(marks, names, notes, strict=True)
        return "\n".join(f"{mark} {name}" + f": {note}" * bool(note) for mark, name, note in rows)

    def answer(self, label: str) -> str:
        """How the model writes a label."""
        return self.written[self.labels.index(label)]


@dataclass(frozen=True, slots=True)
class Question:
    """How a text is put to a model; the text comes last, so that what is before can be shared.

    Example: `Question().ask("My card ...", choices)` -> one chat message
    """

    instructions: str = INSTRUCTIONS
    examples: tuple[tuple[str, str], ...] = ()
    """Pairs of a text and its label, as turns of the chat."""
    frame: str = field(default="Text: {text}\nCategory:")

    def ask(self, text: str, choices: Choices) -> Prompt:
        """Chat messages: the first one also holds the task."""
        messages: list[dict[str, str]] = []
        for example, label in self.examples:
            if label not in choices.labels:  # a shortlist has left it out
                continue
            messages.append({"role": "user", "content": self.framed(example)})
            messages.append({"role": "assistant", "content": choices.answer(label)})
        messages.append({"role": "user", "content": self.framed(text)})
        first = messages[0]
        messages[0] = {**first, "content": f"{self.task(choices)}\n\n{first['content']}"}
        return messages

    def task(self, choices: Choices) -> str:
        """The instructions and, where they are shown, the labels."""
        if not choices.listed:
            return f"{self.instructions} {NAMED}"
        listed = (NUMBERED if choices.numbered else LISTED).replace("{labels}", choices.lines())
        return f"{self.instructions} {listed}" + f"\n{NAMED}" * (not choices.numbered)

    def framed(self, text: str) -> str:
        """One text as the prompt shows it."""
        return self.frame.replace("{text}", text)


def check_texts(texts: Iterable[object]) -> list[str]:
    """The texts, which are all strings.

    Raises:
        InvalidTextError: one is no text, or holds a lone surrogate.
    """
    refuse_text(texts)
    return [check_text(text, index) for index, text in enumerate(texts)]


def refuse_text(texts: object) -> None:
    """Refuse one text where many are taken."""
    if isinstance(texts, str | bytes):
        raise OptionError("classify_many takes a list of texts; use classify for one")


def check_text(text: object, index: int | None = None) -> str:
    """One text, which is a string; `index` is its place among others."""
    name = "the text" if index is None else f"text {index}"
    if not isinstance(text, str):
        raise InvalidTextError(f"{name} is {type(text).__name__}, not str: {text!r:.80}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(f"{name} is not valid Unicode text: {error}") from error
    return text


def made_of(make: Callable[[str], T], place: Place, on_error: OnError) -> T | UsageError:
    """What is made of a text, or what is wrong with the text where errors are returned."""
    index, text = place
    try:
        return make(check_text(text, index))
    except UsageError as error:
        if on_error == "return" and is_of_text(error):
            return error
        if index is not None:
            error.add_note(f"structgen: this was text {index}")
        raise


def is_of_text(error: object) -> TypeGuard[UsageError]:
    """Whether an error says something of the text; wrong options would fail for every text."""
    return isinstance(error, UsageError) and not isinstance(error, OptionError)


def prompt_by(function: Callable[[str], Prompt], text: str) -> Prompt:
    """The prompt that a function of the caller makes of a text.

    Raises:
        OptionError: it fails, or returns what is no prompt; that is no fault of the text.
    """
    name = getattr(function, "__qualname__", None) or repr(function)
    try:
        made = function(text)
    except Exception as error:
        raise OptionError(
            f"the prompt function {name} raised {type(error).__name__}: {error}"
        ) from error
    try:
        check_prompt(made)
    except UsageError as error:
        raise OptionError(f"the prompt function {name} returned {made!r:.80}: {error}") from error
    return made


def check_examples(
    examples: Iterable[tuple[str, str]], labels: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Worked examples, whose labels are all known."""
    pairs = tuple((text, label) for text, label in examples)
    unknown = sorted({label for _, label in pairs} - set(labels))
    if unknown:
        raise OptionError(f"examples have labels that are not in the taxonomy: {unknown[:5]}")
    check_texts(text for text, _ in pairs)
    return pairs
