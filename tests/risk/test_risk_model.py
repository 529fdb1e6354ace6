from dataclasses import dataclass, replace

import numpy as np
import pytest

from surefill import InputError, Observations
from surefill.completion import BayesianFactorModel, FactorModel
from surefill.datasets import load_movielens, make_low_rank
from surefill.io.archive import read_archive, write_archive
from surefill.risk import CrossFit, FittedRisk, RiskModel
from surefill.spaces import DenseConfidence


@dataclass(frozen=True)
class Uneven:
    """A matrix of rank 2 in normal noise whose variance is a product of row and column factors."""

    seen: Observations
    truth: np.ndarray
    noise: np.ndarray

    @classmethod
    def draw(cls, m=200, n=120, n_cells=7000, seed=0):
        rng = np.random.default_rng(seed)
        truth = rng.normal(0, 0.7, (m, 2)) @ rng.normal(0, 0.7, (2, n))
        noise = 0.2 * rng.gamma(2, 0.5, (m, 1)) * rng.gamma(4, 0.25, (1, n))
        cells = rng.permutation(m * n)[:n_cells]
        i, j = cells // n, cells % n
        y = truth[i, j] + rng.normal(0, np.sqrt(noise[i, j]))
        return cls(Observations(i, j, y, (m, n)), truth, noise)


@dataclass(frozen=True)
class Memory:
    """Knows by heart the cells it was fitted on, and elsewhere says their mean."""

    def fit(self, observations, progress=None):
        return Remembered(observations)


@dataclass(frozen=True)
class Remembered:
    seen: Observations

    @property
    def shape(self):
        return self.seen.shape

    def at(self, rows, cols):
        position = self.seen.find(rows, cols)
        return np.where(position >= 0, self.seen.values[position], self.seen.values.mean())


@dataclass(frozen=True)
class Stated:
    """Predicts 0 with the variance it is given for each cell, and is confident as it is told."""

    stated: np.ndarray

    def fit(self, observations, progress=None):
        return self

    @property
    def shape(self):
        return self.stated.shape

    def at(self, rows, cols):
        return np.zeros(len(rows))

    def variance(self, rows, cols):
        return self.stated[rows, cols]


def fitted(seen, algorithm, **folds):
    return RiskModel().fit(seen, algorithm.fit(seen), CrossFit(seen, algorithm, **folds))


@pytest.fixture(scope="module")
def uneven():
    return Uneven.draw()


@pytest.fixture(scope="module")
def risk(uneven):
    return fitted(uneven.seen, BayesianFactorModel(rank=2))


def all_cells(shape):
    return np.indices(shape).reshape(2, -1)


def test_the_risk_tracks_the_expected_squared_error_where_noise_differs_by_row_and_column(uneven, risk):
    i, j = all_cells(uneven.truth.shape)
    unseen = uneven.seen.find(i, j) < 0
    i, j = i[unseen], j[unseen]
    expected = uneven.noise[i, j] + (risk.evidence.completion.at(i, j) - uneven.truth[i, j]) ** 2
    predicted = risk.at(i, j)
    variance = risk.evidence.completion.variance(i, j)
    assert np.corrcoef(np.log(predicted), np.log(expected))[0, 1] > 0.85
    assert np.corrcoef(np.log(variance), np.log(expected))[0, 1] < 0.3
    for tenth in np.array_split(np.argsort(predicted), 10):
        assert predicted[tenth].mean() == pytest.approx(expected[tenth].mean(), rel=0.15)


def test_factors_of_rows_and_columns_are_those_of_their_noise(uneven, risk):
    of_rows, of_cols = uneven.noise.mean(axis=1), uneven.noise.mean(axis=0)
    assert np.corrcoef(np.log(risk.rows.factors[:-1]), np.log(of_rows))[0, 1] > 0.85
    assert np.corrcoef(np.log(risk.cols.factors[:-1]), np.log(of_cols))[0, 1] > 0.85


def test_a_row_that_is_noisy_where_predictions_are_high_has_its_risk_there():
    rng = np.random.default_rng(4)
    m, n = 150, 100
    truth = rng.normal(0, 0.3, (m, 1)) + rng.normal(0, 1, (1, n))
    up = np.arange(m) % 2 == 0
    spread = 0.4 * np.exp(np.where(up, 0.4, -0.4)[:, None] * truth)
    i, j = np.nonzero(rng.random((m, n)) < 0.5)
    seen = Observations(i, j, truth[i, j] + spread[i, j] * rng.normal(size=len(i)), (m, n))
    found = fitted(seen, BayesianFactorModel(rank=2))
    assert (found.rows.slopes[:-1] > 0)[up].mean() > 0.9
    assert (found.rows.slopes[:-1] < 0)[~up].mean() > 0.9
    i, j = all_cells((m, n))
    assert np.corrcoef(np.log(found.at(i, j)), np.log(spread[i, j]))[0, 1] > 0.8


def test_other_units_scale_the_risk_by_the_square(uneven, risk):
    seen = uneven.seen
    other = Observations(seen.rows, seen.cols, 3 + 10 * seen.values, seen.shape)
    i, j = all_cells((40, 30))
    np.testing.assert_allclose(fitted(other, BayesianFactorModel(rank=2)).at(i, j), 100 * risk.at(i, j), rtol=1e-6)


def test_residuals_come_from_completions_that_did_not_see_the_cell():
    rng = np.random.default_rng(0)
    i, j = all_cells((60, 60))
    half = rng.permutation(3600)[:1800]
    seen = Observations(i[half], j[half], rng.normal(0, 1, 1800), (60, 60))
    assert np.all(seen.squared_errors(Memory().fit(seen).at(seen.rows, seen.cols)) == 0)
    assert fitted(seen, Memory()).at(i, j).mean() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_risk_is_never_zero(noise):
    sim = make_low_rank((30, 20), rank=1, n_draws=500, noise=noise, random_state=0)
    predicted = fitted(sim.observations, BayesianFactorModel(rank=1)).at(*all_cells((30, 20)))
    assert np.isfinite(predicted).all()
    assert predicted.min() > 0


def test_the_risk_is_not_zero_even_where_every_residual_was():
    i, j = all_cells((6, 5))
    seen = Observations(i, j, np.zeros(30), (6, 5), bounds=(-1, 1))
    assert fitted(seen, Stated(np.ones((6, 5)))).at(i, j).min() > 0


def test_a_noisier_row_or_column_has_more_risk(risk):
    for side in ("rows", "cols"):
        louder = replace(getattr(risk, side), factors=1.5 * getattr(risk, side).factors)
        np.testing.assert_allclose(replace(risk, **{side: louder}).at([0, 5], [3, 4]), 1.5 * risk.at([0, 5], [3, 4]))


@pytest.mark.parametrize(("power", "expected"), [(1.0, 1.0), (2.0, 2.0), (0.0, 0.0), (-1.0, 0.0)])
def test_the_slope_of_the_variance_is_found_and_never_below_zero(power, expected):
    rng = np.random.default_rng(1)
    stated = np.exp(rng.normal(0, 0.5, (80, 60)))
    i, j = all_cells(stated.shape)
    seen = Observations(i, j, rng.normal(0, np.sqrt(stated[i, j] ** power)), stated.shape)
    found = fitted(seen, Stated(stated))
    assert found.slope == pytest.approx(expected, abs=0.1)
    order = np.argsort(stated[3])
    rising = (found.at(np.full(60, 3), np.arange(60)) / found.cols.factors[:-1])[order]
    assert np.all(np.diff(rising) >= -1e-12)


def test_what_no_support_means_in_error_is_measured_on_hidden_blocks():
    sim = make_low_rank((200, 150), rank=3, n_draws=9000, noise=0.1, random_state=0)
    train, test = blocks_apart(sim.observations)
    algorithm = BayesianFactorModel(rank=3)
    completion, C = algorithm.fit(train), np.equal.outer(*halves(sim.observations.shape)).astype(float)
    plain = RiskModel().fit(train, completion, CrossFit(train, algorithm))
    with_support = RiskModel().fit(train, completion, CrossFit(train, algorithm), DenseConfidence(C), floor=0.5)
    errors = test.squared_errors(completion.at(test.rows, test.cols))
    assert plain.at(test.rows, test.cols).mean() < 0.5 * errors.mean()
    assert with_support.at(test.rows, test.cols).mean() == pytest.approx(errors.mean(), rel=0.6)
    inside = train.select(np.arange(0, len(train), 7))
    np.testing.assert_array_equal(with_support.at(inside.rows, inside.cols), plain.at(inside.rows, inside.cols))


def halves(shape):
    return np.arange(shape[0]) % 2 == 0, np.arange(shape[1]) % 2 == 0


def blocks_apart(seen):
    """Cells inside two groups, and cells between them."""
    rows, cols = halves(seen.shape)
    inside = rows[seen.rows] == cols[seen.cols]
    return seen.select(inside), seen.select(~inside)


def test_too_few_cells_to_hide_leave_the_risk_as_it_is():
    tiny = Uneven.draw(6, 5, 20).seen
    algorithm = FactorModel(rank=1)
    found = RiskModel().fit(
        tiny, algorithm.fit(tiny), CrossFit(tiny, algorithm), DenseConfidence(np.ones(tiny.shape)), floor=0.5
    )
    assert found.support is None


def test_unseen_rows_and_columns_are_like_most_but_less_well_known(uneven):
    seen = uneven.seen
    larger = Observations(seen.rows, seen.cols, seen.values, (300, 200))
    found = fitted(larger, BayesianFactorModel(rank=2))
    unseen = found.at([250, 250, 0, 299], [0, 150, 150, 199])
    assert np.isfinite(unseen).all()
    assert found.rows.log_at([250], [2.0])[0] == found.cols.log_at([150], [2.0])[0] == 0.0
    variance = found.evidence.completion.variance([250, 0], [0, 0])
    predicted = found.evidence.completion.at([250, 0], [0, 0])
    by_row = found.at([250, 0], [0, 0]) / np.exp(found.rows.log_at([250, 0], predicted))
    assert variance[0] > variance[1]
    assert found.slope > 0
    assert unseen[1] > np.median(found.at(seen.rows, seen.cols))
    assert by_row.min() > 0


def test_rows_with_little_data_stay_near_the_prior():
    rng = np.random.default_rng(0)
    i, j = all_cells((40, 30))
    values = rng.normal(0, np.where(i % 2, 1.0, 0.5))
    keep = (i != 1) | (j < 1)
    values[(i == 1) & (j == 0)] = 0.0
    found = fitted(Observations(i[keep], j[keep], values[keep], (40, 30)), Stated(np.ones((40, 30))))
    factors = found.rows.factors[:-1]
    assert 0.5 < factors[1] < 1
    assert factors[2::2].max() < factors[1] < factors[3::2].min()


@pytest.mark.parametrize("algorithm", [BayesianFactorModel(rank=3), FactorModel(rank=3)])
@pytest.mark.parametrize("n_cells", [2, 5, 40, 300])
def test_small_tables_are_no_trouble(algorithm, n_cells):
    small = Uneven.draw(50, 30, n_cells, seed=3)
    predicted = fitted(small.seen, algorithm).at(*all_cells((50, 30)))
    assert np.isfinite(predicted).all()
    assert predicted.min() > 0


def test_on_small_tables_the_risk_is_that_of_completions_of_nearly_as_many_cells():
    i, j = all_cells((50, 30))
    predicted, expected = [], []
    for seed in range(5):
        small = Uneven.draw(50, 30, 300, seed)
        risk = fitted(small.seen, BayesianFactorModel(rank=3), n_folds=10)
        predicted.append(risk.at(i, j).mean())
        expected.append(np.mean((risk.evidence.completion.at(i, j) - small.truth[i, j]) ** 2 + small.noise[i, j]))
    assert 1.0 < np.mean(predicted) / np.mean(expected) < 1.25


def test_a_completion_without_variance_is_judged_by_its_counts():
    seen = Uneven.draw(60, 40, 900, seed=4).seen
    found = fitted(Observations(seen.rows, seen.cols, seen.values, (61, 41)), FactorModel(rank=2))
    spread = found.evidence.spread
    n_i, n_j = (seen.rows == 3).sum(), (seen.cols == 5).sum()
    expected = [1 + 1 / (1 + n_i) + 1 / (1 + n_j), 3.0]
    np.testing.assert_allclose(spread.variance([3, 60], [5, 40]), expected)


def test_same_seed_same_risk_and_asking_changes_nothing(uneven, risk):
    cells = all_cells((20, 20))
    before = risk.at(*cells)
    np.testing.assert_array_equal(risk.at(*cells), before)
    np.testing.assert_array_equal(fitted(uneven.seen, BayesianFactorModel(rank=2)).at(*cells), before)
    other = fitted(uneven.seen, BayesianFactorModel(rank=2), random_state=1).at(*cells)
    assert not np.array_equal(other, before)
    assert np.quantile(np.abs(np.log(other / before)), 0.95) < 0.4


@pytest.mark.parametrize("algorithm", [BayesianFactorModel(rank=2), FactorModel(rank=2)])
def test_a_stored_risk_answers_the_same(algorithm, tmp_path):
    found = fitted(Uneven.draw(30, 20, 200).seen, algorithm)
    write_archive(tmp_path / "risk", "a risk", 1, found)
    again = read_archive(tmp_path / "risk", "a risk", 1, lambda tree: tree)
    assert isinstance(again, FittedRisk)
    np.testing.assert_array_equal(again.at(*all_cells((30, 20))), found.at(*all_cells((30, 20))))


def test_parameters_are_checked(risk):
    algorithm = BayesianFactorModel(rank=2)
    with pytest.raises(InputError, match="at least 2 observed cells"):
        fitted(Observations([0], [0], [1.0], bounds=(0, 2)), algorithm)
    for wrong in ({"slope": -1.0}, {"heights": np.full(len(risk.knots), np.nan)}, {"slope": np.inf}):
        with pytest.raises(InputError, match="a risk needs"):
            replace(risk, **wrong)
    with pytest.raises(InputError, match="noise factors need"):
        replace(risk.rows, factors=np.zeros(3))


def test_on_movielens_the_risk_orders_errors_and_is_calibrated(data_folder):
    base, test = load_movielens("ml-100k", data_folder, fold=1)
    algorithm = BayesianFactorModel()
    risk = RiskModel().fit(base, completion := algorithm.fit(base), CrossFit(base, algorithm, n_folds=3))
    predicted = risk.at(test.rows, test.cols)
    errors = test.squared_errors(completion.at(test.rows, test.cols))
    order = np.argsort(predicted)
    curve = np.cumsum(errors[order]) / np.arange(1, len(test) + 1)
    assert curve.mean() < 0.57
    assert curve[len(test) // 10] < 0.40
    for tenth in np.array_split(order, 10):
        assert predicted[tenth].mean() == pytest.approx(errors[tenth].mean(), rel=0.15)
