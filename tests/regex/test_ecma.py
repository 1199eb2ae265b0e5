"""The dialect `ecma` against hand-written tables, and where they agree against `re`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen import regex

TABLE = [
    # pattern, texts in which it is found, texts in which it is not
    ("^a+$", ["a", "aa"], ["", "ab", "a\n"]),
    ("a", ["a", "bab"], ["", "b"]),
    ("", ["", "x"], []),
    ("^$", [""], ["a", "\n"]),
    ("^a|b$", ["ax", "xb"], ["xa", "bx"]),
    (".", ["a", " ", "\x85"], ["", "\n", "\r", "\u2028", "\u2029"]),
    (r"^\d$", ["5"], ["٣", "a"]),
    (r"^\D$", ["٣", "a"], ["5"]),
    (r"^\w$", ["_", "Z"], ["é", "-"]),
    (r"^\s$", list(" \t\n\v\f\r\xa0\ufeff\u2028\u2029\u3000\u1680"), ["\x85", "\u200b", "\x1c"]),
    (r"^\S$", ["\x85", "\u200b"], ["\ufeff", " "]),
    (r"^\cJ$", ["\n"], ["J"]),
    (r"^\x41\u0042\u{1F600}\ud83d\uDE00$", ["AB😀😀"], ["AB😀"]),
    (r"^[\ud83d\ude00-\ud83d\ude02]$", ["😁"], ["\U0001f5ff"]),
    (r"^[\ud800-\udfff]$", [], ["a", "😀"]),
    (r"^[^]$", ["\n", "a"], [""]),
    ("^[]$", [], ["", "a"]),
    (r"^[\b]\0$", ["\b\0"], ["b0"]),
    (r"^[\w-.]+$", ["a-."], ["+"]),
    (r"^[a-\d]+$", ["a-1"], ["b"]),
    (r"^\-\_\"\'\ \@\#$", ["-_\"' @#"], []),
    ("^{a}]$", ["{a}]"], []),
    (r"^\{\d{2}}$", ["{12}"], ["12"]),
    (r"^(?<year>\d{4})-(?P<month>\d\d)$", ["2024-05"], ["24-05"]),
    (r"^\p{Lu}\p{Script=Greek}\P{L}$", ["É\u03b11"], ["é\u03b11", "Éb1", "É\u03b1x"]),
    (r"^(?i:straße)$", ["STRAẞE"], ["strasse"]),
    (r"(?i)^k$", ["K", "k", "\u212a"], ["x"]),
    (r"^(?i:\w)$", ["\u017f", "\u212a"], ["é"]),
    (r"\bfoo\b", ["foo", "a foo.", "éfoo"], ["afoo", "foo_"]),
    (r"\Boo", ["foo"], ["oo", " oo"]),
    (r"^a\b$", ["a"], ["a "]),
    ("a$b", [], ["ab", "a\nb"]),
    ("(^|x)a($|y)", ["a", "xa", "ay", "bxayb"], ["ba", "ab"]),
    ("^(?!foo)[a-z]+$", ["bar", "fo"], ["foo", "foobar", ""]),
    ("^(?!.*foo).*$", ["bar"], ["a foo"]),
    ("^((?!foo).)*$", ["bar", "", "fo"], ["foo", "afoob"]),
    (r"^(?=.*\d)(?=.*[a-z])[^ ]{3,}$", ["a1b", "11a"], ["a1", "abc", "a 1b"]),
    ("^(?!-)[a-z-]{1,5}(?<!-)$", ["a-b", "a"], ["-a", "a-", ""]),
    ("(?<=a)b(?=c)", ["abc"], ["bbc", "abb"]),
    (r"^(?=.*\bfoo\b)(?!.*\bbar\b).*$", ["a foo", "foo rebar"], ["food", "foo bar"]),
    (r"x(?=\b)", ["x", "x y"], ["xy"]),
    (r"(?<=\bfoo)!", ["foo!"], ["afoo!", "foo"]),
    (r"(?:\d{1,3}(?:\.(?!$)|$)){4}", ["1.2.3.4"], ["1.2.3", "1.2.3.4."]),
    ("a(?=b(?!c))", ["ab", "abd"], ["abc", "a"]),
    ("^.{2}$", ["😀é"], ["é", "\u0301"]),
    ("^a{0}$", [""], ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "yes", "no"), TABLE)
def test_a_pattern_is_found_where_ecmascript_finds_it(pattern: str, yes: list[str], no: list[str]):
    dfa = regex.search(pattern, "ecma")
    assert [text for text in yes if not regex.matches(dfa, text)] == []
    assert [text for text in no if regex.matches(dfa, text)] == []


INVALID = [  # with the position that is named
    ("(", 0), ("a)", 1), ("[a", 0), ("[z-a]", 1), ("a{2,1}", 1), ("*a", 0), ("a**", 2), ("a++", 2),
    ("a{1}{2}", 4), ("^*", 1), (r"a\1", 1), (r"(?<n>a)\k<n>", 7), (r"\A", 0), (r"\Z", 0),
    (r"\a", 0), (r"\u12", 2), (r"\x1", 2), (r"\p{Foo}", 0), (r"\pL", 0), (r"\u{110000}", 10),
    ("(?>a)", 0), ("(?x)a", 0), ("a(?i)b", 1), ("(?#c)", 0), ("a{,3}", 1), ("\\", 1), (r"\01", 0),
    ("(?=a(?<=b))", 4), ("x{9999999999}", 1), ("(?<1>a)", 0),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "position"), INVALID)
def test_what_is_invalid_or_not_supported_is_refused_with_its_position(pattern: str, position: int):
    with pytest.raises(regex.PatternError, match=f"at position {position} "):
        regex.search(pattern, "ecma")


def patterns(pieces: list[str]) -> st.SearchStrategy[str]:
    counts = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}?", "{0,3}", "{2,4}", "{0}"]

    def bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(counts)).map(lambda pair: f"({pair[0]}){pair[1]}"),
            st.tuples(st.sampled_from(["?=", "?!", "?<!", "?<="]), inner).map(
                lambda pair: f"({pair[0]}{pair[1]})"
            ),
        )

    return st.recursive(st.sampled_from(pieces), bigger, max_leaves=8)


PIECES = ["a", "b", "ab", ".", "[ab]", "[^a]", r"\w", r"\W", r"\d", "é", "^", "$", r"\b", r"\B"]


def mixed_look_around(pattern: str) -> bool:
    """Whether look-ahead and look-behind are nested in each other."""
    open_groups: list[str] = []
    for at, char in enumerate(pattern):
        if char == "(":
            kind = {"?=": "ahead", "?!": "ahead", "?<": "behind"}.get(pattern[at + 1 : at + 3], "")
            if kind and ({"ahead", "behind"} - {kind}) & set(open_groups):
                return True
            open_groups.append(kind)
        elif char == ")":
            open_groups.pop()
    return False


@settings(max_examples=400, deadline=None)
@given(patterns(PIECES), st.lists(st.text("aabbcé1-", max_size=6), min_size=10, max_size=20))
def test_random_patterns_match_what_the_regex_module_matches(pattern: str, texts: list[str]):
    # `re` refuses look-behind of variable width; the other differences do not occur here.
    module = pytest.importorskip("regex")
    twin = module.compile(pattern.replace("$", r"\Z"), module.ASCII)
    if mixed_look_around(pattern):
        with pytest.raises(regex.PatternError, match="inside each other"):
            regex.search(pattern, "ecma")
        return
    found, whole = regex.search(pattern, "ecma"), regex.full(pattern, "ecma")
    for text in ["", *texts]:
        assert regex.matches(found, text) == (twin.search(text) is not None), text
        assert regex.matches(whole, text) == (twin.fullmatch(text) is not None), text


def test_full_matches_the_whole_text():
    dfa = regex.full("a|ab", "ecma")
    assert regex.strings(dfa, 10) == ["a", "ab"]
    assert regex.strings(regex.full(r"\d{2}", "ecma"), 100) == [f"{n:02}" for n in range(100)]


@pytest.mark.parametrize("pattern", [r"\P{L}", r"[^\p{L}]", r"\p{L}", r"(?!\p{L}|\P{L})[^]"])
def test_characters_unknown_to_unicode_yet_are_in_no_class_for_sure(pattern: str):
    dfa = regex.full(pattern, "ecma")
    assert not regex.matches(dfa, "\U000e0fff")
    assert regex.matches(regex.full("[^a]", "ecma"), "\U000e0fff")
