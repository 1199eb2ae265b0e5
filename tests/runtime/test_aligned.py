"""Draws against distributions that are enumerated, on models that are tables of probabilities."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.compiler import compile as compile_schema
from structgen.errors import ModelError, OptionError
from structgen.runtime.aligned import Aligned, AlignedSampler
from structgen.runtime.events import Step
from structgen.runtime.loop import decode
from structgen.runtime.prefixes import Prefixes
from structgen.runtime.sampling import Sampling
from structgen.schema.roots import OneOf, Regex
from structgen.testing import FakeLM, RandomLM, byte_vocabulary, small_vocabulary

BYTES = byte_vocabulary()
WORDS = small_vocabulary(["ab", "abc", "bc", "ca", "aa"])
PROMPT = [0]
PATIENT = Aligned(max_attempts=100_000)
END = ""

Distribution = dict[tuple[int, ...], float]


class TableLM(FakeLM):
    """Writes bytes with probabilities that are a function of the text so far."""

    name = "table"

    def __init__(self, table: Callable[[str], Mapping[str, float]]) -> None:
        super().__init__(BYTES)
        self.table = table

    def logits(self, token_ids):
        logits = torch.full((BYTES.width,), -60.0)
        text = bytes(token_ids[len(PROMPT) :]).decode()
        for char, probability in self.table(text).items():
            token_id = BYTES.eos_token_ids[0] if char == END else ord(char)
            logits[token_id] = math.log(probability)
        return logits


def binary(text: str) -> dict[str, float]:
    """Likes to begin with 0, and dislikes what then has to follow."""
    if len(text) == 5:
        return {END: 0.9, "x": 0.1}
    if not text:
        return {"0": 0.8, "1": 0.2}
    return {"0": 0.3, "1": 0.7} if text[0] == "0" else {"0": 0.4, "1": 0.6}


BINARY = OneOf(["00000", *("1" + "".join(rest) for rest in itertools.product("01", repeat=4))])
"""The strings of the example in Park et al. 2024: 00000, or five digits that begin with 1."""


def tempting(text: str) -> dict[str, float]:
    """Likes the letter a, behind which it would rather leave what is valid."""
    if len(text) == 4:
        return {END: 1.0}
    rest = 0.02 if text.endswith("a") else 0.99
    return {"a": 0.9 * rest, "b": 0.1 * rest, "x": 1.0 - rest}


TEMPTING = Regex("[ab]{4}")


def all_sequences(lm, session, temperature=1.0, *, count_end=True, taken=(), log_prob=0.0):
    """(token ids, log-probability) of every way to write a value, by trying every token."""
    over = session.complete or session.exhausted
    if session.finished or (over and not count_end):
        yield taken, log_prob
        return
    log_probs = (lm.logits([*PROMPT, *taken]).double() / temperature).log_softmax(-1)
    for token_id in range(lm.vocabulary.width):
        if session.allows(token_id):
            twin = session.fork()
            twin.advance(token_id)
            further = log_prob + float(log_probs[token_id])
            yield from all_sequences(
                lm, twin, temperature, count_end=count_end, taken=(*taken, token_id),
                log_prob=further,
            )  # fmt: skip


def conditional(*args, **kwargs) -> Distribution:
    weights = {ids: math.exp(log_prob) for ids, log_prob in all_sequences(*args, **kwargs)}
    total = sum(weights.values())
    return {ids: weight / total for ids, weight in weights.items()}


def distance(drawn: Counter[tuple[int, ...]], exact: Distribution) -> float:
    """Total variation between what was drawn and what should have been."""
    assert drawn.keys() <= exact.keys(), "only what is valid is drawn"
    return sum(abs(drawn[ids] / drawn.total() - p) for ids, p in exact.items()) / 2


def sampling_error(n_draws: int, n_outcomes: int) -> float:
    """What the distance of right draws exceeds in one of 1,000 tests.

    Its mean is at most sqrt((outcomes - 1) / draws) / 2 (Jensen), and by McDiarmid it is larger
    than that by more than e with a probability below exp(-2 * draws * e**2).
    """
    spread = math.sqrt(math.log(1000) / (2 * n_draws))
    return math.sqrt((n_outcomes - 1) / n_draws) / 2 + spread


def aligned_draws(lm, session, n, *, options=PATIENT, temperature=1.0):
    sampler = AlignedSampler(lm, PROMPT, session, temperature=temperature, options=options)
    return [sampler.draw(Sampling(True, seed=seed)) for seed in range(n)]


def ids_of(steps) -> tuple[int, ...]:
    return tuple(step.token_id for step in steps)


def counted(draws) -> Counter[tuple[int, ...]]:
    return Counter(ids_of(draw.steps) for draw in draws)


def masked_draws(lm, compiled, n) -> Counter[str]:
    """What masking token by token draws: texts."""
    return Counter(
        lm.vocabulary.decode([step.token_id for step in steps]).decode()
        for seed in range(n)
        for steps in [
            [
                event
                for event in decode(lm, [PROMPT], [compiled.session(20)], Sampling(True, seed=seed))
                if isinstance(event, Step) and not event.end
            ]
        ]
    )


@pytest.mark.parametrize(("table", "schema"), [(binary, BINARY), (tempting, TEMPTING)])
def test_draws_have_the_models_own_distribution_where_masking_is_far_off(table, schema):
    lm, compiled, n = TableLM(table), compile_schema(schema, BYTES), 1000
    exact = conditional(lm, compiled.session(20))
    assert len(exact) in (17, 16)
    draws = aligned_draws(lm, compiled.session(20), n)
    assert all(draw.info.exact for draw in draws)
    assert distance(counted(draws), exact) < sampling_error(n, len(exact)) < 0.13

    masked = masked_draws(lm, compiled, n // 4)
    ends = BYTES.eos_token_ids
    masked_ids = Counter({(*text.encode(), *ends): count for text, count in masked.items()})
    assert distance(masked_ids, exact) > 0.6


@pytest.mark.parametrize(
    ("schema", "vocabulary", "budget"),
    [
        pytest.param(OneOf(["ab", "abc", "b", "ca"]), WORDS, 20, id="several tokenisations"),
        pytest.param(OneOf(["aaaa", "ab"]), WORDS, 3, id="a budget"),
        pytest.param(Regex("(ab|a){1,2}c?"), WORDS, 20, id="regex"),
    ],
)
@pytest.mark.parametrize("count_end", [True, False])
def test_draws_of_token_sequences_have_the_conditional_distribution(
    schema, vocabulary, budget, count_end
):
    lm, n = RandomLM(vocabulary, seed=5), 500
    session = compile_schema(schema, vocabulary).session(budget)
    exact = conditional(lm, session, count_end=count_end)
    assert len(exact) > 3
    options = Aligned(max_attempts=100_000, count_end=count_end)
    draws = aligned_draws(lm, session, n, options=options)
    assert distance(counted(draws), exact) < sampling_error(n, len(exact))


def test_a_temperature_is_a_part_of_the_models_distribution():
    lm, n = TableLM(tempting), 500
    session = compile_schema(TEMPTING, BYTES).session(20)
    hot, warm = conditional(lm, session, 3.0), conditional(lm, session)
    drawn = counted(aligned_draws(lm, session, n, temperature=3.0))
    error = sampling_error(n, len(hot))
    assert distance(drawn, hot) < error
    assert sum(abs(hot[ids] - warm[ids]) for ids in hot) / 2 > 2 * error


def test_forced_tokens_count():
    def table(text):
        return {"": {"a": 0.5, "b": 0.5}, "a": {"x": 0.1, "y": 0.9}, "b": {"x": 0.9, "y": 0.1}}.get(
            text, {END: 1.0}
        )

    lm, n = TableLM(table), 500
    draws = aligned_draws(lm, compile_schema(OneOf(["ax", "bx"]), BYTES).session(9), n)
    share = counted(draws)[(*b"ax", *BYTES.eos_token_ids)] / n
    assert abs(share - 0.1) < sampling_error(n, 2)


def test_the_end_counts_where_it_is_asked_for():
    def table(text):
        return {"": {"a": 0.5, "b": 0.5}, "a": {END: 0.9, "z": 0.1}}.get(text, {END: 0.1, "z": 0.9})

    session = compile_schema(OneOf(["a", "b"]), BYTES).session(9)
    n = 500
    with_end = counted(aligned_draws(TableLM(table), session, n))
    assert abs(with_end[(*b"a", *BYTES.eos_token_ids)] / n - 0.9) < sampling_error(n, 2)
    without = counted(aligned_draws(TableLM(table), session, n, options=Aligned(count_end=False)))
    assert abs(without[tuple(b"a")] / n - 0.5) < sampling_error(n, 2)


def test_a_value_without_a_choice_takes_one_attempt_and_two_passes():
    lm = RandomLM(BYTES)
    (draw,) = aligned_draws(lm, compile_schema(OneOf(["abcdefgh"]), BYTES).session(20), 1)
    assert draw.info.exact
    assert draw.info.attempts == 1
    assert draw.end.forward_passes == len(lm.chunks) == 2
    assert [len(chunk) for (chunk,) in lm.chunks] == [1, 8]
    expected = conditional_log_mass(lm, b"abcdefgh")
    assert draw.info.log_valid_mass == pytest.approx(expected, rel=1e-5)


def conditional_log_mass(lm, text: bytes) -> float:
    ids = [*text, *BYTES.eos_token_ids]
    parts = (lm.logits([*PROMPT, *ids[:i]]).log_softmax(-1)[t] for i, t in enumerate(ids))
    return float(sum(parts))


def test_scores_are_those_among_the_legal_tokens():
    lm = TableLM(binary)
    session = compile_schema(BINARY, BYTES).session(20)
    for draw in aligned_draws(lm, session, 5, temperature=0.7):
        row = session.fork()
        for step, before in zip(draw.steps, range(20), strict=False):
            log_probs = lm.logits([*PROMPT, *ids_of(draw.steps)[:before]]).log_softmax(-1)
            legal = [i for i in range(BYTES.width) if row.allows(i)]
            mass = float(log_probs[legal].exp().sum())
            own = float(log_probs[step.token_id])
            assert step.valid_mass == pytest.approx(mass, rel=1e-5)
            assert step.log_prob == pytest.approx(own - math.log(mass), abs=1e-5)
            row.advance(step.token_id)
        assert draw.steps[-1].end
        assert draw.end.finish_reason == "complete"


def test_later_draws_cost_fewer_passes_and_the_same_seed_gives_the_same_value():
    lm = RandomLM(WORDS, seed=2)
    session = compile_schema(Regex("(ab|a){1,3}c?"), WORDS).session(12)
    draws = aligned_draws(lm, session, 30)
    passes = [draw.end.forward_passes for draw in draws]
    assert sum(passes) == len(lm.chunks)
    assert sum(passes[15:]) < sum(passes[:15])
    for seed in (3, 29):
        alone = AlignedSampler(RandomLM(WORDS, seed=2), PROMPT, session, options=PATIENT)
        again = alone.draw(Sampling(True, seed=seed))
        assert ids_of(again.steps) == ids_of(draws[seed].steps)
        assert again.info == draws[seed].info


def test_readings_that_had_to_make_room_are_made_again():
    session = compile_schema(Regex("(ab|a){1,3}c?"), WORDS).session(12)
    roomy = AlignedSampler(RandomLM(WORDS), PROMPT, session, options=PATIENT)
    narrow = AlignedSampler(RandomLM(WORDS), PROMPT, session, options=PATIENT)
    narrow.prefixes = Prefixes(RandomLM(WORDS), PROMPT, 1.0, capacity_bytes=100)
    for seed in range(10):
        sampling = Sampling(True, seed=seed)
        assert ids_of(narrow.draw(sampling).steps) == ids_of(roomy.draw(sampling).steps)
        assert narrow.prefixes.memory_bytes() <= 100
    assert narrow.prefixes.forward_passes > roomy.prefixes.forward_passes


def test_a_draw_whose_attempts_are_used_up_says_so_and_proposals_bring_it_closer():
    lm, n = TableLM(tempting), 200
    session = compile_schema(TEMPTING, BYTES).session(20)
    exact = conditional(lm, session)
    distances = {}
    for proposals in (1, 5):
        options = Aligned(max_attempts=1, n_proposals=proposals)
        draws = aligned_draws(lm, session, n, options=options)
        late = [draw for draw in draws if not draw.info.exact]
        assert len(late) > n / 2
        assert all(draw.info.attempts == 1 for draw in late)
        distances[proposals] = distance(counted(late), exact)
    assert distances[1] > 0.3
    assert distances[5] < 0.3


SCHEMAS = [
    OneOf(["ab", "abc", "b", "ca"]),
    Regex("(ab|a){1,4}c?"),
    Regex("[abc]{0,3}"),
    dict[str, bool],
    bool,
]


@settings(max_examples=60, deadline=None)
@given(
    schema=st.sampled_from(SCHEMAS),
    seed=st.integers(0, 2**40),
    max_attempts=st.integers(1, 4),
    count_end=st.booleans(),
    extra=st.integers(0, 6),
)
def test_a_draw_is_legal_within_the_budget_and_follows_from_its_seed(
    schema, seed, max_attempts, count_end, extra
):
    compiled = compile_schema(schema, WORDS)
    budget = compiled.min_tokens + extra
    options = Aligned(max_attempts=max_attempts, count_end=count_end, n_proposals=2)

    def drawn():
        lm = RandomLM(WORDS, seed=seed % 7)
        sampler = AlignedSampler(lm, PROMPT, compiled.session(budget), options=options)
        return sampler.draw(Sampling(True, seed=seed))

    draw = drawn()
    session = compiled.session(budget)
    for step in draw.steps:
        session.advance(step.token_id)
    assert session.finished or (not count_end and (session.complete or session.exhausted))
    assert session.n_tokens <= budget
    assert draw.info.attempts <= max_attempts
    assert draw.info.log_valid_mass <= 0
    assert ids_of(drawn().steps) == ids_of(draw.steps)


def walks(lm, session, n) -> Iterator[tuple[int, ...]]:
    for draw in aligned_draws(lm, session, n, options=Aligned(max_attempts=1)):
        yield ids_of(draw.steps)


def test_ways_that_end_in_nothing_are_left():
    def table(text):
        return {"": {"a": 0.9, "b": 0.1}, "b": {"x": 1.0}}.get(text, {END: 1.0})

    class Never(TableLM):
        def logits(self, token_ids):
            logits = super().logits(token_ids)
            return logits.masked_fill(logits < -50, -math.inf)

    session = compile_schema(OneOf(["ax", "bx"]), BYTES).session(9)
    assert set(walks(Never(table), session, 20)) == {(*b"bx", *BYTES.eos_token_ids)}
    session = compile_schema(OneOf(["cx", "ax"]), BYTES).session(9)
    with pytest.raises(ModelError, match="no probability to any valid value"):
        list(walks(Never(table), session, 1))


def test_logits_that_are_no_numbers_are_the_models_error():
    class Broken(FakeLM):
        def logits(self, token_ids):
            return torch.full((self.vocabulary.width,), math.nan)

    session = compile_schema(bool, BYTES).session(9)
    with pytest.raises(ModelError, match="not finite"):
        list(walks(Broken(BYTES), session, 1))


@pytest.mark.parametrize(
    "wrong",
    [{"max_attempts": 0}, {"n_proposals": True}, {"count_end": "yes"}, {"max_attempts": 2.0}],
)
def test_options_are_checked(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Aligned(**wrong)
