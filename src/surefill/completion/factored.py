"""What the completions of factor models can do besides: posteriors, and updates of either side."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from surefill.completion.biased_product import BiasedProduct
from surefill.completion.side import Array, as_features
from surefill.data import Observations, UnitMap


class Factored(BiasedProduct):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], cut to it and given in the user's units, with posteriors.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.FactorModel(rank=3).fit(sim.observations)
    >>> isinstance(completion, Factored)
    True
    >>> completion.fold_in(sf.Observations([0, 0], [3, 7], [0.2, -0.1], shape=(1, 20))).shape
    (1, 20)
    """

    unit: UnitMap
    mean: float

    @abstractmethod
    def row_posterior(self, observations: Observations) -> Array:
        """The posterior covariance of (b_i, p_i) of each row of ``observations``, the columns as they are.

        Up to one common factor; the last one is the prior's.
        """

    @abstractmethod
    def col_posterior(self, observations: Observations) -> Array:
        """The same for the columns."""

    @abstractmethod
    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        """The rows of ``observations`` solved anew given the columns, the other rows kept or left out."""

    @abstractmethod
    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        """The same for the columns."""

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, seen at ``observations``, the columns as learnt: one regression per row."""
        return self._with_rows(observations, keep=False)

    def fold_in_columns(self, observations: Observations) -> Self:
        """The completion of other columns, seen at ``observations``, the rows as learnt."""
        return self._with_cols(observations, keep=False)

    def update(self, seen: Observations, new: Observations) -> Self:
        """The completion after ``new``, a part of all that is now ``seen``, without fitting again.

        The rows of ``new`` are solved again, its columns, and the rows once more, each on all its entries; the rest
        stays as learnt. The cost is that of the entries of these rows and columns.
        """
        in_rows, in_cols = (seen.select(np.isin(*ids)) for ids in ((seen.rows, new.rows), (seen.cols, new.cols)))
        return self._with_rows(in_rows, keep=True)._with_cols(in_cols, keep=True)._with_rows(in_rows, keep=True)

    @property
    def row_features(self) -> Array:
        """(1, p_i) of each present row."""
        return as_features(self.row_table()[1])

    @property
    def col_features(self) -> Array:
        """(1, q_j) of each present column."""
        return as_features(self.col_table()[1])

    def residual(self, observations: Observations) -> Array:
        """Unit values less the mean."""
        return self.unit.to_unit(observations.values) - self.mean

    def _in_units(self, centred: Array) -> NDArray[np.float64]:
        return self.unit.from_unit(np.clip(self.mean + centred, -1.0, 1.0))
