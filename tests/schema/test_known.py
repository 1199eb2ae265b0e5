"""The automata of formats that come with the library."""

from __future__ import annotations

import pytest

from structgen.schema.known import format_patterns, known_dfa
from structgen.schema.nodes import Pattern
from structgen.schema.strings import content_dfa, worked_out


@pytest.mark.parametrize("name", sorted(format_patterns()))
def test_each_file_holds_what_would_be_worked_out(name: str) -> None:
    """If this fails, a format was changed: run `python -m structgen.schema.known`."""
    patterns = format_patterns()[name]
    assert known_dfa(patterns) == (worked_out(patterns), len(patterns))


def test_the_patterns_of_a_format_are_found_among_others() -> None:
    mail = format_patterns()["email"]
    own = Pattern("^a")
    assert content_dfa((own, *mail, own), ()) == worked_out((own, *mail))
    assert content_dfa((own, *mail[:-1]), ()) == worked_out((own, *mail[:-1]))
    assert known_dfa((own,)) is None
    assert known_dfa(mail[:1]) is None
