"""The choices of a `Literal`, an enum or a `OneOf`, each with the text that stands for it."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import itemgetter
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from structgen.errors import Fault
from structgen.schema.roots import OneOf


def is_choices(source: Any) -> bool:
    """Whether a type is a set of choices."""
    if isinstance(source, OneOf):
        return True
    source = bare_type(source)
    if isinstance(source, enum.EnumMeta):
        return len(source) > 0
    return get_origin(source) is Literal


def choices_of(source: Any) -> list[tuple[object, Any]] | None:
    """(what is written, value) for each choice; None for what is no set of choices."""
    if isinstance(source, OneOf):
        chosen = cast("OneOf[Any]", source)
        return list(zip(chosen.texts, chosen.choices, strict=True))
    source = bare_type(source)
    if isinstance(source, enum.EnumMeta):
        # Without members it is a base class for enums: nothing to choose from.
        members: list[Any] = list(source)
        return [(member, member) for member in members] or None
    if get_origin(source) is Literal:
        return [(value, value) for value in get_args(source)]
    return None


def bare_type(source: Any) -> Any:
    """A type without metadata and without the name that a `type` statement gives it."""
    while True:
        if get_origin(source) is Annotated:
            source = get_args(source)[0]
        elif type(source).__name__ == "TypeAliasType":
            source = source.__value__
        else:
            return source


def bare_texts(
    choices: Iterable[tuple[object, Any]], path: str
) -> tuple[dict[str, Any], list[Fault]]:
    """The value of each text, and what cannot be written.

    Example: `[("a", "a"), (True, True)]` -> `{"a": "a", "true": True}`
    """
    choices = list(choices)
    found = _all_texts(choices)
    if found:
        return found, []
    faults: list[Fault] = []
    for choice, value in choices:
        try:
            text = _text(choice)
        except ValueError:  # Python refuses to write it
            faults.append(Fault(path, "a choice has too many digits to be written", "use a str"))
            continue
        shown = choice.value if isinstance(choice, enum.Enum) else choice
        if text is None:
            problem, advice = f"the choice {shown!r} has no JSON form", "use a str or an int"
            faults.append(Fault(path, problem, advice))
        elif any("\ud800" <= char <= "\udfff" for char in text):
            problem = f"the choice {choice!r} holds a lone surrogate and is not text"
            faults.append(Fault(path, problem))
        elif text in found and not _same(found[text], value):
            problem = f"the choices {found[text]!r} and {value!r} are both written {text!r}"
            advice = "leave one out, or use OneOf({text: value, ...})"
            faults.append(Fault(path, problem, advice))
        else:
            found[text] = value
    if not found and not faults:
        faults.append(Fault(path, "the set of choices is empty"))
    return found, faults


def _all_texts(choices: list[tuple[object, Any]]) -> dict[str, Any]:
    """The value of each choice where all are different texts that can be written, else nothing."""
    if set(map(type, map(itemgetter(0), choices))) == {str}:
        found = dict(cast("list[tuple[str, Any]]", choices))
        if len(found) == len(choices):
            with suppress(UnicodeEncodeError):
                if not all(map(str.isascii, found)):
                    list(map(str.encode, found))
                return found
    return {}


def _text(choice: object) -> str | None:
    plain = choice.value if isinstance(choice, enum.Enum) else choice
    if isinstance(plain, str):
        return str.__str__(plain)
    if isinstance(plain, float) and not math.isfinite(plain):
        return None
    return json.dumps(plain) if plain is None or isinstance(plain, int | float) else None


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def value_of(texts: Mapping[str, Any], text: str) -> Any:
    """The value that a text stands for; ValueError where it stands for none."""
    if text not in texts:
        raise ValueError(f"{text!r} is none of the choices")
    return texts[text]
