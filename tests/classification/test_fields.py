"""The labels inside a value."""

from __future__ import annotations

import pytest

from structgen.classification.fields import classify_fields
from structgen.generator import Generator


def test_the_fields_of_a_value_have_distributions(lm):
    from typing import Literal

    from pydantic import BaseModel

    class Triage(BaseModel):
        team: Literal["billing", "sales", "bill"]
        urgent: bool
        level: Literal[1, 12, 2]

    found = classify_fields(Generator(Triage, lm), "Help!")
    assert set(found.fields) == {"$.team", "$.urgent", "$.level"}
    for one in found.fields.values():
        assert one.exact
        assert sum(label.probability for label in one.ranking) == pytest.approx(1)
    assert {one.label for one in found.fields["$.team"].ranking} == {
        '"billing"', '"sales"', '"bill"',
    }  # fmt: skip
