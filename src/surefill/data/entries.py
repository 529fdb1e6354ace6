"""Observed cells as scikit-learn's samples: what cross-validation splits into folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import IntArray

if TYPE_CHECKING:
    from surefill.data.observations import Observations


@dataclass(frozen=True, eq=False)
class Entries:
    """The observed cells of a matrix as a list of samples (row, column, value): len(entries) of them, entries[which].

    scikit-learn takes the first number of a ``shape`` for the number of samples and holds samples out. Of
    :class:`Observations` that would be the rows of the matrix; here it is the cells. A part of them is of the same
    matrix, with the same labels and bounds, so that rows and columns of which it holds nothing keep their places.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    >>> entries = seen.entries
    >>> entries.shape, entries[[0, 3]].values
    ((4, 3), array([1., 4.]))
    >>> from sklearn.model_selection import train_test_split
    >>> train, test = train_test_split(entries, test_size=0.25, random_state=0)
    >>> len(train), len(test), test.observations.shape
    (3, 1, (2, 2))
    """

    observations: Observations

    @property
    def shape(self) -> tuple[int, int]:
        """(number of cells, 3): each has a row, a column and a value."""
        return len(self.observations), 3

    @property
    def rows(self) -> IntArray:
        """0-based position of each cell's row."""
        return self.observations.rows

    @property
    def cols(self) -> IntArray:
        """0-based position of each cell's column."""
        return self.observations.cols

    @property
    def values(self) -> NDArray[np.float64]:
        """Value of each cell."""
        return self.observations.values

    def __len__(self) -> int:
        return len(self.observations)

    def __getitem__(self, which: Any) -> Self:
        """The cells at ``which``: positions, a mask or a slice; scikit-learn adds an ellipsis for the columns."""
        samples = which[0] if isinstance(which, tuple) else which
        return type(self)(self.observations.select(np.atleast_1d(np.arange(len(self))[samples])))
