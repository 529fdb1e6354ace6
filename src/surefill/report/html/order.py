"""An order of rows and columns in which structure shows: groups that see the same, in each the most trusted first."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from surefill.coverage.co_clusters import Array, Order, co_cluster, ordered
from surefill.data import Observations


def order_of(observations: Observations, by_row: Array, by_col: Array) -> tuple[Order, Order]:
    """Rows and columns in the order to show them, given the mean confidence of each."""
    row_groups, col_groups = co_cluster(seen_pattern(observations))
    return ordered(row_groups, by_row), ordered(col_groups, by_col)


def seen_pattern(observations: Observations) -> sparse.coo_array:
    """1 at each observed cell."""
    return sparse.coo_array((np.ones(len(observations)), (observations.rows, observations.cols)), observations.shape)
