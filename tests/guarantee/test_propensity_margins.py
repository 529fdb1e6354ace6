import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from surefill.guarantee.propensity import MOST_LIKELY, GivenPropensity, MarginalPropensity
from surefill.guarantee.propensity.line_chances import LineClasses
from surefill.guarantee.propensity.marginal import MARGIN_ACCURACY, _match_margins


def test_posterior_means_are_those_of_the_true_prior():
    """Chances .01 or .05 with odds 3 : 1: E[rho | k] by Bayes' rule, for counts that many lines have."""
    rng, n, share = np.random.default_rng(0), 100, 0.5
    rho, prior = np.array([0.01, 0.05]), np.array([0.75, 0.25])
    counts = rng.binomial(n, share * rng.choice(rho, 20_000, p=prior))
    classes = LineClasses.of(np.repeat(np.arange(20_000), counts), 20_000)
    found = classes.mean_chances(n, share)
    posterior = prior * binom.pmf(classes.counts[:, None], n, share * rho)
    expected = posterior @ rho / posterior.sum(axis=1)
    common = classes.sizes > 500
    assert common.sum() >= 4
    np.testing.assert_allclose(found[common], expected[common], rtol=0.1)


def test_lines_seen_equally_often_by_chance_have_nearly_equal_chances():
    """Counts of a uniform pattern vary by chance alone: posterior means vary far less than counts do."""
    seen = np.random.default_rng(1).random((300, 200)) < 0.2
    classes = LineClasses.of(np.nonzero(seen)[0], 300)
    chances, raw = classes.mean_chances(200, 1.0)[classes.of_line], seen.mean(axis=1)
    assert np.std(chances) < 0.35 * np.std(raw)
    assert chances.mean() == pytest.approx(raw.mean(), rel=0.01)


@pytest.mark.parametrize("density", [0.03, 0.6])
def test_margins_are_the_posterior_means_and_add_up_to_all_observed_cells(patterns, density):
    rng, share = np.random.default_rng(2), 0.5
    first = patterns.observed(patterns.halves(rng, patterns.power_law(rng, (90, 70), density), share)[0])
    p = patterns.everywhere(MarginalPropensity.of(first, share), (90, 70))
    rows = LineClasses.of(first.rows, 90)
    posterior = rows.mean_chances(70, share)[rows.of_line]
    assert p.sum() == pytest.approx(len(first) / share, rel=0.01)
    scale = len(first) / share / (70 * posterior.sum())
    np.testing.assert_allclose(p.sum(axis=1), scale * 70 * posterior, rtol=0.01)


def test_margins_that_are_not_shrunk_give_the_logistic_regression_on_rows_and_columns():
    rng = np.random.default_rng(3)
    seen = rng.random((12, 9)) < rng.uniform(0.2, 0.8, (12, 1)) + rng.uniform(-0.15, 0.15, 9)
    assert 0 < seen.mean(axis=0).min() <= seen.mean(axis=0).max() < 1
    assert 0 < seen.mean(axis=1).min() <= seen.mean(axis=1).max() < 1
    a, b = _match_margins(seen.sum(axis=1) * 1.0, np.ones(12), seen.sum(axis=0) * 1.0, np.ones(9))
    i, j = np.indices(seen.shape).reshape(2, -1)
    dummies = np.hstack([np.eye(12)[i], np.eye(9)[j]])
    regression = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(dummies, seen.ravel())
    p = 1 / (1 + np.exp(-(a[:, None] + b)))
    np.testing.assert_allclose(p.ravel(), regression.predict_proba(dummies)[:, 1], atol=1e-4)
    np.testing.assert_allclose(p.sum(axis=1), seen.sum(axis=1), rtol=10 * MARGIN_ACCURACY)


def test_relabelling_rows_and_columns_relabels_chances(patterns):
    rng = np.random.default_rng(4)
    seen = rng.random((40, 30)) < patterns.power_law(rng, (40, 30), 0.2)
    rows, cols = rng.permutation(40), rng.permutation(30)
    p, q = (
        patterns.everywhere(MarginalPropensity.of(patterns.observed(mask), 0.7), (40, 30))
        for mask in (seen, seen[rows][:, cols])
    )
    np.testing.assert_allclose(q, p[rows][:, cols], rtol=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_regular_pattern_has_uniform_chances(patterns, share):
    """Every row and column is seen five times in twenty."""
    seen = (np.add.outer(np.arange(20), np.arange(20)) % 20) < 5
    p = patterns.everywhere(MarginalPropensity.of(patterns.observed(seen), share), (20, 20))
    np.testing.assert_allclose(p, 0.25 / share, rtol=1e-6)


def test_a_full_table_has_the_largest_modelled_chance(patterns):
    p = patterns.everywhere(MarginalPropensity.of(patterns.observed(np.ones((8, 6), dtype=bool)), 1.0), (8, 6))
    np.testing.assert_allclose(p, MOST_LIKELY, rtol=1e-6)


@pytest.mark.parametrize("form", ["odds", "product"])
@pytest.mark.parametrize("density", [0.03, 0.1, 0.25, 0.6])
def test_as_many_cells_are_observed_as_expected_in_rare_and_in_popular_columns(patterns, density, form):
    """Over eight draws of a power law, cells outside O1 by their column's count: found in O2 against expected.

    Groups that expect 150 cells are looked at: 2.5 standard errors, and 6% for the product that odds cannot follow.
    """
    share, shape, expected, found = 0.6, (300, 250), np.zeros(6), np.zeros(6)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        first, second = patterns.halves(rng, patterns.power_law(rng, shape, density, form), share)
        p = patterns.everywhere(MarginalPropensity.of(patterns.observed(first), share), shape)
        chance = np.where(first, 0.0, (1 - share) * p / (1 - share * p)).sum(axis=0)
        group = np.searchsorted([1, 2, 3, 10, 50], first.sum(axis=0), side="right")
        expected += np.bincount(group, chance, 6)
        found += np.bincount(group, second.sum(axis=0), 6)
    enough = expected > 150
    assert enough[3:].any()
    if density == 0.03:
        assert enough[1:].all()
    ratio, error = found[enough] / expected[enough], 1 / np.sqrt(expected[enough])
    assert (np.abs(ratio - 1) < 0.06 + 2.5 * error).all(), ratio


def test_weighted_sums_reach_what_is_not_observed_where_the_product_of_rates_does_not(patterns):
    """The mean over unobserved cells of a function of popularity, from O2 with weights (1 - p) / p."""
    share, shape, errors = 0.6, (300, 250), {"margins": [], "rates": []}
    for seed in range(10):
        rng = np.random.default_rng(100 + seed)
        chance = patterns.power_law(rng, shape, 0.25, "product")
        first, second = patterns.halves(rng, chance, share)
        seen, values = patterns.observed(first), np.log(chance)
        rate = (first.sum(axis=1) + 1)[:, None] * (first.sum(axis=0) + 1) / (len(seen) * share)
        models = {
            "margins": MarginalPropensity.of(seen, share),
            "rates": GivenPropensity(np.minimum(rate, MOST_LIKELY)),
        }
        for name, model in models.items():
            p = patterns.everywhere(model, shape)[second]
            truth = values[~first & ~second].mean()
            errors[name].append(np.average(values[second], weights=(1 - p) / p) - truth)
    assert abs(np.mean(errors["margins"])) < 0.05
    assert abs(np.mean(errors["rates"])) > 3 * abs(np.mean(errors["margins"]))
