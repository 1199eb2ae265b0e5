"""The one property of every schema: exact or refused, and soon."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import numpy as np

from structgen.compiler import compile, forget_schemas  # noqa: A004
from structgen.errors import StructgenError
from structgen.options import Limits
from tests.conformance.generating import Moods, generated, glued_vocabulary

VOCABULARY = glued_vocabulary()
MOODS = Moods(VOCABULARY)
LIMITS = Limits(max_seconds=4)


def exact_or_refused(schema: Any, seed: int, count: int = 2) -> bool:
    """Whether it compiles; then `count` random values must be valid by another validator."""
    forget_schemas()
    try:
        compiled = compile(schema, VOCABULARY, limits=LIMITS)
    except StructgenError:
        return False
    if compiled.min_tokens > 2000:
        return True
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    valid = _validator(schema)
    for _ in range(count):
        bias = choose.choice(list(MOODS.biases.values()))
        text = generated(compiled, bias, rng, compiled.min_tokens + choose.choice([0, 10, 50]))
        value = json.loads(text)
        if valid is not None:
            assert valid.is_valid(value), text.decode()
    return True


def _validator(schema: Any) -> Any:
    """None where the validator refuses the schema, for instance for a number in `$id`."""
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return None
