"""Parts of the variance, and how high and how often rows and columns were seen, in the risks of tables large enough."""

import numpy as np
import pytest

import surefill as sf
from surefill import Observations
from surefill.completion import BayesianFactorModel, FactorModel
from surefill.datasets import make_low_rank
from surefill.risk import CrossFit, RiskModel, cross_fitting
from surefill.risk.line_curves import LineCurves, LineSummaries
from surefill.risk.lower_bounds import RiskLowerBounds
from surefill.risk.noise_factors import NoiseFactors


@pytest.fixture
def detailed(monkeypatch):
    """A table of which the library thinks that it is large enough to look at details."""
    monkeypatch.setattr(cross_fitting, "DETAILED_CELLS", 1000)
    monkeypatch.setattr(cross_fitting, "FOLDED_CELLS", 30_000)
    return make_low_rank((90, 70), rank=2, n_draws=4000, noise=0.3, random_state=0).observations


def fitted(seen, rank=3):
    algorithm = BayesianFactorModel(rank=rank)
    folds = CrossFit(seen, algorithm)
    return RiskModel().fit(seen, algorithm.fit(seen), folds), folds


def test_the_parts_of_the_variance_and_the_noise_are_the_variance():
    seen = make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0).observations
    completion = BayesianFactorModel(rank=3).fit(seen)
    i, j = np.indices((30, 20)).reshape(2, -1)
    of_row, of_col = completion.variance_parts(i, j)
    noise = completion.unit.squared_error_from_unit(completion.noise)
    np.testing.assert_allclose(noise + of_row + of_col, completion.variance(i, j), rtol=1e-12)
    on_grid = completion.variance_parts(*np.ix_(np.arange(30), np.arange(20)))
    np.testing.assert_allclose([each.ravel() for each in on_grid], [of_row, of_col], rtol=1e-9)


def test_summaries_are_shrunken_means_and_logs_of_draws():
    seen = Observations([0, 0, 2], [1, 1, 3], [1.0, 3.0, 5.0], (4, 5))
    lines = LineSummaries.of(seen).at(np.array([0, 2, 3]), np.array([1, 3, 0]))
    mean = 9 / 3
    expected = [[(4 + 5 * mean) / 7, np.log(3)], [(5 + 5 * mean) / 6, np.log(2)], [mean, 0.0]]
    np.testing.assert_allclose(lines[:, :2], expected)
    np.testing.assert_allclose(lines[:, 2:], expected)


def test_curves_multiply_the_factors_and_leave_their_mean_to_the_level():
    lines = np.random.default_rng(0).normal(size=(500, 4))
    curves = LineCurves.flat(lines)
    coefficients = np.concatenate([2.0 + knots for knots in curves.knots])
    learnt, level = curves.learnt(coefficients, lines, np.ones(500))
    inside = np.clip(lines, *zip(*((knots[0], knots[-1]) for knots in curves.knots), strict=True))
    assert level == pytest.approx(8.0 + inside.mean(axis=0).sum())
    np.testing.assert_allclose(curves.features(lines) @ coefficients, 8.0 + inside.sum(axis=1))
    ids = np.arange(2)
    summaries = LineSummaries(ids, np.array([[0.5, 0.1], [0.0, 0.0], [9.0, 9.0]]), ids, np.zeros((3, 2)))
    rows, _ = learnt.applied(NoiseFactors.none(ids), NoiseFactors.none(ids), summaries)
    assert rows.factors[0] / rows.factors[1] == pytest.approx(np.exp(0.6))
    assert rows.factors[2] == 1.0


def test_small_tables_have_five_folds_and_no_details():
    seen = make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations
    risk, folds = fitted(seen, rank=2)
    assert folds.n_folds == 5
    assert risk.part_powers == (0.0, 0.0)
    assert folds.residuals().lines is None


def test_grid_pairs_and_bounds_agree_where_details_count(detailed):
    risk, folds = fitted(detailed)
    assert folds.n_folds == 30_000 // len(detailed)
    assert folds.residuals().lines.shape == (len(detailed), 4)
    i, j = np.indices(detailed.shape).reshape(2, -1)
    of_pairs = risk.at(i, j).reshape(detailed.shape)
    every = np.arange(90), np.arange(70)
    on_grid = risk.given(*np.ix_(*every), risk.evidence.completion.block(*every), np.ones(detailed.shape))
    np.testing.assert_allclose(on_grid, of_pairs, rtol=1e-6)
    least = RiskLowerBounds.of(risk, 1.0)
    assert (least.of_rows(every[0]) <= np.log(of_pairs.min(axis=1))).all()
    assert (least.of_cols(every[1]) <= np.log(of_pairs.min(axis=0))).all()


def test_bounds_hold_where_both_parts_count(detailed):
    risk, _ = fitted(detailed)
    tilted = sf.risk.FittedRisk(**(vars(risk) | {"part_powers": (0.4, 0.3)}))
    every = np.arange(90), np.arange(70)
    at = *np.ix_(*every), risk.evidence.completion.block(*every), np.ones(detailed.shape)
    on_grid = tilted.given(*at)
    assert np.ptp(np.log(on_grid / risk.given(*at))) > 0.1
    least = RiskLowerBounds.of(tilted, 1.0)
    assert (least.of_rows(every[0]) <= np.log(on_grid.min(axis=1))).all()
    assert (least.of_cols(every[1]) <= np.log(on_grid.min(axis=0))).all()


def test_noise_that_follows_the_mean_of_a_row_is_found_in_rows_seen_but_a_few_times(monkeypatch):
    rng = np.random.default_rng(0)
    m, n = 600, 40
    level, of_col = rng.uniform(-0.6, 0.6, m), rng.uniform(-2, 2, n)
    i, j = np.nonzero(rng.random((m, n)) < 0.15)
    spread = 0.3 * np.exp(-1.5 * level)
    values = level[i] + of_col[j] + spread[i] * rng.uniform(-1, 1, len(i))
    seen, asked = Observations(i, j, values, (m, n), (-4, 4)), (np.arange(m), np.zeros(m, dtype=np.int64))
    plain = fitted(seen, rank=1)[0].at(*asked)
    monkeypatch.setattr(cross_fitting, "DETAILED_CELLS", 1000)
    risk = fitted(seen, rank=1)[0].at(*asked)
    close = [np.corrcoef(np.log(each), np.log(spread))[0, 1] for each in (plain, risk)]
    assert close[1] > close[0] + 0.02


def test_a_completion_without_variances_has_no_details(detailed):
    algorithm = FactorModel(rank=2)
    folds = CrossFit(detailed, algorithm)
    assert folds.residuals().lines is None
    assert RiskModel().fit(detailed, algorithm.fit(detailed), folds).part_powers == (0.0, 0.0)


def test_covariances_of_folds_are_forgotten(detailed):
    folds = CrossFit(detailed, BayesianFactorModel(rank=2))
    folds.residuals()
    assert all("matrices" not in vars(folds.fold_completion(fold).row_covariances) for fold in range(folds.n_folds))
