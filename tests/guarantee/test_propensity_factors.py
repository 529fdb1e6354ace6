from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from surefill import Observations
from surefill.guarantee.propensity import FactorPropensity, InteractionScaling, MarginalPropensity, fit_propensity
from surefill.guarantee.propensity.cell_sample import CellSample, CellSampler
from surefill.guarantee.propensity.choice import _coefficients
from surefill.guarantee.propensity.factors import BIAS_PENALTY, Contrast, factor_path, random_start

SHARE = 0.7


def relative_entropy(truth, p):
    """sum of KL(truth || p) over all cells."""
    return float((truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))).sum())


def contrast_of(patterns, mask, rng, share=SHARE):
    seen = patterns.observed(mask)
    return Contrast.of(seen, MarginalPropensity.of(seen, share), share, share, rng)


def test_draws_stand_for_all_cells():
    """sum over draws of f / rate has expectation sum of f: within 4 standard errors."""
    rng = np.random.default_rng(0)
    f, sampler = rng.random((30, 20)), CellSampler.of(rng.uniform(0.1, 1, 30), rng.uniform(0.1, 1, 20), uniform=0.3)
    drawn = sampler.draw(200_000, rng)
    terms = f[drawn.rows, drawn.cols] / drawn.rates
    assert abs(terms.sum() - f.sum()) < 4 * terms.std() * np.sqrt(len(terms))
    everywhere = sampler.rate(*np.divmod(np.arange(600), 20))
    assert everywhere.sum() == pytest.approx(1)
    seen = Observations([0, 2], [1, 3], [0.0, 0.0], (3, 4), (-1, 1))
    whole, left = CellSample.whole((3, 4)), CellSample.whole((3, 4), seen)
    assert len(whole.rows) == 12
    np.testing.assert_array_equal(whole.outside(seen), left)
    assert set(zip(left.rows, left.cols, strict=True)).isdisjoint({(0, 1), (2, 3)})


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_derivatives_are_those_of_the_log_likelihood(patterns, share):
    rng = np.random.default_rng(1)
    contrast = contrast_of(patterns, rng.random((12, 10)) < 0.3, rng, share)
    logits, h = rng.standard_normal(len(contrast.rows)), 1e-5
    first, second = contrast.derivatives(logits)
    up, down = contrast.log_likelihood(logits + h), contrast.log_likelihood(logits - h)
    np.testing.assert_allclose(first, (up - down) / (2 * h), atol=1e-8)
    assert (second > 0).all()


def test_sweeps_end_where_no_direction_improves_the_penalised_likelihood(patterns):
    """The gradient is small beside its parts, and a general optimiser started there gains nothing."""
    rng, shape, penalty = np.random.default_rng(2), (25, 20), 2.0
    contrast = contrast_of(patterns, rng.random(shape) < patterns.blocks(rng, shape, 0.4), rng)
    (found,) = factor_path(contrast, [penalty], [400], random_start(shape, rng))
    width = found.rows.shape[1]
    sizes = [np.bincount(lines, minlength=k) for lines, k in zip((contrast.rows, contrast.cols), shape, strict=True)]
    relative = np.concatenate([np.sqrt(size / size.mean()) for size in sizes])
    weights = np.c_[np.full(sum(shape), BIAS_PENALTY), np.repeat(penalty * relative[:, None], width - 1, axis=1)]

    def loss(x):
        rows, cols = np.split(x.reshape(-1, width), [shape[0]])
        u, v = rows[contrast.rows], cols[contrast.cols]
        logits = contrast.base + u[:, 0] + v[:, 0] + (u[:, 1:] * v[:, 1:]).sum(axis=1)
        slope, gradient = contrast.derivatives(logits)[0], weights * x.reshape(-1, width)
        np.add.at(gradient, contrast.rows, -slope[:, None] * np.c_[np.ones(len(u)), v[:, 1:]])
        np.add.at(gradient, shape[0] + contrast.cols, -slope[:, None] * np.c_[np.ones(len(u)), u[:, 1:]])
        return (weights * x.reshape(-1, width) ** 2).sum() / 2 - contrast.log_likelihood(logits).sum(), gradient.ravel()

    start = np.vstack([found.rows, found.cols]).ravel()
    value, gradient = loss(start)
    assert np.abs(gradient).max() < 1e-3
    assert np.abs(found.rows[:, 1:]).max() > 0.1
    assert value - minimize(loss, start, jac=True, method="L-BFGS-B").fun < 1e-4


def test_a_sample_of_unobserved_cells_and_all_of_them_agree(patterns):
    """The constant by which chances half as large as they are must be raised: log 2 of odds, from 10% of the cells."""
    rng, shape = np.random.default_rng(3), (300, 250)
    seen = patterns.observed(rng.random(shape) < patterns.power_law(rng, shape, 0.02, exponents=(0.2, 0.2)))
    right = MarginalPropensity.of(seen, 1.0)
    low = MarginalPropensity(right.row_logit - np.log(2), right.col_logit)
    sampled = Contrast.of(seen, low, 1.0, 1.0, rng)
    assert len(sampled.rows) < 0.1 * shape[0] * shape[1]
    constant = _coefficients(sampled, np.ones((len(sampled.rows), 1)))[0]
    assert constant == pytest.approx(np.log(2), abs=4 * np.sqrt(1.4 / len(seen)))


@pytest.mark.parametrize("density", [0.05, 0.3])
def test_blocks_are_found_and_modelled_clearly_better_than_by_margins(patterns, density):
    rng, shape = np.random.default_rng(4), (240, 200)
    truth = patterns.blocks(rng, shape, density)
    first = patterns.observed(patterns.halves(rng, truth, SHARE)[0])
    found = fit_propensity(first, SHARE, 0)
    assert isinstance(found, FactorPropensity)
    margins = relative_entropy(truth, patterns.everywhere(MarginalPropensity.of(first, SHARE), shape))
    assert relative_entropy(truth, patterns.everywhere(found, shape)) < 0.6 * margins


@pytest.mark.parametrize("form", ["odds", "product"])
@pytest.mark.parametrize("density", [0.05, 0.3])
def test_margins_are_enough_for_patterns_of_rows_and_columns(patterns, form, density):
    chosen = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = patterns.power_law(rng, (150, 120), density, form, (0.4, 0.6))
        first = patterns.observed(patterns.halves(rng, truth, SHARE)[0])
        chosen.append(isinstance(fit_propensity(first, SHARE, seed), MarginalPropensity))
    assert sum(chosen) >= 4


def test_a_few_locations_choose_margins(patterns):
    assert isinstance(fit_propensity(patterns.observed(np.eye(6, dtype=bool)), 1.0), MarginalPropensity)


def test_only_locations_are_used(patterns):
    rng = np.random.default_rng(5)
    first = patterns.observed(rng.random((120, 100)) < patterns.blocks(rng, (120, 100), 0.2))
    other = Observations(first.rows, first.cols, rng.uniform(-1, 1, len(first)), first.shape, (-1, 1))
    p, q = (patterns.everywhere(fit_propensity(seen, SHARE, 3), first.shape) for seen in (first, other))
    np.testing.assert_array_equal(p, q)


def test_a_cells_own_location_does_not_decide_its_chance(patterns):
    """A uniform pattern, fitted far too closely: cells of O1 get larger chances, cells of O2 those of unseen ones."""
    rng, shape = np.random.default_rng(6), (200, 150)
    first, second = patterns.halves(rng, np.full(shape, 0.2), SHARE)
    contrast = contrast_of(patterns, first, rng)
    (fit,) = islice(factor_path(contrast, [0.5], [10], random_start(shape, rng)), 1)
    logits = fit.rows[:, :1] + fit.cols[:, 0] + fit.rows[:, 1:] @ fit.cols[:, 1:].T
    neither = ~first & ~second
    error = logits[neither].std() / np.sqrt(second.sum())
    assert abs(logits[second].mean() - logits[neither].mean()) < 4 * error
    assert logits[first].mean() - logits[neither].mean() > 20 * error


def test_chances_are_the_logistic_function_of_margins_and_scaled_interactions():
    rng = np.random.default_rng(7)
    margins = MarginalPropensity(rng.standard_normal(4), rng.standard_normal(5))
    scaling = InteractionScaling(np.array([0.1, 0.8, 1.2, -0.2, 0.1]), low=-1.0, high=0.5)
    model = FactorPropensity(margins, rng.standard_normal((4, 3)), rng.standard_normal((5, 3)), scaling)
    g, x = np.add.outer(margins.row_logit, margins.col_logit), model.rows[:, 1:] @ model.cols[:, 1:].T
    x += model.rows[:, :1] + model.cols[:, 0]
    rows, cols = np.indices((4, 5))
    expected = expit(g + scaling.features(g, x) @ scaling.coefficients)
    assert (x < 0).any()
    assert (x > 0).any()
    np.testing.assert_allclose(model.at(rows, cols), np.minimum(expected, 0.95), rtol=1e-12)


def test_a_slope_is_never_negative():
    scaling = InteractionScaling(np.array([0.0, 0.5, 0.5, 1.0, 1.0]), low=-3.0, high=0.0)
    np.testing.assert_array_equal(scaling.of(np.array([-3.0, 0.0]), np.array([2.0, 2.0])), [0.0, 1.0])
