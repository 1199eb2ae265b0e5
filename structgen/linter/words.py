"""Names of fields and texts of labels, taken apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from structgen.schema.nodes import Labels

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_A-Za-z]+|\d+")


def words(name: str) -> list[str]:
    """The words of a name: `orderStatus_2` is `["order", "status", "2"]`."""
    return [word.casefold() for word in _WORD.findall(name)]


def texts(node: Labels) -> list[str]:
    """The labels that are strings, as plain text in the author's order."""
    found = (json.loads(text) for text in node.declared or node.texts)
    return [text for text in found if isinstance(text, str)]


def all_texts(node: Labels) -> list[str] | None:
    """The labels, where all but null are strings."""
    found = texts(node)
    return found if len(found) == len(node.texts) - (b"null" in node.texts) else None


def listed(items: Iterable[str], most: int = 5) -> str:
    """A short enumeration: `'a', 'b' and 3 more`."""
    shown = list(items)
    head = ", ".join(map(repr, shown[:most]))
    return head if len(shown) <= most else f"{head} and {len(shown) - most} more"
