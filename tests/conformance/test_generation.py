"""Random generations over every compiled schema are valid by an independent validator."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from structgen.compiler import compile, forget_schemas  # noqa: A004
from structgen.errors import LimitError, SchemaError
from structgen.tokens.vocabulary import Vocabulary
from tests.conformance.generating import Moods, generated, glued_vocabulary
from tests.conformance.test_json_schema import DATA, SUITES

jsonschema_rs = pytest.importorskip("jsonschema_rs")

pytestmark = pytest.mark.skipif(
    not (DATA / "jsonschema_test_suite").is_dir(),
    reason="the suites are not in the folder that STRUCTGEN_DATA names",
)

DIFFERENT: dict[str, str] = {}
"""Schemas where the validator reads the standard in another way, each with the reason."""

EXTRA_TOKENS = (0, 25, 80, 160)
"""Tokens beyond those of the shortest value."""


def validator(schema: Any) -> Any:
    """With formats, by the draft that the schema names, and without looking anything up."""
    return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)


def assert_valid(suite: str, vocabulary: Vocabulary, count: int) -> None:
    """Generate `count` values of each schema of a suite; all must finish and be valid."""
    moods = Moods(vocabulary)
    ways = list(itertools.product(EXTRA_TOKENS, moods.biases.values()))
    wrong: list[tuple[str, str]] = []
    n_compiled = 0
    for case in SUITES[suite](DATA):
        schema = {"not": {}} if case.schema is False else case.schema
        if case.name in DIFFERENT:
            continue
        try:
            compiled = compile({} if schema is True else schema, vocabulary)
        except (SchemaError, LimitError):
            continue
        n_compiled += 1
        valid = validator(schema)
        rng = np.random.default_rng(n_compiled)
        for i in range(count):
            extra, bias = ways[(n_compiled + i * 5) % len(ways)]
            text = generated(compiled, bias, rng, compiled.min_tokens + extra).decode()
            wrong += [(case.name, fault) for fault in _faults(valid, text)]
        forget_schemas()
    assert n_compiled > 200
    assert wrong == []


def _faults(valid: Any, text: str) -> Iterator[str]:
    value = json.loads(text)
    for error in valid.iter_errors(value):
        yield f"{text[:500]}: {error.message[:200]}"
        return


@pytest.mark.parametrize(("suite", "count"), list(zip(SUITES, (2, 4), strict=True)))
def test_random_values_are_valid(suite, count):
    assert_valid(suite, glued_vocabulary(), count)


@pytest.mark.soak
@pytest.mark.parametrize("suite", SUITES)
def test_many_random_values_are_valid(suite):
    assert_valid(suite, glued_vocabulary(), 140)


@pytest.mark.soak
@pytest.mark.parametrize("suite", SUITES)
def test_random_values_of_a_real_vocabulary_are_valid(suite, real_vocabulary):
    assert_valid(suite, real_vocabulary, 8)
