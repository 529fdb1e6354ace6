import numpy as np
import pytest
from scipy.stats import binom

from surefill import InputError, Observations
from surefill.guarantee import CalibrationSplit, GivenPropensity, HeldOutRate, TargetWeights
from surefill.guarantee.calibration_split import calibration_share


def cells_by_coins(rng, chance):
    rows, cols = np.nonzero(rng.random(chance.shape) < chance)
    return Observations(rows, cols, rng.normal(size=len(rows)), chance.shape, (-9, 9))


def test_weighted_calibration_sums_are_those_of_all_cells_outside_training():
    """Over many draws, sum over calibration cells of w f = sum over cells outside training of f, for any f."""
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.05, 0.9, (20, 15))
    features = np.stack([np.ones(chance.shape), chance, rng.random(chance.shape)])
    estimate, target = np.zeros(3), np.zeros(3)
    for seed in range(300):
        split = CalibrationSplit.of(cells_by_coins(rng, chance), "unobserved", chance, seed)
        held_out, train = split.calibration, split.train
        estimate += (features[:, held_out.rows, held_out.cols] * split.weights.at(held_out.rows, held_out.cols)).sum(1)
        outside = np.ones(chance.shape)
        outside[train.rows, train.cols] = 0
        target += (features * outside).sum(axis=(1, 2))
    np.testing.assert_allclose(estimate, target, rtol=0.04)


def test_modelled_chances_aim_as_known_ones_do():
    """On a power law, weights from locations alone estimate the mean of what depends on popularity."""
    rng = np.random.default_rng(1)
    chance = np.minimum(np.outer(np.arange(1, 301) ** -0.5, np.arange(1, 201) ** -0.5) * 3, 0.9)
    depends = np.sqrt(chance)
    off, plain = [], []
    for seed in range(10):
        seen = cells_by_coins(rng, chance)
        split = CalibrationSplit.of(seen, "unobserved", None, seed)
        held_out = split.calibration
        missing = np.ones(chance.shape, dtype=bool)
        missing[seen.rows, seen.cols] = False
        f, w = depends[held_out.rows, held_out.cols], split.weights.at(held_out.rows, held_out.cols)
        truth = depends[missing].mean()
        off.append(np.average(f, weights=w) / truth - 1)
        plain.append(f.mean() / truth - 1)
    assert abs(np.mean(off)) < 0.12  # a product that is cut at 0.9 has no margins of log odds
    assert np.mean(plain) > 0.2
    assert split.weights.misfit is not None


def test_rare_cells_are_held_out_more_often_and_the_share_is_kept():
    rng = np.random.default_rng(2)
    chance = 10 ** rng.uniform(-3, -0.1, 10_000)
    rate = HeldOutRate.of(chance, 0.2)
    q = rate.at(chance)
    assert q.mean() == pytest.approx(0.2, abs=1e-6)
    assert (np.diff(q[np.argsort(chance)]) <= 0).all()
    assert q.max() <= 0.5
    seen = cells_by_coins(rng, np.full((200, 100), 0.3))
    split = CalibrationSplit.of(seen, "unobserved", None, 0)
    assert len(split.calibration) == pytest.approx(calibration_share(len(seen)) * len(seen), rel=0.1)


def test_calibration_cells_do_not_depend_on_values():
    rng = np.random.default_rng(3)
    seen = cells_by_coins(rng, np.full((30, 20), 0.3))
    other = Observations(seen.rows, seen.cols, -3 * seen.values, seen.shape, (-30, 30))
    first, second = (CalibrationSplit.of(each, "unobserved", None, 5) for each in (seen, other))
    np.testing.assert_array_equal(first.calibration.rows, second.calibration.rows)
    np.testing.assert_array_equal(first.weights.at(seen.rows, seen.cols), second.weights.at(seen.rows, seen.cols))


@pytest.mark.parametrize("n", [4, 5, 9])
def test_few_cells_are_split_all_the_same(n):
    rng = np.random.default_rng(n)
    cells = rng.permutation(30)[:n]
    seen = Observations(cells // 6, cells % 6, rng.normal(size=n), (5, 6))
    split = CalibrationSplit.of(seen, "unobserved", None, 0)
    assert len(split.calibration) >= 1
    assert len(split.train) >= 2
    assert np.isfinite(split.weights.at(*np.indices((5, 6)).reshape(2, -1))).all()


@pytest.mark.parametrize("n", [2, 3, 30])
def test_cells_like_the_observed_ones_are_held_out_by_coins(n):
    """Of coins, numbers differ; of two cells one is trained on whatever they show."""
    seen = Observations(np.arange(n), np.zeros(n, dtype=int), np.arange(n), (n, 1))
    splits = [CalibrationSplit.of(seen, "observed", None, seed) for seed in range(2000)]
    held_out = np.array([len(split.calibration) for split in splits])
    assert held_out.min() >= 1
    assert held_out.max() < n
    expected = np.clip(binom.rvs(n, 0.2, size=2000, random_state=0), 1, n - 1)
    assert held_out.mean() == pytest.approx(expected.mean(), abs=0.2)
    assert held_out.std() == pytest.approx(expected.std(), abs=0.2)


def test_a_single_cell_cannot_be_set_aside():
    with pytest.raises(InputError, match="at least 2 observed cells"):
        CalibrationSplit.of(Observations([0], [0], [1.0]), "observed", None, 0)


@pytest.mark.parametrize("aim", ["observed", "unobserved"])
def test_coins_know_nothing_of_a_table_simulated_with_the_same_seed(aim):
    """More than four standard errors, of means over some 800 cells, have a chance below 1 in 10,000."""
    values = np.random.default_rng(7).random(4000)
    seen = Observations(np.arange(4000) // 80, np.arange(4000) % 80, values, (50, 100))
    held_out = CalibrationSplit.of(seen, aim, None, random_state=7).calibration.values
    assert abs(held_out.mean() - values.mean()) < 4 * values.std() / np.sqrt(len(held_out))


def test_cells_like_the_observed_ones_all_weigh_the_same():
    seen = cells_by_coins(np.random.default_rng(4), np.full((30, 20), 0.3))
    split = CalibrationSplit.of(seen, "observed", None, 0)
    assert (split.weights.at(seen.rows, seen.cols) == 1).all()
    certain = TargetWeights("unobserved", GivenPropensity(np.ones((1, 1))), HeldOutRate(0.1))
    assert certain.at([0], [0])[0] == pytest.approx(1)


def test_what_is_no_probability_is_refused():
    seen = Observations([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="above 0 and at most 1"):
        CalibrationSplit.of(seen, "all", np.zeros((2, 2)), 0)
    with pytest.raises(InputError, match="above 0 and at most 1"):
        CalibrationSplit.of(seen, "all", lambda i, j: np.full(len(i), 1.5), 0)
    with pytest.raises(InputError, match="add aim='unobserved' or 'all'"):
        CalibrationSplit.of(seen, "observed", np.ones((2, 2)), 0)
