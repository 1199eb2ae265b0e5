"""URLs that Pydantic reads, in one canonical form.

    scheme://[user[:password]@]host[:port][/path][?query][#fragment]

The host is a name of lower-case ASCII labels whose last one begins with a letter, or an IPv4
address; `file` has a path and no host. Others, such as `mailto:` or IPv6 hosts, are not written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from structgen.schema.formats import IPV4, PORT, whole
from structgen.schema.nodes import Never, Node, Pattern, String

_TEXT = "[A-Za-z0-9._~!$&()*+,;=:@%/?#-]"
_LABEL = "[a-z0-9]+(?:-[a-z0-9]+)*"
_LAST = "[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
_USER = "[A-Za-z0-9._~-]"
_HOST = rf"(?:(?:{_LABEL}\.)*{_LAST}|{IPV4})"
_SHORT = rf"(?:(?:[a-z0-9]{{1,32}}(?:-[a-z0-9]{{1,30}})?\.){{0,2}}[a-z][a-z0-9]{{0,31}}|{IPV4})"
"""A host of at most 160 characters."""

COUNTED = 300
"""Up to this length characters are counted in every state of the automaton."""
_LONGEST_HEAD = 240
"""What a URL that is not counted has between its scheme and its path."""
_MOST_BEHIND = 500
"""Characters behind the host of a URL that is not counted."""


def url_node(schemes: Sequence[str] | None, max_length: int | None, several_hosts: bool) -> Node:
    """URLs of some schemes, or of any.

    Args:
        several_hosts: whether commas may separate hosts, as in `postgres://a,b/c`.
    """
    named = None if schemes is None else [re.escape(s) for s in schemes if s != "file"]
    options: list[str] = []
    counted = max_length is None or max_length <= COUNTED
    if named is None or named:
        scheme = "[a-z][a-z0-9+.-]{0,31}" if named is None else "(?:" + "|".join(named) + ")"
        left = (max_length or 0) - max(map(len, schemes or ["x" * 32]))
        rest = _free(several_hosts) if counted else _bounded(left)
        options.append(f"{scheme}://{rest}")
    if (schemes is None or "file" in schemes) and not several_hosts:
        most = "*" if counted else "{0,290}"
        options.append(f"file:///[A-Za-z0-9._~!$&()+,;=@/-]{most}")
    if not options:
        return Never("no scheme is allowed for it")
    patterns = [whole("|".join(options))]
    if schemes is None:
        patterns.append(Pattern("^file://(?:$|[^/])", negated=True))
    name = "url" if schemes is None or len(schemes) > 3 else f"{' or '.join(schemes)} url"
    return String(0, max_length if counted else None, tuple(patterns), name=name)


def _free(several_hosts: bool) -> str:
    place = f"{_HOST}(?::{PORT})?"
    hosts = f"{place}(?:,{place})*" if several_hosts else place
    return f"(?:{_USER}+(?::{_USER}+)?@)?{hosts}(?:[/?#]{_TEXT}*)?"


def _bounded(left: int) -> str:
    """Every part has a length of its own, which together are at most `left`."""
    behind = max(min(left - _LONGEST_HEAD, _MOST_BEHIND), 0)
    user = f"(?:{_USER}{{1,32}}(?::{_USER}{{1,32}})?@)?"
    return f"{user}{_SHORT}(?::{PORT})?(?:[/?#]{_TEXT}{{0,{behind}}})?"
