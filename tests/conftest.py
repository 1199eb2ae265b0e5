"""Fixtures that several packages share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from structgen.runtime.hf import HFModel


@pytest.fixture(scope="session")
def smollm2() -> HFModel:
    """The default model in float32, loaded once; its one-time conversion uses the user's cache."""
    from structgen.errors import MissingDependencyError
    from structgen.runtime.hf import load

    try:
        return load(dtype="float32")
    except MissingDependencyError as error:
        pytest.skip(f"the default model is not installed: {error}")
