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
