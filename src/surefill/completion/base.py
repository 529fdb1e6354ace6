"""What a completion is and what makes one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.optimality_gap import OptimalityGap
from surefill.data import Observations
from surefill.loop import ProgressCallback, Status
from surefill.notebook import card


@runtime_checkable
class Completion(Protocol):
    """M-hat of the paper: a value for every entry, in the user's units, without holding the matrix.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.FactorModel().fit(sim.observations)
    >>> isinstance(completion, Completion)
    True
    >>> completion.block([0, 1], [2, 3, 4]).shape
    (2, 3)
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        ...

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        ...

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        ...

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        ...

    def fold_in(self, observations: Observations) -> Completion:
        """The completion of other rows, seen at ``observations``, with what was learnt of the columns."""
        ...


@runtime_checkable
class CompletionAlgorithm(Protocol):
    """FC of the paper: observations in, a completion out.

    Examples
    --------
    >>> import surefill as sf
    >>> isinstance(sf.completion.SoftImpute(), CompletionAlgorithm)
    True
    """

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> Completion:
        """Complete the whole matrix."""
        ...


def completion_card(completion: object, shape: tuple[int, int]) -> str:
    """Its size, how it was found, and that its values alone promise nothing."""
    facts: dict[str, object] = {"rows": shape[0], "columns": shape[1]}
    rank, gap, status = (getattr(completion, name, None) for name in ("rank", "gap", "status"))
    if rank is not None:
        facts["rank"] = rank
    if isinstance(gap, OptimalityGap):
        facts["how close to the best"] = gap.sentence
    if isinstance(status, Status):
        facts["stopped"] = status.value
    return card(type(completion).__name__, "A value for every entry, trusted or not; nothing is promised of it.", facts)
