import numpy as np
import pytest

from surefill import InputError, Observations
from surefill.guarantee.target_weights import (
    CLIP,
    PropensityFunction,
    TargetWeights,
    choose_propensity,
)


def cells_by_coins(rng, chance):
    rows, cols = np.nonzero(rng.random(chance.shape) < chance)
    return Observations(rows, cols, np.zeros(len(rows)), chance.shape, (-1, 1))


@pytest.mark.parametrize("aim", ["all", "unobserved"])
def test_weighted_held_out_sums_are_unbiased_for_the_entries_aimed_at(aim):
    """Over many draws, sum over held-out cells of w f = sum over cells aimed at of f, up to one factor for all f."""
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.2, 0.9, (6, 5))
    features = np.stack([np.ones((6, 5)), chance, rng.random((6, 5))])
    share, estimate, target = 0.3, np.zeros(3), np.zeros(3)
    weights = TargetWeights(aim, share, PropensityFunction(lambda i, j: chance[i, j]), 1.0)
    raw = weights._raw(*np.indices((6, 5)).reshape(2, -1)).reshape(6, 5)
    for _ in range(20_000):
        seen = rng.random((6, 5)) < chance
        held_out = seen & (rng.random((6, 5)) < share)
        estimate += (features * raw * held_out).sum(axis=(1, 2))
        aimed = ~seen if aim == "unobserved" else ~seen | held_out
        target += (features * aimed).sum(axis=(1, 2))
    np.testing.assert_allclose(estimate / estimate[0], target / target[0], rtol=0.02)


def test_weights_are_in_0_1_and_cut_at_the_largest_on_the_training_cells_or_20_times_the_median():
    rng = np.random.default_rng(2)
    chance = rng.uniform(0.3, 0.9, (20, 10))
    chance[0, 0], chance[0, 1] = 1e-4, 0.01
    seen = cells_by_coins(rng, np.where(chance == 0.01, 1.0, chance))
    given = choose_propensity(chance, "all", seen, 0.2)
    weights = TargetWeights.of("all", given, 0.2, seen)
    everywhere = weights.at(*np.indices((20, 10)).reshape(2, -1)).reshape(20, 10)
    assert ((everywhere > 0) & (everywhere <= 1)).all()
    assert everywhere[0, 0] == 1
    assert np.median(weights.at(seen.rows, seen.cols)) == pytest.approx(1 / CLIP)
    without = seen.select((seen.rows > 0) | (seen.cols != 1))
    assert weights.at([0], [1])[0] == TargetWeights.of("all", given, 0.2, without).at([0], [1])[0] == 1
    assert TargetWeights.of("all", given, 0.2, without).at(without.rows, without.cols).max() == 1
    plain = TargetWeights.of("observed", None, 0.2, seen)
    assert (plain.at(seen.rows, seen.cols) == 1).all()


def test_what_is_no_probability_is_refused():
    seen = Observations([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="above 0 and at most 1"):
        TargetWeights.of("all", choose_propensity(np.zeros((2, 2)), "all", seen, 0.2), 0.2, seen)
    with pytest.raises(InputError, match="above 0 and at most 1"):
        TargetWeights.of("all", choose_propensity(lambda i, j: np.full(len(i), 1.5), "all", seen, 0.2), 0.2, seen)
    with pytest.raises(InputError, match="none like them is unobserved"):
        TargetWeights.of("unobserved", choose_propensity(np.ones((2, 2)), "unobserved", seen, 0.2), 0.2, seen)
