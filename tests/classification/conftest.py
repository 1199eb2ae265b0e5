"""A model whose every probability is known."""

from __future__ import annotations

import pytest

from structgen.testing import RandomLM
from tests.classification.examples import VOCABULARY


@pytest.fixture
def lm() -> RandomLM:
    return RandomLM(VOCABULARY, 3)
