"""Models of all supported types against Pydantic itself.

What is generated validates (sound), what Pydantic writes can be generated (complete), and what is
generated after a change validates too (no text is accepted by luck).
"""

from __future__ import annotations

import random
import re
from types import NoneType

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.testing import small_vocabulary
from tests.shapes.types import Sample, sample
from tests.strategies import STRADDLING
from tests.walks import generate

# Of booleans and enums the standard library makes IP networks, and warns of its own way to do it.
pytestmark = pytest.mark.filterwarnings("ignore:__int__ returned non-int:DeprecationWarning")

OF_JSON = (str, int, float, bool, NoneType, list, dict)
VOCABULARY = small_vocabulary([t for t in STRADDLING if len(t) > 1] + ["2020-0", "://", "00:00"])
LAYOUTS = st.sampled_from(["spaced", "compact", "compact", "flexible"])


def reads(compiled: CompiledSchema, text: bytes) -> bool:
    """Whether the automaton accepts a text, byte by byte."""
    session = compiled.session()
    for byte in text:
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


def complaint(made: Sample, text: bytes) -> str:
    """Why Pydantic rejects a text, nothing if it does not.

    In a strict model it validates a `defaultdict` twice, and then rejects the values that it has
    made of the text itself; `explain` says that this function is only checked afterwards.
    """
    try:
        made.adapter.validate_json(text)
    except ValidationError as error:
        found = [part for part in error.errors() if type(part["input"]) in OF_JSON]
        return str(error) if found else ""
    return ""


def changed(text: bytes, rng: random.Random) -> bytes:
    """A text with one or two bytes or short pieces replaced, doubled, left out or swapped."""
    for _ in range(rng.randint(1, 2)):
        at, size = rng.randrange(len(text) + 1), rng.choice([0, 1, 1, 2, 5])
        piece = rng.choice([
            b"", b'"', b"0", b"1", b"-", b"a", b"\\", b",", b"}", b"null", b"1e5", b".5", b"\xc3",
            text[at : at + 3], bytes([rng.randrange(256)]), *STRADDLING[:6],
        ])  # fmt: skip
        text = text[:at] + piece + text[at + size :]
    return text


def check(made: Sample, layout: str, seed: int) -> None:
    rng = random.Random(seed)
    compiled = compile(made.adapter, VOCABULARY, layout=layout)
    texts: list[bytes] = []
    for extra in (0, rng.randint(0, 30), rng.randint(0, 120)):
        text, _ = generate(compiled.session, VOCABULARY, rng, compiled.min_tokens + extra)
        assert not (problem := complaint(made, text)), ("unsound", text, problem)
        texts.append(text)
    for written in made.texts:
        text = written.encode()
        # A union's serializer sometimes takes the value of one option for that of another. A date
        # and time, whose canonical form has a "T", and a decimal, which is a number, are then
        # written by `str`.
        borrowed = complaint(made, text) or BY_STR.search(written)
        if layout != "spaced" and not borrowed:
            assert reads(compiled, text), ("incomplete", text)
            texts.append(text)
    for text in texts:
        for _ in range(4):
            other = changed(text, rng)
            if reads(compiled, other):
                problem = complaint(made, other)
                assert not problem, ("unsound", other, problem)


BY_STR = re.compile(r'\d-\d\d \d\d:|"-?\d+\.\d+"')
given_models = given(st.integers(0, 2**64), st.integers(1, 3), LAYOUTS)


@settings(max_examples=300, deadline=None, derandomize=True)
@given_models
def test_random_models(seed, depth, layout):
    check(sample(seed, depth), layout, seed)


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None)
@given_models
def test_many_random_models(seed, depth, layout):
    try:
        made = sample(seed, depth)
    except TypeError as error:
        # Pydantic itself refuses a few of the unions that are made up here.
        if "discriminated union" not in str(error):
            raise
        reject()
    check(made, layout, seed)
