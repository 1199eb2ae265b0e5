"""Frames with more states than fit in 16 bits."""

from __future__ import annotations

from structgen.compiler import compile  # noqa: A004
from structgen.testing import byte_vocabulary
from tests.walks import allowed

LENGTH = 2_600


def test_the_budget_is_kept_in_states_with_large_numbers():
    """Each character has about 14 states inside of it, the last ones beyond number 32,768."""
    compiled = compile({"type": "string", "pattern": f"^[^x]{{{LENGTH}}}$"}, byte_vocabulary())
    session = compiled.session(compiled.min_tokens + 1)
    for byte in b'"' + b"a" * (LENGTH - 20):
        session.advance(byte)
    state = session.fork()
    state.advance(0xC3)
    (thread,) = state._state.threads
    assert compiled.program.frame_of(thread[0])[1] > 2**15
    for token in allowed(session):
        after = session.fork()
        after.advance(token)
        assert after.tokens_to_finish <= 21, token
        assert allowed(after)
