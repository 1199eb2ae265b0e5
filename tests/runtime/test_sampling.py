from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structgen.errors import OptionError
from structgen.runtime import sampling as sampling_module
from structgen.runtime.sampling import Sampling, choose, draw, warp

NEVER = float("-inf")
CPU = torch.device("cpu")

logits_rows = st.lists(
    st.one_of(st.just(NEVER), st.floats(-30, 30, width=32)), min_size=1, max_size=40
).filter(lambda row: max(row) > NEVER)
samplings = st.builds(
    Sampling,
    do_sample=st.just(True),
    temperature=st.sampled_from([1e-300, 1e-6, 0.5, 1.0, 3.0, 1e300]),
    top_k=st.sampled_from([None, 1, 3, 1000]),
    top_p=st.sampled_from([None, 1e-9, 0.5, 0.9, 1.0]),
    min_p=st.sampled_from([None, 1e-9, 0.1, 1.0]),
    seed=st.integers(0, 5),
)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", 0),
        ("temperature", 0.0),
        ("temperature", -1.0),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", None),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_k", 0),
        ("top_k", 2.0),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("min_p", 2),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", "x"),
        ("do_sample", 1),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(option, value):
    with pytest.raises(OptionError, match=f"{option}={value!r} must be"):
        Sampling(**{option: value})


def test_greedy_takes_the_best_token_whatever_the_other_options():
    logits = torch.tensor([[NEVER, 1.0, 2.0], [3.0, NEVER, 1.0]])
    assert choose(logits, Sampling(temperature=100.0, top_k=1), []).tolist() == [2, 0]


@given(row=logits_rows, sampling=samplings)
def test_a_drawn_token_is_legal_and_no_order_changes(row, sampling):
    logits = torch.tensor([row])
    warped = warp(logits, sampling)[0]
    assert (warped > NEVER).any()
    assert (logits[0, warped > NEVER] > NEVER).all()
    best_first = logits[0].argsort(descending=True, stable=True)
    kept = warped[best_first]
    assert (kept[:-1] >= kept[1:]).all()
    [token] = choose(logits, sampling, [sampling.generator(CPU)]).tolist()
    assert row[token] > NEVER


def keep_slowly(row: list[float], sampling: Sampling) -> set[int]:
    """The tokens that stay, by the options' definitions, one after the other."""
    alive = [i for i, logit in enumerate(row) if logit > NEVER]

    def probability(i: int) -> float:
        best = max(row[j] for j in alive)
        weights = {j: math.exp((row[j] - best) / sampling.temperature) for j in alive}
        return weights[i] / math.fsum(weights.values())

    if sampling.top_k is not None:
        bar = sorted((row[i] for i in alive), reverse=True)[: sampling.top_k][-1]
        alive = [i for i in alive if row[i] >= bar]
    if sampling.top_p is not None:
        ordered = sorted(alive, key=lambda i: -row[i])
        shares = [probability(i) for i in ordered]
        alive = [i for n, i in enumerate(ordered) if math.fsum(shares[:n]) < sampling.top_p]
    if sampling.min_p is not None:
        best_share = max(map(probability, alive))
        alive = [i for i in alive if probability(i) >= sampling.min_p * best_share]
    return set(alive)


@given(
    row=st.lists(st.integers(-8, 8), min_size=2, max_size=12, unique=True),
    temperature=st.sampled_from([0.7, 1.0, 2.0]),
    top_k=st.sampled_from([None, 1, 2, 5]),
    top_p=st.sampled_from([None, 0.31, 0.77, 0.93]),
    min_p=st.sampled_from([None, 0.013, 0.21]),
)
def test_what_is_kept_agrees_with_the_definitions(row, temperature, top_k, top_p, min_p):
    row = [NEVER, *map(float, row)]
    sampling = Sampling(True, temperature, top_k, top_p, min_p)
    kept = warp(torch.tensor([row]), sampling)[0] > NEVER
    assert set(kept.nonzero().flatten().tolist()) == keep_slowly(row, sampling)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_masked_distribution(temperature):
    logits = torch.tensor([2.0, 1.0, NEVER, 0.0, -1.0])
    expected = (logits / temperature).softmax(-1)
    n_draws = 20_000
    sampling = Sampling(do_sample=True, temperature=temperature, seed=3)
    generator = sampling.generator(CPU)
    batch = logits.expand(n_draws, -1)
    counts = choose(batch, sampling, [generator] * n_draws).bincount(minlength=5)
    assert counts[2] == 0
    legal = expected > 0
    deviations = (counts - n_draws * expected)[legal] ** 2 / (n_draws * expected)[legal]
    assert deviations.sum() < 16.3  # chi-square, 3 degrees of freedom, p = 0.001


def test_a_flat_distribution_is_cut_beyond_the_head():
    logits = torch.arange(1000.0).flip(0)[None] * 1e-4
    kept = warp(logits, Sampling(do_sample=True, top_p=0.8))[0] > NEVER
    expected = keep_slowly(logits[0].tolist(), Sampling(True, top_p=0.8))
    assert set(kept.nonzero().flatten().tolist()) == expected
    assert 700 < kept.sum() < 800


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53, 1.0])
def test_the_ends_of_the_random_range_draw_legal_tokens(monkeypatch, number):
    uniform = torch.tensor([number], dtype=torch.float64)
    monkeypatch.setattr(sampling_module, "_uniform", lambda generator: uniform)
    logits = torch.tensor([[NEVER, 0.3, 0.1, NEVER, 0.7, NEVER]])
    [token] = draw(logits, [Sampling().generator(CPU)]).tolist()
    assert token == (1 if number == 0 else 4)


def test_a_row_draws_the_same_alone_and_in_a_batch():
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    sampling = Sampling(do_sample=True, seed=7)
    together = choose(logits, sampling, [s.generator(CPU) for s in sampling.for_rows(4)]).tolist()
    for i in range(4):
        alone = Sampling(do_sample=True, seed=7 + i)
        assert choose(logits[i : i + 1], alone, [alone.generator(CPU)]).tolist() == [together[i]]


def test_without_a_seed_rows_follow_torchs_global_seed():
    def draw() -> list[int]:
        return [s.generator(CPU).initial_seed() for s in Sampling(do_sample=True).for_rows(3)]

    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = draw()
        assert len(set(first)) == 3
        assert draw() != first
        torch.manual_seed(5)
        assert draw() == first
