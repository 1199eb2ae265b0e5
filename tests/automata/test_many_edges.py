"""Edges that are added as arrays make the same frame as edges that are added one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structgen.automata.frames import FrameBuilder

BYTES = st.lists(st.integers(0, 255), min_size=1, max_size=6, unique=True)


@given(
    st.lists(BYTES, min_size=1, max_size=6),
    st.data(),
    st.sets(st.integers(0, 5)),
)
def test_the_same_frame(rows: list[list[int]], data: st.DataObject, apart: set[int]) -> None:
    """The states `apart` get their edges one by one in both frames."""
    one_by_one, together = FrameBuilder("one"), FrameBuilder("many")
    for state in range(len(rows)):
        one_by_one.state(accept=state % 2 == 0)
        together.state(accept=state % 2 == 0)
    many: list[tuple[int, int, int, int, int]] = []
    for state in range(len(rows)):
        cuts = sorted(rows[state])
        for first, last in zip(cuts, [*(cut - 1 for cut in cuts[1:]), cuts[-1]], strict=True):
            edge = (first, last, data.draw(st.integers(0, len(rows) - 1)), first % 3)
            one_by_one.edge(state, *edge)
            if state in apart:
                together.edge(state, *edge)
            else:
                many.append((state, *edge))
    together.edges(np.array(many, np.int32).reshape(-1, 5))
    expected, found = one_by_one.frame(), together.frame()
    assert np.array_equal(found.states, expected.states)
    assert np.array_equal(found.table, expected.table)
    assert np.array_equal(found.classes, expected.classes)
