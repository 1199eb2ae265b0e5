"""A coverage-guided fuzzer of schemas, for hours: run it by hand where atheris is installed.

    pip install atheris
    python -m tests.fuzz.atheris_schemas -len_control=0 -max_total_time=3600 corpus/

Each input is read as choices of the grammar of `tests.fuzz.grammar`; an input that fails is kept
in a file `crash-...`, which the same command runs again when it is given in place of the corpus.
"""

from __future__ import annotations

import sys

import atheris
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

COMPILED = [
    *(f"structgen.automata.{name}" for name in ("kernels", "scope_kernels", "frames")),
    *(f"structgen.tokens.{name}" for name in ("distances", "walks", "scope_kernels", "trie")),
]
"""numba reads the bytecode of these, which must not be changed."""

with atheris.instrument_imports(include=["structgen"], exclude=COMPILED):
    from tests.fuzz.check import exact_or_refused

from tests.fuzz.grammar import schemas  # noqa: E402


@settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas(), st.integers(0, 2**32))
def any_schema(schema, seed):
    exact_or_refused(schema, seed, count=1)


if __name__ == "__main__":
    atheris.Setup(sys.argv, any_schema.hypothesis.fuzz_one_input)
    atheris.Fuzz()
