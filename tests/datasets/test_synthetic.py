import numpy as np
import pytest

from surefill.datasets import make_blocks, make_low_rank
from surefill.errors import InputError


def test_blocks_are_sampled_only_within_groups_and_shuffled():
    sim = make_blocks((6, 4), n_groups=3, n_draws=500, random_state=1)
    seen = sim.observations
    assert seen.shape == (18, 12)
    assert seen.n_draws == 500
    assert sim.support[seen.rows, seen.cols].all()
    assert sim.support.sum() == 3 * 6 * 4
    assert len(seen) > 60
    assert np.any(np.diff(sim.row_groups) < 0)
    ordered = make_blocks((6, 4), n_groups=3, permute=False)
    assert np.all(np.diff(ordered.row_groups) >= 0)


def test_each_group_can_be_drawn():
    sim = make_blocks((3, 3), n_groups=4, n_draws=400)
    groups = sim.row_groups[sim.observations.rows]
    assert np.bincount(groups).min() > 50 / 9


@pytest.mark.parametrize("rank", [1, 3])
def test_truth_has_the_rank_and_range_it_should(rank):
    sim = make_low_rank((30, 20), rank, n_draws=200, noise=0.2, random_state=2)
    assert np.linalg.matrix_rank(sim.truth) == rank
    assert np.abs(sim.truth).max() <= 0.8
    seen = sim.observations
    np.testing.assert_allclose(sim.truth_at(seen.rows, seen.cols), sim.truth[seen.rows, seen.cols])
    assert np.abs(seen.values - sim.truth[seen.rows, seen.cols]).max() <= 0.2


def test_noise_is_bounded_with_mean_zero():
    sim = make_low_rank((5, 5), 1, n_draws=50_000, noise=0.3, random_state=0)
    seen = sim.observations
    assert len(seen) == 25
    np.testing.assert_allclose(seen.values, sim.truth[seen.rows, seen.cols], atol=0.03)
    assert np.abs(seen.values - sim.truth[seen.rows, seen.cols]).max() > 0


def test_any_sampling_distribution():
    weights = np.zeros((4, 6))
    weights[1, 2], weights[3, 5] = 3.0, 1.0
    seen = make_low_rank((4, 6), n_draws=4000, sampling=weights).observations
    counts = dict(zip(zip(seen.rows.tolist(), seen.cols.tolist(), strict=True), seen.counts.tolist(), strict=True))
    assert set(counts) == {(1, 2), (3, 5)}
    assert counts[1, 2] / 4000 == pytest.approx(0.75, abs=0.04)
    product = make_low_rank((4, 6), n_draws=100, sampling=([0, 1, 0, 0], [1, 1, 0, 0, 0, 0])).observations
    assert set(product.rows.tolist()) == {1}
    assert set(product.cols.tolist()) == {0, 1}


def test_seeds():
    one, same, other = (make_low_rank(random_state=s).observations for s in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    assert len(one) != len(other) or not np.array_equal(one.values, other.values)


def test_bad_parameters():
    with pytest.raises(InputError, match="'rank' parameter"):
        make_low_rank(rank=0)
    with pytest.raises(InputError, match="'noise' parameter"):
        make_low_rank(noise=1.0)
    with pytest.raises(InputError, match="sampling weights"):
        make_low_rank((3, 3), sampling=-np.ones((3, 3)))
    with pytest.raises(InputError, match="'n_groups' parameter"):
        make_blocks(n_groups=0)
    with pytest.raises(InputError, match="'group_shape' parameter"):
        make_blocks((0, 3))
