"""Driving sessions at random, and schemas compiled from nodes instead of Pydantic types."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from structgen.automata.assemble import assemble
from structgen.automata.program import link
from structgen.options import Options
from structgen.schema.jsonschema.definitions import Definitions
from structgen.schema.jsonschema.ways import add_ways
from structgen.schema.nodes import Schema
from structgen.tokens.automaton import Automaton, bind
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.session import Session, check_budget
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary

STRUCTURE = frozenset(b'"}],')


@dataclass(frozen=True)
class Compiled:
    """What `structgen.compiler.compile` makes, for a schema that no Pydantic type stands behind."""

    schema: Schema
    vocabulary: Vocabulary
    automaton: Automaton
    tables: TableSource

    @property
    def min_tokens(self) -> int:
        return self.automaton.min_tokens

    def session(self, max_tokens: int | None = None) -> Session:
        check_budget(max_tokens, self.min_tokens, "the nodes")
        return Session(self.tables, self.vocabulary, max_tokens)


def compile_nodes(
    schema: Schema, vocabulary: Vocabulary, options: Options | None = None
) -> Compiled:
    options = options or Options()
    definitions = Definitions(nodes=dict(schema.definitions))
    root = add_ways(definitions, schema.root)
    schema = replace(schema, root=root, definitions=definitions.nodes)
    program = link(assemble(schema, options), options.limits)
    automaton = bind(program, vocabulary, options.limits)
    return Compiled(
        schema, vocabulary, automaton, TableSource(automaton, ProfileCache(), options.limits)
    )


def allowed(session: Session) -> list[int]:
    """Token ids of the session's mask."""
    bits = np.unpackbits(session.mask().view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def pick(session: Session, vocabulary: Vocabulary, rng: random.Random) -> int:
    """A random legal token, every other time one that begins with punctuation."""
    ids = allowed(session)
    assert ids, "a dead end: nothing is allowed"
    if rng.random() < 0.5:
        structural = [t for t in ids if (vocabulary.bytes_of(t) or b"}")[0] in STRUCTURE]
        ids = structural or ids
    return rng.choice(ids)


def generate(
    make_session: Callable[[int | None], Session],
    vocabulary: Vocabulary,
    rng: random.Random,
    max_tokens: int | None,
    choose: Callable[[Session, Vocabulary, random.Random], int] = pick,
) -> tuple[bytes, list[int]]:
    """A random value within a budget, and its tokens."""
    session = make_session(max_tokens)
    taken: list[int] = []
    while not (session.complete or session.exhausted):
        token = choose(session, vocabulary, rng)
        session.advance(token)
        if session.finished:
            break
        taken.append(token)
    assert session.accepting, (vocabulary.decode(taken), "not finished within the budget")
    return vocabulary.decode(taken), taken


def random_tokens(text: bytes, vocabulary: Vocabulary, rng: random.Random) -> list[int]:
    """Tokens that spell `text`, split at random."""
    by_bytes = _ids_by_bytes(vocabulary)
    longest = vocabulary.max_token_bytes
    found: list[int] = []
    while text:
        lengths = [n for n in range(1, min(longest, len(text)) + 1) if text[:n] in by_bytes]
        length = rng.choice(lengths[-4:])
        found.append(rng.choice(by_bytes[text[:length]]))
        text = text[length:]
    return found


_IDS: dict[str, dict[bytes, list[int]]] = {}


def _ids_by_bytes(vocabulary: Vocabulary) -> dict[bytes, list[int]]:
    found = _IDS.get(vocabulary.fingerprint)
    if found is None:
        if len(_IDS) > 8:
            _IDS.clear()
        found = _IDS[vocabulary.fingerprint] = {}
        for token_id in range(vocabulary.width):
            spelled = vocabulary.bytes_of(token_id)
            if spelled:
                found.setdefault(spelled, []).append(token_id)
    return found


def feed(session: Session, ids: Sequence[int], vocabulary: Vocabulary) -> None:
    """Take all of `ids`, with a message that shows where it failed."""
    for position, token in enumerate(ids):
        before = vocabulary.decode(ids[:position])
        assert session.allows(token), (before, vocabulary.bytes_of(token))
        session.advance(token)
