import numpy as np
import pytest
from scipy.special import expit, logit

from surefill import InputError
from surefill.guarantee.propensity import (
    CalibratedPropensity,
    FactorPropensity,
    GivenPropensity,
    InteractionScaling,
    MarginalPropensity,
    calibrate,
    calibration,
)
from surefill.guarantee.propensity.calibration import LEAST_EXPECTED, STRATA
from surefill.io.archive import read_archive, write_archive

SHARE, SHAPE = 0.6, (200, 150)


def calibrated(patterns, truth, model, rng, share=SHARE):
    first, second = patterns.halves(rng, truth, share)
    return calibrate(GivenPropensity(model), patterns.observed(first), patterns.observed(second), share), first, second


@pytest.mark.parametrize("density", [0.1, 0.5])
def test_right_chances_are_left_alone(patterns, density):
    """Chance alone exceeds a 95% point in about one of twenty tables."""
    untouched = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = patterns.power_law(rng, SHAPE, density)
        found, *_ = calibrated(patterns, truth, truth, rng)
        untouched += found.misfit.spread == 0 and not found.shifts.any()
    assert untouched >= 16


@pytest.mark.parametrize("wrong", [lambda x: x + 0.4, lambda x: 1.3 * x + 0.8, lambda x: 0.7 * x - 0.5])
@pytest.mark.parametrize("density", [0.1, 0.5])
def test_wrong_odds_are_found_and_corrected(patterns, wrong, density):
    rng = np.random.default_rng(1)
    truth = patterns.power_law(rng, SHAPE, density)
    model = np.minimum(expit(wrong(logit(truth))), 0.999)
    found, *_ = calibrated(patterns, truth, model, rng)
    after = patterns.everywhere(found, SHAPE)
    off_before, off_after = (np.average(np.abs(np.log(p / truth)), weights=truth) for p in (model, after))
    assert off_after < 0.5 * off_before
    assert off_after < 0.1
    misfit = found.misfit
    assert abs(misfit.largest_ratio - 1) > 2 * misfit.largest_ratio_error
    assert "corrected" in misfit.sentence
    assert f"{abs(misfit.largest_ratio - 1):.0%}" in misfit.sentence
    order = np.argsort(model, axis=None)
    assert (np.diff(after.ravel()[order]) >= -1e-12).all()


def test_strata_hold_all_cells_outside_the_first_part(patterns):
    rng = np.random.default_rng(2)
    truth = patterns.power_law(rng, SHAPE, 0.2)
    found, first, second = calibrated(patterns, truth, truth, rng)
    misfit, chance = found.misfit, (1 - SHARE) * truth / (1 - SHARE * truth)
    assert misfit.found.sum() == second.sum()
    assert misfit.expected.sum() == pytest.approx(chance[~first].sum(), rel=1e-9)
    by_coins = np.sqrt((chance * (1 - chance))[~first].sum())
    assert np.sqrt(((misfit.error * misfit.expected) ** 2).sum()) == pytest.approx(by_coins, rel=1e-9)
    assert 10 <= len(misfit.expected) <= STRATA
    assert misfit.expected.min() >= LEAST_EXPECTED
    assert (np.diff(misfit.chance) > 0).all()


def test_what_may_remain_covers_what_remains(patterns):
    """In 20 tables with odds off by a factor of 1.5, the true relative error of every stratum after the correction."""
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = patterns.power_law(rng, SHAPE, 0.2)
        found, first, _ = calibrated(patterns, truth, expit(logit(truth) + np.log(1.5)), rng)
        p, q = patterns.everywhere(found, SHAPE)[~first], truth[~first]
        edges = np.quantile(p, np.linspace(0, 1, 11)[1:-1])
        group = np.searchsorted(edges, p)
        ratio = np.bincount(group, q / (1 - SHARE * q)) / np.bincount(group, p / (1 - SHARE * p))
        covered += np.abs(ratio - 1).max() <= found.misfit.remaining
    assert covered >= 18


def test_a_sample_of_the_cells_agrees_with_all_of_them(patterns, monkeypatch):
    rng = np.random.default_rng(3)
    truth = patterns.power_law(rng, SHAPE, 0.1)
    model = expit(logit(truth) + 0.5)
    first, second = (patterns.observed(part) for part in patterns.halves(rng, truth, SHARE))
    whole = calibrate(GivenPropensity(model), first, second, SHARE)
    monkeypatch.setattr(calibration, "ALL_CELLS", 20_000)
    sampled = calibrate(GivenPropensity(model), first, second, SHARE, random_state=1)
    assert sampled.misfit.expected.sum() == pytest.approx(whole.misfit.expected.sum(), rel=0.05)
    p, q = (patterns.everywhere(found, SHAPE) for found in (whole, sampled))
    assert np.average(np.abs(np.log(p / q)), weights=truth) < 0.1


def test_uniform_chances_are_one_stratum(patterns):
    rng = np.random.default_rng(4)
    found, *_ = calibrated(patterns, np.full(SHAPE, 0.3), np.full(SHAPE, 0.2), rng)
    assert len(found.knots) == 1
    np.testing.assert_allclose(patterns.everywhere(found, SHAPE), 0.3, rtol=0.06)


def test_chances_of_1_are_allowed(patterns):
    rng = np.random.default_rng(5)
    truth = np.full(SHAPE, 0.3)
    truth[:20] = 1.0
    found, *_ = calibrated(patterns, truth, truth, rng)
    assert np.isfinite(patterns.everywhere(found, SHAPE)).all()


@pytest.mark.parametrize("kind", ["marginal", "factors"])
def test_a_stored_propensity_answers_the_same(patterns, kind, tmp_path):
    rng = np.random.default_rng(6)
    first, second = (patterns.observed(part) for part in patterns.halves(rng, np.full((60, 50), 0.3), SHARE))
    margins, scaling = MarginalPropensity.of(first, SHARE), InteractionScaling(np.array([0, 1.0, 1.0, 0, 0]), -2.0, 1.0)
    factors = FactorPropensity(margins, rng.standard_normal((60, 3)), rng.standard_normal((50, 3)), scaling)
    model = margins if kind == "marginal" else factors
    found = calibrate(model, first, second, SHARE)
    write_archive(tmp_path / "chances", "chances", 1, found)
    again = read_archive(tmp_path / "chances", "chances", 1, lambda tree: tree)
    assert isinstance(again, CalibratedPropensity)
    np.testing.assert_array_equal(patterns.everywhere(again, (60, 50)), patterns.everywhere(found, (60, 50)))
    assert again.misfit.sentence == found.misfit.sentence


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_both_parts_are_needed(patterns, share):
    seen = patterns.observed(np.eye(3, dtype=bool))
    with pytest.raises(InputError, match="between 0 and 1"):
        calibrate(GivenPropensity(np.full((3, 3), 0.5)), seen, seen, share)
