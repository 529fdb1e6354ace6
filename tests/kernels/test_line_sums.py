import numpy as np
import pytest

from surefill.kernels import line_sums as kernels
from surefill.kernels.gram import whole_lanes

STARTS = np.array([0, 3, 3, 160, 161, 450])  # an empty group, and chunks that end before, at and after a group's end


@pytest.mark.parametrize("weighted_sums", [kernels.weighted_sums, kernels.weighted_sums_reference])
def test_weighted_sums_are_those_of_each_line(weighted_sums):
    line, other = np.array([2, 0, 2], dtype=np.int32), np.array([1, 1, 0], dtype=np.int32)
    total = weighted_sums(line, other, np.array([1.0, 2.0, 3.0]), np.array([10.0, 100.0]), 4)
    assert total.tolist() == [200.0, 0.0, 130.0, 0.0]


@pytest.mark.parametrize("sum_lines", [kernels.sum_lines, kernels.sum_lines_reference])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_lines_are_a_sparse_matrix_times_a_thin_one(sum_lines, dtype):
    rng = np.random.default_rng(0)
    other, table = rng.integers(-1, 6, STARTS[-1]).astype(np.int32), rng.normal(size=(7, whole_lanes(11))).astype(dtype)
    total = np.full((5, 11), 7.0, dtype)
    sum_lines(0, 4, STARTS, other, table, total)
    rounding = 1e3 * np.finfo(dtype).eps  # some hundred terms of about 1
    matrix = np.zeros((5, 7))
    np.add.at(matrix, (np.repeat(range(5), np.diff(STARTS)), other % 7), 1)
    np.testing.assert_allclose(total[:4], (matrix @ table)[:4, :11], rtol=rounding, atol=rounding)
    assert (total[4] == 7).all()
