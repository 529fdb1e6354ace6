"""Wide tables of three columns taken for triples: noticed where it is clear, so that it can be asked about."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from narwhals import dependencies
from numpy.typing import NDArray

from surefill.data.frames import columns_of

MOST_ANSWERS = 20
"""Answers on the longest scale in use, from 0 to 10 in halves."""


def looks_wide(table: Any) -> bool:
    """Whether a table of three columns without telling names is a wide one.

    It is where the first column names each line once and the others hold numbers, where the first two hold numbers that
    are no ids, or where lines have text for labels, in an index of pandas, and there are more of
    them than pairs of ids.
    """
    columns = columns_of(table)
    if len(columns[0]) < 2 or not all(column.dtype.is_numeric() for column in columns[1:]):
        return False
    if columns[0].n_unique() == len(columns[0]) or any(column.dtype.is_float() for column in columns[:2]):
        return True
    values = np.asarray(columns[2].cast(nw.Float64).to_numpy(), float)
    if are_values(columns[0].unique().to_numpy(), columns[1].unique().to_numpy(), values):
        return True
    labelled = dependencies.is_pandas_dataframe(table) and isinstance(table.index[0], str)
    return labelled and len(columns[0]) > columns[0].n_unique() * columns[1].n_unique()


def are_values(row_labels: NDArray[Any], col_labels: NDArray[Any], values: NDArray[Any]) -> bool:
    """Whether what was taken for ids of rows and columns are values of a matrix of three columns.

    They are where all are numbers and some of the rows are not whole, such as 4.5; or where all three are whole, few
    and of one range, give or take 1, and every pair comes twice or more on average, as with people who answered three
    questions on one scale.

    >>> are_values(np.array(["2.5", "4.5"]), np.array(["1", "3.5"]), np.ones(3))
    True
    >>> are_values(np.arange(1, 6), np.arange(1, 6), np.repeat([1, 2, 3, 4, 5], 10))
    True
    >>> are_values(np.arange(196), np.arange(242), np.repeat([1, 2, 3, 4, 5], 10))
    False
    """
    rows, cols = _numbers(row_labels), _numbers(col_labels)
    if rows is None or cols is None:
        return False
    if (rows != np.round(rows)).any():
        return True
    few = max(len(rows), len(cols)) <= MOST_ANSWERS and len(values) >= 2 * len(rows) * len(cols)
    answers = np.unique(values)
    alike = all(np.abs(ids[[0, -1]] - answers[[0, -1]]).max() <= 1 for ids in (np.sort(rows), np.sort(cols)))
    return few and alike and len(answers) <= MOST_ANSWERS and bool(np.equal(answers, np.round(answers)).all())


def _numbers(labels: NDArray[Any]) -> NDArray[np.float64] | None:
    """Labels as finite numbers; None where one is not."""
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
