"""The dialect `rust` against pydantic itself, whose default engine it describes."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from structgen import regex

PIECES = [
    "a", "b", "x", ".", r"\d", r"\w", r"\W", r"\s", r"\S", "[ab]", "[^a]", r"[^a-c\d]", "é", r"\n",
    '"', r"\\", "^", "$", r"\b", r"\B", r"\A", r"\z", "[[:alpha:]]", r"[\w--a]", "[a-z&&[^b]]",
    r"\p{Lu}", r"\P{L}", "(?i:k)", "(?i:É)", r"[^\W]", "(?-s:.)", "(?s:.)", r"\b{start}",
    r"\b{end}", r"\b{start-half}", r"\b{end-half}", "(?m:^)", "(?m:$)", "-", "]", "}", r"\x41",
    r"\u{1F600}", r"[\s\d]", "[-a]", "[]a]", r"\<", "(?i)", "(?x) a b # c\n", "[[a-c]~~[b-d]]",
    r"\p{Greek}", r"\p{Alphabetic}", "",
]  # fmt: skip
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}?", "*?", "{0}", "{ 2 }", "**"]
TEXT_CHARS = 'aabbxcAké \n\r"\\É1KK\u017f😀-\u2028\u0301]\u03b1\U000e0fff'


def patterns() -> st.SearchStrategy[str]:
    def bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda p: f"({p[0]}){p[1]}"),
            st.tuples(st.sampled_from(["i", "s", "m", "im", "x", "i-s"]), inner).map(
                lambda pair: f"(?{pair[0]}:{pair[1]})"
            ),
        )

    return st.recursive(st.sampled_from(PIECES), bigger, max_leaves=7)


def pydantic_type(pattern: str) -> TypeAdapter[str] | None:
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except SchemaError:
        return None


def accepts(adapter: TypeAdapter[str], text: str) -> bool:
    try:
        adapter.validate_python(text)
    except ValidationError:
        return False
    return True


def compiled(pattern: str) -> regex.Dfa | None:
    try:
        return regex.search(pattern, "rust")
    except regex.PatternError:
        return None


@settings(max_examples=300, deadline=None)
@given(patterns(), st.lists(st.text(TEXT_CHARS, max_size=6), min_size=10, max_size=20))
def test_random_patterns_match_what_pydantic_accepts(pattern: str, texts: list[str]):
    adapter = pydantic_type(pattern)
    dfa = compiled(pattern)
    assert (adapter is None) == (dfa is None)
    if adapter is not None and dfa is not None:
        for text in ["", *texts]:
            known = "\U000e0fff" not in text
            if known or regex.matches(dfa, text):
                assert regex.matches(dfa, text) == accepts(adapter, text), text


SYNTAX = [
    "a{ 2 }", "a{2, 3}", "(?x)a{ 2 , 3 }", "(?x)a {2}", "a{2}{3}", "a**", "^*", "(?i)*", "|*",
    "(*)", "()", "(|)", "a||b", "{", "}", "]", "a{", "a{}", "a{x}", "a{,3}", "a{1,}", "a{2 3}",
    "[a", "[]", "[^]", "[]]", "[^]]", "[a-]", "[-a]", "[a-z-9]", "[--a]", "[a--b]", "[a&&]",
    "[&&a]", r"[a-\d]", r"[\d-a]", "[[:foo:]]", "[[:^alpha:]]", "[:alpha:]", "[a[b]c]", r"\_",
    r"\-", r"\%", r"\'", r"\ ", r"\<", r"\/", r"\é", r"\y", r"\Z", r"\1", r"\0", r"\x4", r"\x{}",
    r"\x{110000}", r"\x{0000000000041}", r"\u00e9", r"\U0001F600", r"\uD83D", r"\p{Foo}", r"\pL",
    r"\p{L", r"\p{gc=Lu}", r"\p{gc!=Lu}", r"\p{sc=Greek}", r"\p{ lu }", "(?P<a>b)", "(?<a>b)",
    "(?P<a>b)(?P<a>c)", "(?P<1>b)", "(?P<>x)", "(?P=a)", "(?a)", "(?)", "(?-)", "(?:)", "(?-:a)",
    "(?ii)", "(?i-i)", "(?i-)", "(?i-:a)", "(?u)", "(?U)a+", "(?#c)", "(?=a)", "(?!a)", "(?<=a)",
    "(?>a)", "a++", "a??", "a???", "(a", "a)", "\\", r"[\b]", r"[\A]", r"\b{foo}", r"\b{",
    r"\b{start", r"[\x61-b]", "[z-a]", "a{3,2}", "a{0}", r"[^\x00-\x{10FFFF}]", r"\cA", r"\e",
    r"\a", r"\v", r"\h", r"\Q.\E", "(?x) [a b]", "(?x)[ ^a]", "(?x)[a # c\n]", r"(?x)a\ b",
    "[^a&&b]", "[a&&b&&c]", "[a-c--b&&a]", "(?i", "(?P<a", "[a-", "[a\\", "(?m)$^", "[--]", "[-]",
    "[---a]", "[[a]-z]", "[a-[b]]", "[a--]", "(?i)[^k]", "(?i)ss|ß",
]  # fmt: skip
PROBES = [
    "",
    *"abckz&-A~[]^ édm:1\n!+E\u03b1{},'%<_",
    "aa",
    "aaa",
    "a&",
    "ab",
    "a b",
    ":]",
    "K",
    "ẞ",
]


@pytest.mark.parametrize("pattern", SYNTAX)
def test_the_corners_of_the_syntax_are_pydantics(pattern: str):
    adapter = pydantic_type(pattern)
    dfa = compiled(pattern)
    assert (adapter is None) == (dfa is None)
    if adapter is not None and dfa is not None:
        for probe in [*PROBES, "aaaaaa"]:
            assert regex.matches(dfa, probe) == accepts(adapter, probe), probe


@pytest.mark.parametrize("pattern", ["(?-u)a", "(?R)a", r"\p{scx=Greek}"])
def test_what_is_refused_although_pydantic_knows_it(pattern: str):
    assert pydantic_type(pattern) is not None
    with pytest.raises(regex.PatternError, match="at position 0"):
        regex.search(pattern, "rust")


ALL_CHARS = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE0200)]))


@pytest.mark.parametrize(
    "char_class",
    [
        r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\p{L}", r"\P{Lu}", r"\p{C}", r"\p{Cn}",
        r"\p{Alphabetic}", r"\p{Emoji}", r"\p{Greek}", r"\P{Latin}", r"\p{Han}", "(?i)[a-z]",
        r"(?i)\p{Lu}", "(?i)[à-þ]", "(?i)[ꭰ-ꮿ]", "(?i)[^é]", "(?i)ﬅ", "(?i)ǅ", "(?i)ᾀ",
        "(?i)\u0131",
    ],
)  # fmt: skip
def test_every_character_of_a_class_is_in_pydantics(char_class: str):
    adapter = pydantic_type(f"^(?:{char_class})+$")
    dfa = regex.full(f"(?:{char_class})", "rust")
    assert adapter is not None
    ours = "".join(char for char in ALL_CHARS if regex.matches(dfa, char))
    assert accepts(adapter, ours or "-") == bool(ours)


@pytest.mark.parametrize("char_class", [r"\w", r"\d", r"\s", "(?i)[a-zµß]", r"\p{Lu}", "[^k]"])
def test_no_old_character_of_a_class_is_missing(char_class: str):
    adapter = pydantic_type(f"^(?:{char_class})$")
    dfa = regex.full(f"(?:{char_class})", "rust")
    assert adapter is not None
    for char in map(chr, range(0x370)):  # all assigned for long
        assert regex.matches(dfa, char) == accepts(adapter, char), hex(ord(char))
