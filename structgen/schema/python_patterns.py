"""Patterns of Python's `re` that mean the same in the Rust engine."""

from __future__ import annotations

import re

_PART = re.compile(
    r"""
    (?: [A-Za-z0-9_\ ,:;@#%=~<>!'"/-] | \. | \\[.\-+*?()\[\]{}|^$/\\]   # one character
      | \[\^?(?:[A-Za-z0-9_ ,:;@#%=.+*/]|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9])+-?\]
      | \((?:\?:)? | \) )
    (?: [*+?]\?? | \{[0-9]+(?:,[0-9]*)?\}\?? )?                         # how often
    (?![*+?{])
    | \|
    """,
    re.VERBOSE,
)


def rust_source(pattern: object) -> str | None:
    r"""The same pattern for the Rust engine, None where it may differ.

    Only ASCII literals, simple sets, groups and quantifiers, `^` first and `\Z` last are the same:
    `$`, `\d`, `\s`, `\b`, flags and look-around are not.
    """
    if isinstance(pattern, re.Pattern):
        if pattern.flags != re.UNICODE or not isinstance(pattern.pattern, str):
            return None
        source: str = pattern.pattern
    elif isinstance(pattern, str):
        source = pattern
    else:
        return None
    start = "^" if source.startswith("^") else ""
    end = "$" if source.endswith(r"\Z") else ""
    body = source[len(start) : len(source) - 2 * len(end)]
    if (start or end) and "|" in body:
        return None
    at = 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None:
            return None
        at = part.end()
    return start + body + end
