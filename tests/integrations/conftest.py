"""Fixtures for the loops of other people."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    """What `generate` draws is the same in every run, whatever ran before."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        yield
