"""The k-th largest number of each row."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from surefill.kernels.largest import kth_largest, kth_largest_reference

entries = st.sampled_from([-np.inf, -1.5, 0.0, 2.0, 2.5, 7.0])


@settings(max_examples=80, deadline=None)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=entries), st.integers(1, 15)
)
def test_it_is_what_sorting_says(table, k):
    np.testing.assert_array_equal(kth_largest(table, k), kth_largest_reference(table, k))


def test_of_many_entries():
    table = np.random.default_rng(0).normal(size=(3, 10_000))
    np.testing.assert_array_equal(kth_largest(table, 400), np.sort(table, axis=1)[:, -400])
