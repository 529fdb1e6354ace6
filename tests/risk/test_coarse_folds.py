"""Folds of many cells are completed with few factors, and risks are as large as with all of them."""

import numpy as np
import pytest

import surefill as sf
from surefill.completion import BayesianFactorModel
from surefill.datasets import make_low_rank
from surefill.risk import CrossFit, RiskModel, cross_fitting
from surefill.risk.lower_bounds import RiskLowerBounds


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


def test_variances_come_from_few_factors_that_saw_all_cells(many):
    folds = CrossFit(many.observations, BayesianFactorModel(rank=6))
    spread = folds.evidence(folds.whole()).spread
    assert spread.rank == 2
    np.testing.assert_array_equal(spread.rows.ids, many.observations.by_row.ids)
    i, j = many.observations.rows[:5], many.observations.cols[:5]
    assert folds.evidence(folds.whole()).log_variance(i, j) == pytest.approx(
        np.log(spread.variance(i, j) * folds.fold_completion(0).noise / spread.noise)
    )


def test_a_risk_with_few_factors_takes_in_rows_and_bounds_itself_from_below(many):
    folds = CrossFit(many.observations, BayesianFactorModel(rank=6))
    completion = folds.whole()
    risk = RiskModel().fit(many.observations, completion, folds)
    every = np.arange(150), np.arange(120)
    log_risk = np.log(risk.at(*(each.ravel() for each in np.meshgrid(*every, indexing="ij")))).reshape(150, 120)
    assert (RiskLowerBounds.of(risk, 1.0).of_rows(every[0]) <= log_risk.min(axis=1)).all()
    some = many.observations.select(many.observations.rows < 20)
    folded = risk.fold_in(some, completion.fold_in(some))
    assert folded.evidence.spread.rank == 2
    assert (folded.at([3], [4]) > 0).all()


def test_the_rank_is_chosen_on_the_first_fold_whose_completions_are_kept(many, monkeypatch):
    monkeypatch.setattr(cross_fitting, "FOLD_FACTORS", 10)
    wide = make_low_rank((150, 120), rank=25, n_draws=12000, noise=0.05, random_state=0).observations
    folds = CrossFit(wide, BayesianFactorModel())
    chosen = folds.choose()
    assert chosen.rank >= 20
    train, held_out = folds.split(0)
    monkeypatch.setattr(BayesianFactorModel, "growth", None)  # nothing of the first fold is fitted again
    kept = folds.completion(0), folds.fold_completion(0)
    monkeypatch.undo()
    for completion, rank in zip(kept, (chosen.rank, 10), strict=True):
        again = BayesianFactorModel(rank=rank).fit(train)
        np.testing.assert_allclose(completion.at(held_out.rows, held_out.cols), again.at(held_out.rows, held_out.cols))


def test_a_given_rank_is_not_chosen(many):
    folds = CrossFit(many.observations, BayesianFactorModel(rank=6))
    assert (folds.choose().rank, folds.completion(0).rank, folds.fold_completion(0).rank) == (6, 6, 2)


def test_a_completer_with_few_factors_for_variances_is_stored_and_goes_on(many, tmp_path):
    seen = many.observations
    completer = sf.PartialCompleter(tolerance=0.2, completion=BayesianFactorModel(rank=6)).fit(seen)
    assert completer.result_.risk.evidence.spread.rank == 2
    completer.save(tmp_path / "model.surefill")
    again = sf.load(tmp_path / "model.surefill")
    cells = seen.rows[:50], seen.cols[:50]
    np.testing.assert_array_equal(again.result_.risk.at(*cells), completer.result_.risk.at(*cells))
    more = again.observe([150, 150], [0, 1], [0.2, -0.1])
    assert more.result_.risk.evidence.spread.shape == (151, 120)
    assert np.isfinite(more.result_.risk.at([150, 3], [5, 6])).all()
