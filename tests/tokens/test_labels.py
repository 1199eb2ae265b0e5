"""Sets of labels: distances against a slow twin, masks of large sets, draws from real ones."""

from __future__ import annotations

import gzip
import os
import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.automata.frames import CHAIN, FLAGS, LABEL
from structgen.automata.kernels import UNREACHABLE
from structgen.compiled import CompiledSchema
from structgen.schema.nodes import Choice, Labels, Schema, choice, json_texts, labels
from structgen.testing import small_vocabulary
from structgen.tokens.automaton import Automaton
from structgen.tokens.session import Session
from structgen.tokens.vocabulary import Vocabulary
from tests.walks import Compiled, allowed, compile_nodes

DATA = Path(os.environ.get("STRUCTGEN_DATA", "../shared/data")) / "taxonomies"
WORDS = small_vocabulary(
    [
        b" > ",
        b"an",
        b"ana",
        b"nan",
        b"ba",
        b"ban",
        b'"a',
        b'a"',
        b"na > b",
        b"Food",
        b" Food",
        b"es",
    ]
)
DRAWS = 200


def least_tokens(texts: list[bytes], vocabulary: Vocabulary) -> dict[bytes, int]:
    """Of every beginning of some texts, the fewest tokens to the end of any of them."""
    known = {vocabulary.bytes_of(token_id) for token_id in range(vocabulary.width)}
    best: dict[bytes, int] = {}
    for text in texts:
        costs = [0] * (len(text) + 1)
        for at in reversed(range(len(text))):
            ends = range(at + 1, min(len(text), at + vocabulary.max_token_bytes) + 1)
            costs[at] = min((1 + costs[e] for e in ends if text[at:e] in known), default=10**9)
        for depth, cost in enumerate(costs):
            best[text[:depth]] = min(best.get(text[:depth], UNREACHABLE), cost)
    return best


def check_costs(automaton: Automaton, texts: list[bytes], first: int) -> None:
    """The cost at each byte where the labels that agree so far begin with this one."""
    program, cost = automaton.program, automaton.plan[1]
    best = least_tokens(texts, automaton.vocabulary)
    for number, (before, text) in enumerate(pairwise([b"", *texts])):
        alike = (depth for depth in range(len(text)) if before[: depth + 1] != text[: depth + 1])
        shared = next(alike) if number else -1
        begin = int(program.starts[first + number])
        found = cost[begin + shared + 1 : begin + len(text)].tolist()
        assert found == [best[text[:depth]] for depth in range(shared + 1, len(text))]


texts_of_labels = st.lists(st.sampled_from(["an", "ana", "ba", "n", " > ", "é", "b"]), max_size=7)
sets_of_labels = st.sets(texts_of_labels.map("".join), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(sets_of_labels, sets_of_labels)
def test_costs_are_the_least_of_all_labels_that_agree(one: set[str], other: set[str]) -> None:
    sets = [labels(json_texts(sorted(texts))) for texts in (one, other)]
    for node in sets:
        assert isinstance(node, Labels)
        automaton = compile_nodes(Schema(node, {}), WORDS).automaton
        check_costs(automaton, list(node.texts), 0)
        assert automaton.min_tokens == least_tokens(list(node.texts), WORDS)[b""]


def test_costs_of_endings_that_are_copied() -> None:
    """Long labels that end alike, and so many that children are looked up in a hash table."""
    rng = random.Random(0)
    ends = ["banana bread, initial encounter", "banana bread, sequela", " ana > ban"]
    names = {f"{rng.randrange(10**6)} {rng.choice(['an', 'ba'])} {rng.choice(ends)}" * 2
             for _ in range(900)}  # fmt: skip
    node = choice(name.encode() for name in names)
    assert isinstance(node, Choice)
    automaton = compile_nodes(Schema(node, {}), WORDS).automaton
    assert len(automaton.program.blob) > 50_000
    check_costs(automaton, list(node.texts), 0)


def slow_mask(texts: list[bytes], written: bytes, vocabulary: Vocabulary) -> set[int]:
    """The tokens that lead on towards one of the texts, or to its end."""
    rests = [text[len(written) :] for text in texts if text.startswith(written)]
    found = {
        token_id
        for token_id in range(vocabulary.width)
        if (token := vocabulary.bytes_of(token_id)) and any(r.startswith(token) for r in rests)
    }
    return found | (set(vocabulary.eos_token_ids) if b"" in rests else set())


@settings(max_examples=40, deadline=None)
@given(sets_of_labels, st.integers(0, 2**32 - 1))
def test_masks_of_labels(names: set[str], seed: int) -> None:
    node = choice(name.encode() for name in names)
    assert isinstance(node, Choice)
    rng = random.Random(seed)
    session = compile_nodes(Schema(node, {}), WORDS).session()
    written = b""
    while not session.finished:
        expected = slow_mask(list(node.texts), written, WORDS)
        assert set(allowed(session)) == expected
        token_id = rng.choice(sorted(expected))
        session.advance(token_id)
        written += WORDS.bytes_of(token_id) or b""


def random_draws(
    compiled: Compiled | CompiledSchema[Any], count: int, rng: np.random.Generator
) -> list[str]:
    """Texts drawn from random logits at temperature 2."""
    row = np.zeros(compiled.vocabulary.n_words, np.int32)
    drawn: list[str] = []
    for _ in range(count):
        session = compiled.session()
        while not session.finished and not session.complete:
            session.fill_mask(row)
            legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            logits = rng.normal(size=len(legal)) / 2
            session.advance(int(legal[(logits + rng.gumbel(size=len(legal))).argmax()]))
        drawn.append(compiled.vocabulary.decode(session.token_ids).decode())
    return drawn


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return list(dict.fromkeys(data.decode().splitlines()))


@cache
def files() -> list[Path]:
    if not DATA.is_dir():
        return []
    return sorted(path for path in DATA.glob("*/*.txt*") if "SOURCE" not in path.name)


@pytest.mark.parametrize("path", files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_random_draws_are_labels(path: Path) -> None:
    names = lines(path)
    node = choice(name.encode() for name in names)
    drawn = random_draws(compile_nodes(Schema(node, {}), WORDS), DRAWS, np.random.default_rng(1))
    assert set(drawn) <= set(names)


@pytest.mark.skipif(not files(), reason="needs the taxonomies under STRUCTGEN_DATA")
def test_every_label_of_a_large_taxonomy_can_be_written() -> None:
    names = lines(DATA / "shopify-2024-07" / "labels.txt")
    node = choice(name.encode() for name in names)
    compiled = compile_nodes(Schema(node, {}), WORDS)
    for name in random.Random(0).sample(names, 300):
        assert _writes(compiled.session(), name.encode(), WORDS)


def _writes(session: Session, text: bytes, vocabulary: Vocabulary) -> bool:
    """Whether a text can be written in the longest tokens that fit."""
    known = {vocabulary.bytes_of(i): i for i in range(vocabulary.width) if vocabulary.bytes_of(i)}
    at = 0
    while at < len(text):
        length = next(n for n in range(len(text) - at, 0, -1) if text[at : at + n] in known)
        session.advance(known[text[at : at + length]])
        at += length
    return session.accepting


def test_a_label_state_reads_no_chain() -> None:
    """What the walk of labels takes for granted."""
    node = labels(json_texts(["a", "b"]))
    program = compile_nodes(Schema(node, {}), WORDS).automaton.program
    is_label = program.states[:, FLAGS] & LABEL != 0
    assert np.all(program.states[is_label, CHAIN] == -1)
