"""Strings that contain one of several texts."""

from __future__ import annotations

from collections.abc import Collection

from structgen.schema.nodes import Pattern

_SPECIAL = frozenset("\\.+*?()|[]{}^$#&-~")


def minimal_texts(texts: Collection[str]) -> tuple[str, ...]:
    """The texts sorted, without those that contain another one."""
    found = set(texts)
    return tuple(sorted(text for text in found if not any(o != text and o in text for o in found)))


def containing(texts: Collection[str], *, negated: bool = False) -> Pattern:
    """The strings that contain one of `texts`."""
    return Pattern("|".join(map(_escaped, texts)), negated=negated)


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)
