import numpy as np
import pytest

from surefill.datasets import make_blocks, make_low_rank, make_pattern
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


@pytest.mark.parametrize("pattern", ["blocks", "overlapping", "half", "idiosyncratic"])
def test_patterns_are_drawn_uniformly_from_their_support(pattern):
    sim = make_pattern(pattern, (7, 9), rank=2, n_draws=30_000, n_groups=3, noise=0.1, random_state=3)
    seen, counts = sim.observations, np.zeros((7, 9))
    assert seen.shape == (7, 9)
    counts[seen.rows, seen.cols] = seen.counts
    np.testing.assert_array_equal(counts > 0, sim.support)
    expected = 30_000 / sim.support.sum()
    assert np.abs(counts[sim.support] - expected).max() < 4.5 * np.sqrt(expected)
    rows, cols = np.indices((7, 9)).reshape(2, -1)
    np.testing.assert_array_equal(sim.support_at(rows, cols), sim.support.ravel())
    assert np.linalg.matrix_rank(sim.truth) == 2
    assert 0 < sim.support.sum() < 63


def test_blocks_pattern_has_even_groups_in_random_order():
    sim = make_pattern("blocks", (11, 8), n_groups=3)
    assert sorted(np.bincount(sim.row_groups)) == [3, 4, 4]
    assert sorted(np.bincount(sim.col_groups)) == [2, 3, 3]
    assert np.any(np.diff(sim.row_groups) < 0)
    assert sim.observations.n_draws == sim.support.sum()
    np.testing.assert_array_equal(sim.support, np.equal.outer(sim.row_groups, sim.col_groups))


def test_overlapping_groups_share_rows_and_columns():
    """With two groups a support row is one of the groups, or everything; three in ten see everything."""
    sim = make_pattern("overlapping", (30, 20), n_groups=2)
    kinds, counts = np.unique(sim.support, axis=0, return_counts=True)
    assert len(kinds) == 3
    everything = kinds.all(axis=1)
    assert counts[everything] == 9
    one, other = kinds[~everything]
    assert (one | other).all()
    assert (one & other).sum() == 6
    single = make_pattern("overlapping", (6, 5), n_groups=1)
    assert single.support.all()


def test_half_is_half_without_structure():
    sim = make_pattern("half", (9, 7))
    assert sim.support.sum() == 32
    assert np.linalg.matrix_rank(sim.support) == 7


def test_each_row_has_a_stretch_of_its_own():
    """All lengths occur; the rows of length 2 see neighbours on one circle, whose order is not the columns'."""
    support = make_pattern("idiosyncratic", (2000, 12), random_state=1).support
    lengths = support.sum(axis=1)
    np.testing.assert_array_equal(np.unique(lengths), np.arange(1, 13))
    np.testing.assert_allclose(np.bincount(lengths)[1:], 2000 / 12, rtol=0.3)
    neighbours = np.unique(support[lengths == 2], axis=0)
    assert len(neighbours) == 12
    np.testing.assert_array_equal(neighbours.sum(axis=0), 2)
    assert any(np.diff(np.flatnonzero(pair))[0] not in (1, 11) for pair in neighbours)


def test_support_is_that_of_the_sampling_distribution():
    weights = np.zeros((4, 6))
    weights[1, 2], weights[3, 5] = 3.0, 1.0
    np.testing.assert_array_equal(make_low_rank((4, 6), sampling=weights).support, weights > 0)
    product = make_low_rank((4, 6), sampling=([0, 1, 0, 2], [1, 1, 0, 0, 0, 3])).support
    np.testing.assert_array_equal(product, np.outer([0, 1, 0, 1], [1, 1, 0, 0, 0, 1]) > 0)
    assert make_low_rank((4, 6)).support.all()


def test_a_large_low_rank_simulation_holds_nothing_of_size_m_x_n():
    sim = make_low_rank((200_000, 100_000), n_draws=1000)
    assert sim.allowed.size == 1
    assert sim.support_at(sim.observations.rows, sim.observations.cols).all()


def test_bad_patterns():
    with pytest.raises(InputError, match="'pattern' parameter of make_pattern must be 'blocks' or 'overlapping'"):
        make_pattern("stripes")
    with pytest.raises(InputError, match="'n_groups' parameter"):
        make_pattern("blocks", (3, 3), n_groups=4)
    with pytest.raises(InputError, match="'rank' parameter of make_pattern"):
        make_pattern("half", (3, 3), rank=0)
