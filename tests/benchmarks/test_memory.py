"""A long life: 10,000 schemas, 1,000,000 tokens, one bound."""

from __future__ import annotations

import random
import resource
from typing import Any

import numpy as np
import pytest

from structgen.compiler import Compiler
from structgen.options import Options
from structgen.tokens.vocabulary import Vocabulary
from tests.benchmarks.reporting import Report

pytestmark = pytest.mark.bench

N_SCHEMAS, N_TOKENS = 10_000, 100
MIB = 2**20


def schema(number: int) -> dict[str, Any]:
    """One of endlessly many."""
    fields: dict[str, Any] = {
        f"field{number}": {"type": "string", "maxLength": 20 + number % 400},
        "kind": {"enum": [f"label {number} {i}" for i in range(1 + number % 50)]},
        "list": {"type": "array", "items": {"type": "integer", "maximum": number}},
        "pattern": {"type": "string", "pattern": f"^[a-z]{{{1 + number % 9}}}-{number}$"},
    }
    return {"type": "object", "properties": fields, "required": list(fields)}


def picked(mask: Any, rng: random.Random) -> int:
    """A random token that a mask allows."""
    words = np.flatnonzero(mask)
    word = int(words[rng.randrange(len(words))])
    bits = [bit for bit in range(32) if int(mask[word]) >> bit & 1]
    return 32 * word + rng.choice(bits)


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_a_long_life(report: Report, vocabulary: Vocabulary) -> None:
    compiler = Compiler(64 * MIB, table_bytes=128 * MIB, mask_bytes=32 * MIB)
    rng = random.Random(0)
    n_tokens, before, sizes = 0, resident_bytes(), list[float]()
    for number in range(N_SCHEMAS):
        session = compiler.compile(schema(number), vocabulary, Options()).session()
        for _ in range(N_TOKENS):
            if session.complete or session.finished:
                session = compiler.compile(schema(number), vocabulary, Options()).session()
            session.advance(picked(session.mask(), rng))
            n_tokens += 1
        if number % (N_SCHEMAS // 20) == 0:
            sizes.append(round((resident_bytes() - before) / MIB, 1))
    info = compiler.info()
    assert info.schemas.bytes <= info.schemas.capacity_bytes
    assert info.tables.bytes <= 1.25 * info.tables.capacity_bytes
    assert sizes[-1] < 1.25 * max(sizes[10:15])
    report.add(f"resident after {N_SCHEMAS} schemas and {n_tokens} tokens, MiB", sizes, "<= 350")
