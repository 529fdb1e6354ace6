"""Folds of many cells are completed with few factors, and risks are as large as with all of them."""

import numpy as np
import pytest

from surefill.completion import BayesianFactorModel
from surefill.datasets import make_low_rank
from surefill.risk import CrossFit, RiskModel, cross_fitting


@pytest.fixture
def many(monkeypatch):
    """A table of rank 6 of which the library thinks that it is large; folds have two factors."""
    monkeypatch.setattr(cross_fitting, "COMPACT_CELLS", 1000)
    monkeypatch.setattr(cross_fitting, "FOLD_FACTORS", 2)
    return make_low_rank((150, 120), rank=6, n_draws=9000, noise=0.1, random_state=0)


def test_folds_have_few_factors_and_the_whole_has_all(many):
    folds = CrossFit(many.observations, BayesianFactorModel(rank=6))
    assert [folds.fold_completion(fold).rank for fold in range(2)] == [2, 2]
    assert (folds.completion(0).rank, folds.whole().rank) == (6, 6)


def test_risks_are_those_of_the_completion_with_all_factors(many):
    folds = CrossFit(many.observations, BayesianFactorModel(rank=6))
    completion = folds.whole()
    risk = RiskModel().fit(many.observations, completion, folds)
    i, j = np.divmod(np.arange(150 * 120), 120)
    loss = (completion.at(i, j) - many.truth[i, j]) ** 2 + 0.1**2 / 3
    coarse = (folds.fold_completion(0).at(i, j) - many.truth[i, j]) ** 2 + 0.1**2 / 3
    assert coarse.mean() > 1.5 * loss.mean()
    assert np.mean(risk.at(i, j)) == pytest.approx(loss.mean(), rel=0.15)


def test_a_model_of_few_factors_is_fitted_as_it_is(many):
    few = BayesianFactorModel(rank=2)
    assert few.with_few_factors(2) is few
    folds = CrossFit(many.observations, few)
    assert folds.fold_completion(0) is folds.completion(0)
