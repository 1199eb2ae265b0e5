"""Numbers that are no multiple of some number: what is written, against plain arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.automata.numbers import fixed_frame
from structgen.compiler import compile  # noqa: A004
from structgen.schema import nodes
from structgen.testing import byte_vocabulary
from tests.automata.frames import accepts
from tests.strategies import examples


def writes(schema: Any, text: str) -> bool:
    session = compile(schema, byte_vocabulary()).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return session.accepting


NO_INTEGER = {"type": "number", "not": {"type": "integer"}}
ODD = {"type": "integer", "not": {"multipleOf": 2}}
TABLE: list[tuple[Any, list[str], list[str]]] = [
    (NO_INTEGER, ["0.5", "-3.25", "12345678901.001", "1.00000000000001"], ["1", "1.0", "1e3"]),
    ({**NO_INTEGER, "minimum": 1, "maximum": 2}, ["1.5", "1.999"], ["1", "2.0", "0.5", "2.5"]),
    (ODD, ["1", "-3", "999"], ["0", "2", "-40"]),
    ({**ODD, "minimum": 2, "maximum": 5}, ["3", "5"], ["2", "4", "7"]),
    ({"type": "number", "not": {"multipleOf": 0.25}}, ["0.3", "7.2"], ["0.25", "3", "7.50"]),
    ({"multipleOf": 0.5, "not": {"type": "integer"}}, ["0.5", "-1.5"], ["1", "0.25"]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), TABLE, ids=lambda part: str(part)[:60])
def test_what_is_no_multiple(schema: Any, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not writes(schema, text)] == []
    assert [text for text in bad if writes(schema, text)] == []


def test_numbers_that_need_too_many_digits_are_refused() -> None:
    node = nodes.number(1e13, None, gaps=[Fraction(1)])
    assert isinstance(node, nodes.Never)
    assert "15 digits" in node.reason


@examples(60)
@given(
    st.integers(-300, 300),
    st.integers(0, 400),
    st.integers(0, 2),
    st.sampled_from([1, 2, 5, 10]),
    st.sets(st.sampled_from([2, 3, 4, 7, 10, 25, 100]), min_size=1, max_size=2),
)
def test_every_number_of_a_grid(low: int, size: int, places: int, step: int, gaps: set[int]):
    node = nodes.fixed(low, low + size, places, step, gaps)
    expected = {
        n for n in range(low, low + size + 1) if n % step == 0 and all(n % gap for gap in gaps)
    }
    if isinstance(node, nodes.Never):
        assert not expected
        return
    frame = fixed_frame(node.low, node.high, node.places, node.step, node.gaps)
    for n in range(low - 20, low + size + 21):
        assert accepts(frame, decimal(n, places).encode()) == (n in expected), n


def decimal(n: int, places: int) -> str:
    digits = str(abs(n)).zfill(places + 1)
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if n < 0 else text
