"""The region and the coefficient of disagreement, against version spaces whose members are known."""

import numpy as np
import pytest

import surefill as sf
from surefill.active import disagreement_coefficient, disagreement_region, largest_disagreement


def every_cell_seen_once(m, n, beta):
    rows, cols = np.indices((m, n)).reshape(2, -1)
    return sf.VersionSpace(sf.Observations(rows, cols, rows + cols), beta, sf.MaxNorm(1.0))


@pytest.mark.parametrize("matrix_class", [sf.MaxNorm(1.0), sf.MaxNorm(0.3), sf.TraceNorm(0.6), sf.MaxNorm(1.5, rank=2)])
def test_the_largest_entry_is_a_members_and_no_adversary_has_a_larger(matrix_class):
    """A class with a rank is only searched: there the member itself, one entry and zeros, shows what is reached."""
    seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 0], [1.0, 0.5, 0.2, 0.2], shape=(3, 2))
    space = sf.VersionSpace(seen, 0.01, matrix_class)
    rows, cols = np.indices((3, 2)).reshape(2, -1)
    for i, j, largest in zip(rows, cols, largest_disagreement(space, rows, cols), strict=True):
        C = np.zeros((3, 2))
        C[i, j] = 1.0
        adversary = space.maximize(C)
        assert adversary.value <= largest + 1e-6  # the tolerance of membership
        assert space.contains((1 - 1e-9) * largest * C)
        if np.isfinite(adversary.bound):
            assert adversary.value >= largest - 0.02 * max(largest, 0.1)
        assert space.bound(C) >= largest - 1e-9


def test_where_all_cells_were_seen_alike_all_or_nothing_is_covered():
    # the constant matrix sqrt(beta) is a member, and by Cauchy and Schwarz no member has a larger mean over all cells
    gamma = 0.3
    assert disagreement_region(every_cell_seen_once(4, 5, 0.98 * gamma**2), gamma).rate[0] == pytest.approx(0, abs=1e-6)
    low, high = disagreement_region(every_cell_seen_once(4, 5, 1.05 * gamma**2), gamma).rate
    assert low == pytest.approx(1, abs=1e-3)
    assert high == pytest.approx(1, abs=1e-3)


def test_the_coefficient_is_then_one_where_cell_by_cell_it_would_be_the_number_of_cells():
    gamma, space = 0.3, every_cell_seen_once(4, 5, 0.1)
    low, high = disagreement_coefficient(space, gamma, [np.sqrt(f) * gamma for f in (0.5, 1.05, 3.0)])
    assert low == pytest.approx(1 / 1.05, rel=0.02)
    assert high == pytest.approx(1 / 1.05, rel=0.02)
    alone = largest_disagreement(every_cell_seen_once(4, 5, 1.01 * gamma**2 / 20), np.arange(4), np.arange(4))
    assert (alone > gamma).all()


def test_the_region_is_what_lies_between_blocks_that_never_meet():
    sim = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0)
    space = sf.VersionSpace(sim.observations, 0.0128, sf.MaxNorm(1.0))
    found = disagreement_region(space, gamma=0.16)
    rows, cols = np.indices(sim.support.shape).reshape(2, -1)
    region = found.at(rows, cols).reshape(sim.support.shape)
    assert region[~sim.support].mean() > 0.9 > 0.2 > region[sim.support].mean()
    assert found.proved
    assert found.rate[0] <= region.mean() <= found.rate[1] + 1e-9
    assert found.coefficient == tuple(0.16**2 / 0.0128 * end for end in found.rate)


def test_bad_input_is_refused_in_one_sentence():
    space = every_cell_seen_once(2, 2, 0.1)
    with pytest.raises(sf.InputError, match="gamma"):
        disagreement_region(space, 0.0)
    with pytest.raises(sf.InputError, match="radius"):
        disagreement_region(every_cell_seen_once(2, 2, 0.0), 0.5)
    with pytest.raises(sf.InputError, match="MaxNorm"):
        disagreement_region(sf.VersionSpace(space.observations, 0.1, sf.TraceNorm(1.0)), 0.5)
    with pytest.raises(sf.InputError, match="radii"):
        disagreement_coefficient(space, 0.5, [])
