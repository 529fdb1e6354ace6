import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.kernels import components as kernels

edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=12)


@pytest.mark.parametrize("component_labels", [kernels.component_labels, kernels.component_labels_reference])
@given(edges)
def test_nodes_share_a_label_where_a_path_ties_them_and_labels_come_in_order(component_labels, given_edges):
    rows, cols = (np.array([edge[side] for edge in given_edges], dtype=np.int32) for side in (0, 1))
    labels = component_labels(rows, cols, 7, 5)
    ties = np.eye(12, dtype=bool)
    ties[rows, 7 + cols] = ties[7 + cols, rows] = True
    reached = np.linalg.matrix_power(ties.astype(float), 12) > 0
    np.testing.assert_array_equal(labels[:, None] == labels, reached)
    first = np.unique(labels, return_index=True)[1]
    assert (np.diff(first) > 0).all()
