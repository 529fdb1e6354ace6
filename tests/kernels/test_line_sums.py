import numpy as np
import pytest

from surefill.kernels import line_sums as kernels


@pytest.mark.parametrize("weighted_sums", [kernels.weighted_sums, kernels.weighted_sums_reference])
def test_weighted_sums_are_those_of_each_line(weighted_sums):
    line, other = np.array([2, 0, 2], dtype=np.int32), np.array([1, 1, 0], dtype=np.int32)
    total = weighted_sums(line, other, np.array([1.0, 2.0, 3.0]), np.array([10.0, 100.0]), 4)
    assert total.tolist() == [200.0, 0.0, 130.0, 0.0]
