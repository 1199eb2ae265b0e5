"""Vocabularies that cannot write every byte."""

# ruff: noqa: UP007  # users write types in the older spellings too

from __future__ import annotations

import itertools
import random
import re
import time
from typing import Annotated, Literal, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from structgen.compiler import compile  # noqa: A004
from structgen.deadline import check_deadline, deadline
from structgen.errors import LimitError, VocabularyError
from structgen.options import Limits
from structgen.schema.roots import OneOf, SomeOf
from structgen.tokens.vocabulary import Vocabulary
from structgen.tokens.writable import unspelled
from tests import strategies
from tests.strategies import examples
from tests.walks import compile_nodes, generate
from tests.zoo import ZOO

BYTES = strategies.byte_vocabulary()


def without(*missing: int | str, tokens: tuple[bytes, ...] = ()) -> Vocabulary:
    """All single bytes but some; ids are bytes."""
    gone = {ord(m) if isinstance(m, str) else m for m in missing}
    singles: list[bytes | None] = [None if b in gone else bytes([b]) for b in range(256)]
    return Vocabulary.from_bytes([*singles, *tokens], 300)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (ZOO["nested"], "{"), (ZOO["nested"], '"'), (ZOO["nested"], "}"), (ZOO["nested"], "z"),
        (ZOO["list"], "["), (ZOO["list"], "]"), (ZOO["exact list"], ","), (str, '"'), (bool, "e"),
        (Literal["é"], 0xA9), (Annotated[int, Field(ge=5, le=5)], "5"), (None, "u"),
    ],
)  # fmt: skip
def test_bytes_that_every_value_needs(source, missing):
    with pytest.raises(VocabularyError) as caught:
        compile(source, without(missing))
    byte = ord(missing) if isinstance(missing, str) else missing
    assert byte in caught.value.missing_bytes
    assert f"0x{byte:02X}" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (str, "a"), (str, "\\"), (str, 0xC3), (str, 0x80), (int, "-"), (int, "7"), (float, "."),
        (float, "e"), (ZOO["list"], ","), (ZOO["bounded int"], "1"),
        (Union[int, None], "n"), (ZOO["any"], "["), (ZOO["any"], "{"),
        (ZOO["union"], "]"), (ZOO["dict"], ","), (ZOO["defaults"], "c"), (ZOO["any"], '"'),
        (Union[Annotated[list[int], Field(min_length=2)], int], ","),
    ],
)  # fmt: skip
def test_bytes_that_some_values_can_do_without(source, missing):
    vocabulary = without(missing, tokens=(b"ab", b'": ', b"1]", b"\xc3\xa9"))
    compiled = compile(source, vocabulary)
    rng = random.Random(0)
    for extra in range(40):
        text, _ = generate(compiled.session, vocabulary, rng, compiled.min_tokens + extra)
        compiled.validate(text)


@pytest.mark.parametrize(
    "source", [Literal["xé", "ab", "ü"], OneOf(["xé", "ab", "ü"]), SomeOf(["ab", "ü", "xé"])]
)
def test_labels_that_cannot_be_written_are_named_together(source):
    for _ in range(2):
        with pytest.raises(VocabularyError, match=r"cannot write 2 of 3 labels") as caught:
            compile(source, without(0xC3))
        assert "'xé'" in str(caught.value)
        assert "'ü'" in str(caught.value)
        assert caught.value.missing_bytes == (0xC3,)
    compile(source, without(0xC3, tokens=(b"\xc3\xa9", b"\xc3\xbc")))
    # Who forbids tokens wants to do without what they write.
    compile(source, BYTES, banned_token_ids=[0xC3])


def test_a_label_in_quotes_that_cannot_be_written_is_shown_as_it_is():
    with pytest.raises(VocabularyError, match=r"""among them '"a"é"';"""):
        compile(OneOf(['"a"é"', "ok"]), without(0xC3))


def test_of_many_labels_that_cannot_be_written_a_few_are_named():
    labels = [f"é{i}" for i in range(1000)] + [f"e{i}" for i in range(1000)]
    with pytest.raises(VocabularyError, match=r"cannot write 1000 of 2000 labels") as caught:
        compile(Literal[tuple(labels)], without(0xC3))  # pyright: ignore[reportInvalidTypeForm]
    assert len(str(caught.value)) < 400


def test_looking_for_labels_that_cannot_be_written_ends_in_time(monkeypatch):
    labels = [("ü" * 20_000 + f"é{i}").encode() for i in range(40)]
    longest = "ü".encode() * 500
    vocabulary = without(0xA9, 0xC3, 0xBC, tokens=("ü".encode(), longest))
    assert list(unspelled(labels, vocabulary)) == labels
    with deadline(0), pytest.raises(LimitError, match="max_seconds=0"):
        list(unspelled(labels, vocabulary))

    def slow(*_: object) -> None:
        ends = time.thread_time() + 1.5
        while time.thread_time() < ends:
            check_deadline()

    monkeypatch.setattr("structgen.compiler.check_labels", slow)
    with pytest.raises(LimitError, match="max_seconds=1"):
        compile(Literal["ä", "b"], without(0xA9), limits=Limits(max_seconds=1))


@examples(200)
@given(
    st.text("abü", max_size=8), st.lists(st.binary(min_size=1, max_size=3), max_size=8), st.data()
)
def test_labels_are_spelled_by_tokens_or_not(text, tokens, data):
    label = text.encode()
    cuts = data.draw(st.lists(st.integers(0, len(label)), max_size=6))
    edges = sorted({0, *cuts, len(label)})
    parts = [label[a:b] for a, b in itertools.pairwise(edges)]
    some = st.lists(st.sampled_from(parts), max_size=6) if parts else st.just([])
    pieces = [*data.draw(some), *tokens, b"z"]
    vocabulary = Vocabulary.from_bytes(pieces, eos_token_ids=len(pieces))
    spelled = re.fullmatch(b"(?:%s)*" % b"|".join(map(re.escape, pieces)), label)
    assert list(unspelled([label], vocabulary)) == [label] * (spelled is None)


@examples(60)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_missing_bytes_are_an_error_or_no_obstacle(schema, seed):
    rng = random.Random(seed)
    missing = rng.sample(range(256), rng.choice([1, 3, 100]))
    missing += rng.sample(list(b'{}[],:" -.0123ntfeu\\'), rng.choice([0, 1, 2]))
    vocabulary = without(*missing, tokens=(b'{"', b'"}', b", ", b'"a"', b"null", b"1"))
    try:
        compiled = compile_nodes(schema, vocabulary)
    except VocabularyError as error:
        named = error.missing_bytes
    else:
        named = ()
        for extra in (0, 1, 2, 5, 20):
            generate(compiled.session, vocabulary, rng, compiled.min_tokens + extra)
    assert set(named) <= set(missing)
