"""Completions of larger tables: a value for rows and columns that were never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.base import Completion, completion_card
from surefill.completion.factored_completion import BiasedProduct
from surefill.completion.low_rank_completion import LowRankCompletion, effects_alone
from surefill.data import Observations
from surefill.registry import storable


def extend_completion(completion: Completion, shape: tuple[int, int], observations: Observations) -> Completion:
    """``completion``, fitted on ``observations``, for a larger table: beyond its shape a line has the prior's mean.

    With factors that is 0: an entry of a new row is predicted from its column alone, b_i = 0 and p_i = 0, one of a new
    column from its row alone, and one of both is the mean. Completions without factors get shrunken means there
    (:class:`ExtendedCompletion`).

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0).observations
    >>> completion = extend_completion(sf.completion.SoftImpute(penalty=1.0).fit(seen), (31, 21), seen)
    >>> completion.shape, completion.at([30, 30], [4, 20]).shape
    ((31, 21), (2,))
    """
    if isinstance(completion, BiasedProduct):
        return completion.extended(shape)
    inner = completion.completion if isinstance(completion, ExtendedCompletion) else completion
    return ExtendedCompletion(inner, effects_alone(observations).extended(shape))


@storable
@dataclass(frozen=True, eq=False)
class ExtendedCompletion:
    """A completion inside its own shape, and ``effects``, a mean with shrunken row and column effects, beyond it.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0])
    >>> mine = sf.completion.ExternalCompletion(lambda rows, cols: 1.0 + rows + cols).fit(seen)
    >>> extend_completion(mine, (3, 2), seen).at([0, 2], [1, 1]).round(2)
    array([2.  , 2.02])
    """

    completion: Completion
    effects: LowRankCompletion

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), the larger."""
        return self.effects.shape

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        i, j = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        (m, n), values = self.completion.shape, self.effects.at(i, j)
        inside = (i < m) & (j < n)
        values[inside] = self.completion.at(i[inside], j[inside])
        return values

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        i, j = np.asarray(rows), np.asarray(cols)
        return self.at(np.repeat(i, len(j)), np.tile(j, len(i))).reshape(len(i), len(j))

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def fold_in(self, observations: Observations) -> Completion:
        """The completion of other rows, seen at ``observations``: by effects alone."""
        return self.effects.fold_in(observations)

    def _repr_html_(self) -> str:
        return completion_card(self, self.shape)
