"""Thresholds that suit labelled texts, and the slow search that they have to agree with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structgen.classification import thresholds
from structgen.classification.thresholds import applying, best_thresholds


@pytest.fixture
def unsmoothed(monkeypatch):
    monkeypatch.setattr(thresholds, "PSEUDO", 0.0)


def random_rows(seed: int, n_rows: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    applies = random.random((n_rows, n_labels)) < 0.4
    shares = np.clip(random.random((n_rows, n_labels)) + 0.2 * applies, 0, 0.9)
    return np.round(shares, 1), applies


def f1(given: np.ndarray, applies: np.ndarray) -> float:
    return 2 * (given & applies).sum() / max(given.sum() + applies.sum(), 1)


@pytest.mark.usefixtures("unsmoothed")
@pytest.mark.parametrize("seed", range(20))
def test_no_threshold_of_a_label_does_better(seed):
    shares, applies = random_rows(seed, 12, 3)
    found = best_thresholds(shares, applies)
    for label in range(3):
        each = [f1(shares[:, label] >= t, applies[:, label]) for t in np.linspace(0, 1.05, 22)]
        mine = f1(shares[:, label] >= found[label], applies[:, label])
        assert mine == pytest.approx(max(each))


@pytest.mark.usefixtures("unsmoothed")
@pytest.mark.parametrize("seed", range(20))
def test_no_thresholds_of_all_labels_do_better_together(seed):
    shares, applies = random_rows(seed, 8, 2)
    found = best_thresholds(shares, applies, "micro")
    grid = np.linspace(0, 1.05, 22)
    each = [f1(shares >= np.array(pair), applies) for pair in itertools.product(grid, grid)]
    assert f1(shares >= found, applies) == pytest.approx(max(each))


def test_labels_that_are_told_apart_get_thresholds_between():
    shares = np.array([[0.9, 0.2], [0.8, 0.1], [0.4, 0.02], [0.3, 0.01]] * 5)
    applies = np.array([[True, True], [True, True], [False, False], [False, False]] * 5)
    for average in ("macro", "micro"):
        assert ((shares >= best_thresholds(shares, applies, average)) == applies).all()


def test_a_label_without_positives_gets_a_threshold_that_suits_all():
    shares = np.array([[0.9, 0.7], [0.8, 0.1], [0.4, 0.75], [0.3, 0.1]] * 10)
    applies = np.array([[True, False], [True, False], [False, False], [False, False]] * 10)
    common, alone = best_thresholds(shares, applies)
    assert 0.4 < common <= 0.8
    assert alone > 0.75, "given to no text of those that were seen"
    few = best_thresholds(shares[:, ::-1], applies[:, ::-1])
    assert few.tolist() == [alone, common]


def test_where_no_label_applies_none_is_given():
    shares = np.array([[0.9, 0.2], [0.3, 0.99]])
    for average in ("macro", "micro"):
        assert not (shares >= best_thresholds(shares, np.zeros((2, 2), bool), average)).any()


def test_what_is_counted_is_what_applies():
    shares, applies = random_rows(1, 12, 3)
    shares[0] = [0.0, 1.0, 0.5]
    candidates = np.array([0.0, 0.5, 1.0])
    given, right = thresholds._counts(shares, applies, candidates)
    for place, candidate in enumerate(candidates):
        gets = applying(shares, np.full(3, candidate))
        assert gets.sum(0).tolist() == given[:, place].tolist()
        assert (gets & applies).sum(0).tolist() == right[:, place].tolist()
    assert not applying(np.array([0.5]), np.array([0.5])).any()
    assert applying(np.array([0.0]), np.array([0.0])).all()


def test_many_rows_have_some_candidates_only():
    random = np.random.default_rng(0)
    shares = random.random((3000, 4))
    applies = shares + 0.1 * random.standard_normal((3000, 4)) > 0.7
    found = best_thresholds(shares, applies)
    assert found == pytest.approx([0.7] * 4, abs=0.05)
