"""The cache of what strings allow: its bound, and that nothing depends on what it holds."""

from __future__ import annotations

import threading

from structgen.options import Limits, Options
from structgen.schema.nodes import Array, Pattern, Schema, String, union
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.session import Session
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed, compile_nodes

WORDS = [bytes([byte]) for byte in range(256)]
WORDS += [b"ab", b"abc", b'a"', b'"]', b'", "', b"  ", b"xyz", b"hello", "é!".encode()]
VOCABULARY = Vocabulary.from_bytes([*WORDS, None], len(WORDS))
NOT = [Pattern(f"^[^{char}]+[^a]*$") for char in "xyzw"]
SCHEMA = Schema(Array(union([String(0, 9), *(String(0, 40, (p,)) for p in NOT)])), {}, "")
TEXT = b'["hello ab", "zy", "\xc3\xa9! abc"]'


def masks(cache: ProfileCache) -> list[list[int]]:
    """The allowed tokens at each byte of a text, in a new session over the cache."""
    automaton = compile_nodes(SCHEMA, VOCABULARY, Options()).automaton
    session = Session(TableSource(automaton, cache, Limits()), VOCABULARY, None)
    found: list[list[int]] = []
    for byte in TEXT:
        found.append(allowed(session))
        session.advance(byte)
    return found


def test_masks_do_not_depend_on_what_is_kept():
    large, small = ProfileCache(), ProfileCache(capacity_bytes=1)
    assert masks(large) == masks(small) == masks(large)
    assert large.n_evictions == 0
    assert small.n_evictions > 0
    assert small.n_walks > large.n_walks > 1


def test_the_bound_holds():
    for capacity in (4_000, 8_000):
        cache = ProfileCache(capacity)
        for _ in range(2):
            masks(cache)
        assert 0 < cache.memory_bytes() <= capacity
        assert cache.n_evictions > 0


def test_clearing_forgets_everything():
    cache = ProfileCache()
    masks(cache)
    assert cache.memory_bytes() > 0
    cache.clear()
    assert cache.memory_bytes() == 0


def test_threads_share_a_small_cache():
    cache = ProfileCache(capacity_bytes=8_000)
    expected = masks(ProfileCache())
    found: list[list[list[int]]] = []
    threads = [
        threading.Thread(target=lambda: found.extend(masks(cache) for _ in range(5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20
    assert cache.memory_bytes() <= 8_000
