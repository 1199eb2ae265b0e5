"""Labels that must differ: the quick reading of tokens against the one byte by byte."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from structgen.options import Layout
from structgen.schema.distinct import MOST_DISTINCT
from structgen.schema.selections import ambiguous
from structgen.testing import small_vocabulary
from structgen.tokens import label_kernels
from structgen.tokens.exclusion import Exclusion
from structgen.tokens.points import Point

WORDS = small_vocabulary(
    ['", "', '",', ", ", '"]', '"a', "ab", ', "a', "a, b", "ba", '", "a", "', "1, ", "12", ", 1",
     "; b", "; ", "a; b; a", '"b", "x": [', "é", "bé", '"aé", "'],
)  # fmt: skip
TEXTS = st.lists(
    st.text("ab1é ", min_size=1, max_size=4).map(str.strip).filter(bool),
    min_size=MOST_DISTINCT + 1,
    max_size=24,
    unique=True,
)


def check(table: Any, state: Any) -> int:
    """Compare both ways for each token that the threads allow; how many tokens were sure."""
    exclusion: Exclusion = table._exclusion
    plain, _ = table._masked.compute(state.canonical, state.accepting, -1)
    at = Point(0, table.space.load(state.threads), table.space.used, state.scopes)
    found = exclusion._labels.sorted(at, plain)  # pyright: ignore[reportPrivateUsage]  # the quick way
    if found is None:
        return 0
    kept, unsure = found.kept.tolist(), found.unsure.tolist()
    legal = np.flatnonzero(np.unpackbits(plain.dense().view(np.uint8), bitorder="little"))
    assert len(legal) == found.n_tokens
    expected: set[int] = set()
    for token in legal.tolist():
        data = WORDS.bytes_of(token)
        at = Point(0, table.space.load(state.threads), table.space.used, state.scopes)
        if not data or exclusion.run(at, data) is not None:
            expected.add(token)
    assert set(kept) <= expected
    assert expected <= {*kept, *unsure}
    return len(kept)


def walk(source: Any, layout: Layout, rng: random.Random) -> int:
    """Compare along a random text; how many tokens were sure."""
    session = sg.compile(source, WORDS, layout=layout).session()
    row = np.zeros(WORDS.n_words, np.int32)
    sure = 0
    for _ in range(60):
        state = session._state  # pyright: ignore[reportPrivateUsage]  # where it stands
        sure += check(state.table, state)
        session.fill_mask(row)
        legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        going_on = [t for t in legal.tolist() if t not in WORDS.eos_token_ids]
        if not going_on:
            break
        session.advance(rng.choice(going_on))
    return sure


def items(values: list[Any]) -> Any:
    return {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 2}


FORMS: dict[str, Callable[[list[str]], Any]] = {
    "strings": items,
    "numbers beside strings": lambda x: items([*x, 1, 11, 12, 2, True]),
    "two lists": lambda x: {
        "type": "object",
        "properties": {"a": items(x), "x": items(x[2:])},
        "required": ["a", "x"],
        "additionalProperties": False,
    },
    "bare": lambda x: sg.SomeOf(x, separator="; ", min_items=0),
    "few at most": lambda x: sg.SomeOf(x, separator=", ", min_items=2, max_items=3),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=8, deadline=None)
@given(
    texts=TEXTS,
    layout=st.sampled_from(["spaced", "flexible"]),
    rng=st.randoms(use_true_random=False),
)
def test_quick_and_slow_agree(
    form: str, texts: list[str], layout: Layout, rng: random.Random
) -> None:
    if ambiguous(set(texts), ";") or ambiguous(set(texts), ","):
        return
    walk(FORMS[form](texts), layout, rng)


@pytest.mark.parametrize("form", FORMS)
def test_most_tokens_are_read_the_quick_way(form: str) -> None:
    texts = [a + b for a in "abé" for b in ("", "a", "b1", "é")]
    rng = random.Random(3)
    assert sum(walk(FORMS[form](texts), "spaced", rng) for _ in range(8)) > 100


@given(st.sets(st.integers(0, 319)), st.integers(0, 20))
def test_tokens_of_a_mask(tokens: set[int], room: int) -> None:
    bits = np.zeros(320, np.uint8)
    bits[list(tokens)] = 1
    mask = np.packbits(bits, bitorder="little").view(np.int32)
    out = np.empty(max(room, len(tokens)), np.int32)
    count = label_kernels.list_tokens(mask, out)
    assert out[:count].tolist() == sorted(tokens)


def test_a_chosen_label_is_gone_in_either_spelling() -> None:
    texts = [f"label {i}" for i in range(20)]
    session = sg.compile(items(texts), WORDS).session()
    ids = {WORDS.bytes_of(i): i for i in range(WORDS.width)}
    for byte in json.dumps(["label 1", "label 10"])[:-1].encode():
        session.advance(ids[bytes((byte,))])
    for byte in b', "label 1':
        session.advance(ids[bytes((byte,))])
    assert not session.allows(ids[b'"'])
    assert session.allows(ids[b"1"])
    assert not session.allows(ids[b"12"]) or "label 112" in texts
