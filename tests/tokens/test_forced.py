"""Forced tokens: certain, canonical, and never at the cost of a choice."""

from __future__ import annotations

import random

import pytest

from structgen.compiler import CompiledSchema, compile  # noqa: A004
from structgen.testing import small_vocabulary
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import allowed, generate, pick
from tests.zoo import ZOO

TOKENS = ['{"', '":', ' "', '": "', '",', ', "', '"}', "true", "tru", "name", "na", "street", "ci"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_vocabulary(TOKENS)


def forced_text(session: Session, vocabulary: Vocabulary) -> bytes:
    """The slow twin: bytes that every legal continuation begins with, read off one byte at a time.

    Needs all single bytes as tokens 0 to 255.
    """
    twin = session.fork()
    text = b""
    while not twin.accepting:
        firsts = {(vocabulary.bytes_of(t) or b"?")[0] for t in allowed(twin)}
        if len(firsts) > 1:
            break
        byte = firsts.pop()
        twin.advance(byte)
        text += bytes([byte])
    return text


def check_forced(session: Session, vocabulary: Vocabulary) -> None:
    text = forced_text(session, vocabulary)
    forced = session.forced()
    written = vocabulary.decode(forced)
    assert text.startswith(written)
    assert vocabulary.encode is not None
    if forced:
        whole = text.decode(errors="ignore")
        assert vocabulary.encode(whole)[: len(forced)] == forced, "not the tokenizer's own spelling"
    twin = session.fork()
    for token in forced:
        longer = [t for t in allowed(twin) if len(vocabulary.bytes_of(t) or b"") > len(text)]
        assert not longer, "a token that reaches past the forced text was lost"
        assert twin.allows(token)
        twin.advance(token)
        text = text[len(vocabulary.bytes_of(token) or b"") :]


@pytest.mark.parametrize("name", ZOO)
def test_forced_tokens_agree_with_the_masks(name: str, vocabulary: Vocabulary) -> None:
    compiled: CompiledSchema[object] = compile(ZOO[name], vocabulary)
    rng = random.Random(name)
    for _ in range(3):
        session = compiled.session(compiled.min_tokens + 60)
        while not (session.complete or session.exhausted or session.finished):
            check_forced(compiled_twin(compiled, session), vocabulary)
            session.advance(pick(session, vocabulary, rng))


def compiled_twin(compiled: CompiledSchema[object], session: Session) -> Session:
    """The same position without a budget, which would force more than the schema does."""
    twin = compiled.session()
    for token in session.token_ids:
        twin.advance(token)
    return twin


def test_a_literal_chain_is_forced_up_to_the_first_choice(vocabulary: Vocabulary) -> None:
    session = compile(bool, vocabulary).session()
    assert session.forced() == []
    session.advance(ord("t"))
    assert vocabulary.decode(session.forced()) == b"rue"


def test_the_last_token_is_held_back_where_a_longer_one_fits() -> None:
    """`": ` may go on as `": "`, so the colon and blank wait for the model."""
    from pydantic import BaseModel

    class Named(BaseModel):
        name: str | None

    plain = compile(Named, small_vocabulary(['{"', "name", '":', " "])).session()
    glued = compile(Named, small_vocabulary(['{"', "name", '":', " ", '": "', ' "'])).session()
    assert plain._source.current().automaton.vocabulary.decode(plain.forced()) == b'{"name": '
    assert glued._source.current().automaton.vocabulary.decode(glued.forced()) == b'{"name'


def test_forcing_never_breaks_a_tight_budget(vocabulary: Vocabulary) -> None:
    for name in ("nested", "aliases", "tagged", "lists of lists"):
        compiled: CompiledSchema[object] = compile(ZOO[name], vocabulary)
        for budget in range(compiled.min_tokens, compiled.min_tokens + 12):
            rng = random.Random(budget)

            def choose(session: Session, vocabulary: Vocabulary, rng: random.Random) -> int:
                forced = session.forced()
                return forced[0] if forced else pick(session, vocabulary, rng)

            text, _ = generate(compiled.session, vocabulary, rng, budget, choose)
            compiled.validate(text)
