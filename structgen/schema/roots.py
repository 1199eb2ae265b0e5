"""What can be generated besides JSON: choices, patterns, free text, and sequences of parts."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, overload

from structgen.errors import OptionError
from structgen.schema.nodes import Dialect
from structgen.schema.substrings import minimal_texts

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Form(Generic[T_co]):
    """A text of a certain form that is no JSON, and the value that is read from it.

    `Regex`, `OneOf`, `SomeOf`, `Text`, `Sequence` and `Thinking` are all there are. Each may stand
    wherever a Pydantic model may, and in a `Sequence`. They are immutable.
    """

    __slots__ = ()


class Regex(Form[str]):
    r"""A text that a regular expression matches as a whole; its value is the text.

    Example: `sg.generate(sg.Regex(r"\d{10}"), "An ISBN.") -> "0306406152"`

    Args:
        pattern: matches the whole text, as if it stood between `^(?:` and `)$`.
        dialect: `rust`, the default engine of Pydantic, or `ecma`, as in JSON Schema.
    """

    __slots__ = ("dialect", "pattern")

    def __init__(self, pattern: str, *, dialect: Dialect = "rust") -> None:
        if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise OptionError(
                f"the pattern of a Regex is a str, got {pattern!r}; Python's compiled patterns "
                "have rules of their own"
            )
        if dialect not in get_args(Dialect):
            raise OptionError(f"dialect={dialect!r} is unknown; use one of {get_args(Dialect)}")
        self.pattern = pattern
        self.dialect: Dialect = dialect

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"


class OneOf(Form[T_co]):
    """One of several values, written as plain text without quotes; its value is that value.

    Strings are written as they are, other values as in JSON: `1`, `true`, `null`. Of an enum member
    the value is written, and the member comes back.

    Example: `sg.generate(sg.OneOf(["billing", "sales"]), "...") -> "sales"`

    Args:
        choices: strings, numbers, booleans, None or enum members; or a mapping from the texts that
            are written to values of any kind.
    """

    __slots__ = ("choices", "texts")

    def __init__(self, choices: Iterable[T_co] | Mapping[str, T_co]) -> None:
        if isinstance(choices, str | bytes) or not isinstance(choices, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise OptionError(f"OneOf takes a list of choices, got {choices!r}")
        self.texts: tuple[object, ...] = tuple(choices)
        """What is written, before it is made text."""
        is_map = isinstance(choices, Mapping)
        self.choices: tuple[T_co, ...] = tuple(choices.values()) if is_map else tuple(self.texts)  # pyright: ignore[reportAttributeAccessIssue]  # not narrowed
        """The values, in the same order."""

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.texts[:4])) + ", ..." * (len(self.texts) > 4)
        return f"OneOf([{shown}])"


class SomeOf(Form[list[T]]):
    r"""Several of some values, written as plain text; its value is a list in the written order.

    What was chosen is not chosen again. After a complete choice the model may end the list or write
    the separator, and where nothing is left it ends.

    Example: `sg.generate(sg.SomeOf(["red", "green", "blue"]), "...") -> ["blue", "red"]`

    Args:
        choices: as in `OneOf`.
        separator: stands between two of them.
        min_items, max_items: how many there are; with 0 the text may be empty.
    """

    __slots__ = ("choices", "max_items", "min_items", "separator")

    def __init__(
        self,
        choices: Iterable[T] | Mapping[str, T],
        *,
        separator: str = ", ",
        min_items: int = 1,
        max_items: int | None = None,
    ) -> None:
        if not isinstance(separator, str) or not separator or not _is_text(separator):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise OptionError(f"separator={separator!r} must be a text that is not empty")
        self.choices = OneOf[T](choices)
        """What each of them may be."""
        self.separator = separator
        self.min_items = _count("min_items", min_items, 0) or 0
        self.max_items = _count("max_items", max_items, 1)
        if self.max_items is not None and self.min_items > self.max_items:
            raise OptionError(f"min_items={min_items} is more than max_items={max_items}")

    def __repr__(self) -> str:
        return f"SomeOf({self.choices!r}, separator={self.separator!r})"


class Text(Form[str]):
    r"""Free text, written as it is and not as a JSON string; its value is the text.

    Example: `sg.generate(sg.Text(stop="\n"), "A title.") -> "The Tin Drum"`

    Args:
        stop: the text goes up to the first of these strings, which is written too but is no part
            of the value. Without a stop the model ends the text where it likes.
        max_tokens: once so many tokens of text are written, the text ends with the next whole
            character; the stop string and what follows come on top.
        min_length, max_length: bounds in characters, the stop string not counted.
    """

    __slots__ = ("max_length", "max_tokens", "min_length", "stop")

    def __init__(
        self,
        *,
        stop: str | Iterable[str] | None = None,
        max_tokens: int | None = None,
        min_length: int = 0,
        max_length: int | None = None,
    ) -> None:
        self.stop = _stops(stop)
        """Those of the stop strings that contain no other."""
        self.max_tokens = _count("max_tokens", max_tokens, 1)
        self.min_length = _count("min_length", min_length, 0) or 0
        self.max_length = _count("max_length", max_length, 0)

    def __repr__(self) -> str:
        names = ("stop", "max_tokens", "min_length", "max_length")
        given = [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name)]
        return f"Text({', '.join(given)})"


class Sequence(Form[T_co]):
    r"""Several parts, each right behind the one before.

    A part is a `str`, which is written as it is and has no value, or anything else that can be
    generated: a Pydantic model or other type, which is written as JSON, a `Literal` or an enum,
    `Text`, `Regex`, `OneOf`, another sequence. The value is a tuple of the parts' values; with
    keywords it is a named tuple.

    Example: `sg.Sequence("Title: ", title=sg.Text(stop="\n"), book=Book)`
    """

    __slots__ = ("make", "parts")

    @overload
    def __init__(self: Sequence[tuple[Any, ...]], *parts: Any) -> None: ...
    @overload
    def __init__(self: Sequence[Any], *parts: str, **named: Any) -> None: ...
    def __init__(self, *parts: Any, **named: Any) -> None:
        nameless = [part for part in parts if not isinstance(part, str)]
        if nameless and named:
            raise OptionError(
                f"a Sequence names all of its parts or none; {nameless[0]!r} has no name"
            )
        self.parts: tuple[tuple[str, Any], ...] = (*(("", p) for p in parts), *named.items())
        """(name or nothing, part); parts that are strings are constants."""
        names = [name for name, part in named.items() if not isinstance(part, str)]
        if not nameless and not names:
            raise OptionError("a Sequence of constants leaves nothing to generate")
        self.make: Callable[[list[Any]], Any] = _named_tuple(names) if names else tuple
        """Makes the value out of the values of the parts that have one."""

    def __repr__(self) -> str:
        shown = (f"{name}=" * bool(name) + _shown(part) for name, part in self.parts)
        return f"{type(self).__name__}({', '.join(shown)})"


class Thought(NamedTuple, Generic[T]):
    """The value of `Thinking`."""

    thought: str
    answer: T


class Thinking(Sequence[Thought[T]]):
    """Free reasoning between two tags, then an answer; its value has `thought` and `answer`.

    Example: `thought, triage = sg.generate(sg.Thinking(Triage, max_tokens=200), "...")`

    Args:
        answer: anything that can be generated.
        max_tokens: as in `Text`, bounds the reasoning alone.
        start: what opens the reasoning; empty where the chat template has written it already.
        stop: what ends it.
        gap: what stands between the reasoning and the answer.
    """

    __slots__ = ()

    def __init__(
        self,
        answer: type[T] | Form[T] | Any,
        *,
        max_tokens: int | None = None,
        start: str = "<think>\n",
        stop: str = "</think>",
        gap: str = "\n\n",
    ) -> None:
        thought = Text(stop=stop, max_tokens=max_tokens)
        super().__init__(start, thought=thought, gap=gap, answer=answer)
        self.make = Thought._make

    def __repr__(self) -> str:
        return f"Thinking({_shown(dict(self.parts)['answer'])})"


def _shown(part: object) -> str:
    return part.__name__ if isinstance(part, type) else repr(part)


def _named_tuple(names: list[str]) -> Callable[[list[Any]], Any]:
    try:
        # Only at run time are the names known, and the types nowhere.
        return namedtuple("Values", names)._make  # pyright: ignore[reportUntypedNamedTuple]
    except ValueError as error:
        raise OptionError(f"a part of a Sequence cannot have this name: {error}") from error


def _stops(stop: object) -> tuple[str, ...]:
    if stop is None:
        return ()
    texts: list[object] = [stop]
    if isinstance(stop, Iterable) and not isinstance(stop, str):
        texts = [*cast("Iterable[object]", stop)]
    found = [text for text in texts if isinstance(text, str) and text and _is_text(text)]
    if len(found) < len(texts) or not found:
        raise OptionError(f"stop={stop!r} must be a text, or a list of texts, that are not empty")
    return minimal_texts(found)


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _count(name: str, value: object, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name}={value!r} must be a whole number from {least} up")
    return value
