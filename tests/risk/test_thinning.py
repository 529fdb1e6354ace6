import numpy as np
import pytest

from surefill.completion import BayesianFactorModel
from surefill.data.splits import fold_numbers
from surefill.datasets import make_low_rank
from surefill.guarantee.calibration_split import calibration_share
from surefill.risk import CrossFit, RiskModel, cross_fitting


@pytest.fixture
def many(monkeypatch):
    """A table of which the library thinks that it is very large."""
    monkeypatch.setattr(cross_fitting, "MANY_CELLS", 1000)
    monkeypatch.setattr(cross_fitting, "MOST_IN_BLOCKS", 1000)
    return make_low_rank((150, 120), rank=2, n_draws=6000, noise=0.3, random_state=0)


def test_one_fold_of_many_cells_teaches_a_risk_that_is_right_on_average(many):
    seen, algorithm = many.observations, BayesianFactorModel(rank=2)
    folds = CrossFit(seen, algorithm)
    _, held_out = folds.split(0)
    assert folds.n_folds == 1
    assert len(held_out) == pytest.approx(len(seen) / 5, rel=0.1)
    completion = folds.whole()
    risk = RiskModel().fit(seen, completion, folds)
    i, j = np.divmod(np.arange(150 * 120), 120)
    truth = many.truth.dense() if hasattr(many.truth, "dense") else many.truth
    loss = (completion.at(i, j) - truth[i, j]) ** 2 + 0.3**2 / 3
    assert np.mean(risk.at(i, j)) == pytest.approx(np.mean(loss), rel=0.1)


def test_the_fold_has_no_part_in_what_it_is_predicted_by(many):
    """Values of held-out cells that are changed change neither the fold's completion nor what it says of them."""
    seen, algorithm = many.observations, BayesianFactorModel(rank=2, max_sweeps=5)
    _, held_out = CrossFit(seen, algorithm).split(0)
    values = seen.values.copy()
    values[seen.find(held_out.rows, held_out.cols)] *= -0.5
    repeats = {"counts": seen.counts, "scatter": seen.scatter}
    changed = type(seen)(seen.rows, seen.cols, values, seen.shape, seen.bounds, **repeats)
    first, second = (CrossFit(each, algorithm).residuals().predicted for each in (seen, changed))
    np.testing.assert_array_equal(first, second)


def test_the_table_of_a_fold_is_not_kept_and_its_variances_are_those_it_had(many):
    seen, algorithm = many.observations, BayesianFactorModel(rank=2, max_sweeps=5)
    folds = CrossFit(seen, algorithm)
    assert folds.completion(0).row_covariances is None
    train, held_out = folds.split(0)
    expected = np.log(algorithm.fit(train).variance(held_out.rows, held_out.cols))
    np.testing.assert_array_equal(folds.residuals().log_variance, expected)


def test_blocks_are_hidden_in_some_rows_of_many(many):
    blocks = CrossFit(many.observations, BayesianFactorModel(rank=2, max_sweeps=5)).without_blocks()
    hidden = len(blocks.inside) + len(blocks.crossing)
    assert 0 < hidden < 1000


def test_folds_are_numbered_in_a_byte():
    numbers = fold_numbers(1000, 5, random_state=3)
    assert numbers.dtype == np.uint8
    np.testing.assert_array_equal(numbers, np.random.default_rng(3).permutation(np.arange(1000) % 5))


def test_calibration_cells_are_capped():
    assert [round(calibration_share(n) * n) for n in (10_000, 150_000, 1_000_000, 10**8)] == [
        2_000, 20_000, 100_000, 500_000,
    ]  # fmt: skip
