import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.kernels import group_sums as kernels


@pytest.mark.parametrize("sum_groups", [kernels.sum_groups, kernels.sum_groups_reference])
@given(seed=st.integers(0, 30))
def test_sums_are_a_sparse_matrix_times_a_thin_one(sum_groups, seed):
    rng = np.random.default_rng(seed)
    starts = np.array([0, 3, 3, 12, 13])
    other, weight, features = rng.integers(-1, 6, 13), rng.uniform(0.5, 3, 13), rng.normal(size=(7, 3))
    total = np.full((4, 3), 7.0)
    sum_groups(0, 3, starts, other, weight, features, total)
    matrix = np.zeros((4, 7))
    np.add.at(matrix, (np.repeat(range(4), np.diff(starts)), other % 7), weight)
    np.testing.assert_allclose(total[:3], (matrix @ features)[:3], atol=1e-12)
    assert (total[3] == 7).all()


@pytest.mark.parametrize("sum_errors", [kernels.sum_errors, kernels.sum_errors_reference])
def test_errors_are_those_of_independent_factors(sum_errors):
    rng = np.random.default_rng(0)
    starts, other = np.array([0, 2, 2, 4]), np.array([0, -1, 1, 0])
    weight, target = rng.uniform(0.5, 3, 4), rng.normal(size=4)
    (x, z), (v, w) = (rng.normal(size=(4, 3)) for _ in "xz"), (rng.uniform(0, 1, (4, 3)) for _ in "vw")
    total = np.full(3, 7.0)
    sum_errors(0, 2, starts, other, weight, target, x, v, z, w, total)
    n = 400_000
    a = x[0] + np.sqrt(v[0]) * rng.normal(size=(n, 3))
    simulated = 0.0
    for t in (0, 1):
        b = z[other[t]] + np.sqrt(w[other[t]]) * rng.normal(size=(n, 3))
        error = target[t] - a[:, 0] - b[:, 0] - (a[:, 1:] * b[:, 1:]).sum(axis=1)
        simulated += weight[t] * np.mean(error**2)
    assert total[0] == pytest.approx(simulated, rel=0.02)
    assert total[1:].tolist() == [0.0, 7.0]
